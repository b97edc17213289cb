// Where a writer's bytes go: a piece of memory that is handed on or enlarged when it is full.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

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
  void AppendNumber(int64_t number) { AppendInteger(number); }
  void AppendNumber(uint64_t number) { AppendInteger(number); }
  void AppendNumber(uint32_t number) { AppendInteger(number); }

 protected:
  Output() = default;
  // Makes at least `num_bytes` available between next_ and limit_.
  virtual void MakeRoom(size_t num_bytes) = 0;

  char* next_ = nullptr;
  char* limit_ = nullptr;

 private:
  template <typename Integer>
  void AppendInteger(Integer number) {
    constexpr size_t kDigits = 20;  // of a 64-bit number, with its sign
    char* const to = Reserve(kDigits);
    Commit(std::to_chars(to, to + kDigits, number).ptr);
  }
};

}  // namespace collector::convert
