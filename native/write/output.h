// The destination of a writer's bytes: a piece of memory that is passed on or enlarged when it is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "write/digits.h"

namespace collector::write {

class Output {
 public:
  virtual ~Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Returns room for at least `num_bytes` more bytes; commit, called with the end of the written bytes, makes them
  // count.
  char* reserve(size_t num_bytes) {
    if (static_cast<size_t>(limit_ - next_) < num_bytes) make_room(num_bytes);
    return next_;
  }
  void commit(char* end) { next_ = end; }

  void append(std::string_view text) {
    char* const to = reserve(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    commit(to + text.size());
  }
  void append(char letter) {
    char* const to = reserve(1);
    *to = letter;
    commit(to + 1);
  }
  void append_number(int64_t number) { commit(put_decimal(reserve(kDecimalRoom), number)); }
  void append_number(uint64_t number) { commit(put_decimal(reserve(kDecimalRoom), number)); }
  void append_number(uint32_t number) { append_number(uint64_t{number}); }

 protected:
  Output() = default;
  // Makes at least `num_bytes` available between next_ and limit_.
  virtual void make_room(size_t num_bytes) = 0;

  char* next_ = nullptr;
  char* limit_ = nullptr;
};

// Collects text in memory.
class TextOutput : public Output {
 public:
  void clear() {
    if (next_ != nullptr) next_ = text_.data();
  }
  bool empty() const { return text().empty(); }
  std::string_view text() const {
    return next_ == nullptr ? std::string_view()
                            : std::string_view(text_.data(), static_cast<size_t>(next_ - text_.data()));
  }

 protected:
  void make_room(size_t num_bytes) override {
    const size_t used = text().size();
    text_.resize(used + used / 2 + num_bytes);
    next_ = text_.data() + used;
    limit_ = text_.data() + text_.size();
  }

 private:
  std::string text_;
};

}  // namespace collector::write
