// Where a writer's bytes go: a piece of memory that is handed on or enlarged when it is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "write/digits.h"

namespace collector::convert {

class Output {
 public:
  virtual ~Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Room for at least `num_bytes` more; what is written there counts once Commit is called with the end of it.
  char* Reserve(size_t num_bytes) {
    if (static_cast<size_t>(limit_ - next_) < num_bytes) MakeRoom(num_bytes);
    return next_;
  }
  void Commit(char* end) { next_ = end; }

  void Append(std::string_view text) {
    char* const to = Reserve(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    Commit(to + text.size());
  }
  void Append(char letter) {
    char* const to = Reserve(1);
    *to = letter;
    Commit(to + 1);
  }
  void AppendNumber(int64_t number) { Commit(PutDecimal(Reserve(kDecimalRoom), number)); }
  void AppendNumber(uint64_t number) { Commit(PutDecimal(Reserve(kDecimalRoom), number)); }
  void AppendNumber(uint32_t number) { AppendNumber(uint64_t{number}); }

 protected:
  Output() = default;
  // Makes at least `num_bytes` available between next_ and limit_.
  virtual void MakeRoom(size_t num_bytes) = 0;

  char* next_ = nullptr;
  char* limit_ = nullptr;
};

// Collects a text in memory.
class TextOutput : public Output {
 public:
  void Clear() {
    if (next_ != nullptr) next_ = text_.data();
  }
  bool empty() const { return text().empty(); }
  std::string_view text() const {
    return next_ == nullptr ? std::string_view()
                            : std::string_view(text_.data(), static_cast<size_t>(next_ - text_.data()));
  }

 protected:
  void MakeRoom(size_t num_bytes) override {
    const size_t used = text().size();
    text_.resize(used + used / 2 + num_bytes);
    next_ = text_.data() + used;
    limit_ = text_.data() + text_.size();
  }

 private:
  std::string text_;
};

}  // namespace collector::convert
