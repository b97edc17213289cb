// A cursor in JSON text of which only a part has arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace collector::read {

// The text ends inside a value; more of it may come.
class NeedsMore : public std::exception {
 public:
  const char* what() const noexcept override { return "cut off"; }
};

// The text is not JSON.
class NotJson : public std::exception {
 public:
  explicit NotJson(const char* why) : why_(why) {}
  const char* what() const noexcept override { return why_; }

 private:
  const char* why_;
};

// Reads values one after the other. Like Python's decoder it accepts control characters in strings, NaN and Infinity.
// Values may nest up to a limit. A view of a value is valid as long as the text or the scratch that it views.
class JsonCursor {
 public:
  static constexpr int kMaxDepth = 256;

  JsonCursor(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const { return at_; }

  // The next character that is not a space.
  char peek() {
    while (at_ < end_ && is_space(*at_)) ++at_;
    if (at_ == end_) throw NeedsMore();
    return *at_;
  }
  // Takes the next character if it equals `letter`.
  bool take(char letter) {
    if (peek() != letter) return false;
    ++at_;
    return true;
  }
  // Takes the next character, which has to equal `letter`.
  void expect(char letter) {
    if (!take(letter)) throw NotJson("no JSON");
  }

  // The text of a string: a view of the JSON text if it has no escapes, else of `scratch`. A lone surrogate becomes
  // "?".
  std::string_view string(std::string& scratch);
  // Takes the next value if it is a complete integer of at most 18 digits.
  bool short_integer(int64_t& value);
  // A value as it is written. `depth` is the number of values around it.
  std::string_view raw(int depth = 0);

  // The number of places in the strings read so far that are not UTF-8, and the first of them; null: there is none.
  size_t num_ill_formed() const { return num_ill_formed_; }
  const char* first_ill_formed() const { return first_ill_formed_; }

 private:
  static bool is_space(char letter) { return letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t'; }

  void skip_value(int depth);
  void skip_string(bool& has_escapes);
  void skip_object(int depth);
  void skip_list(int depth);
  void skip_word();
  void skip_escape();
  void note_ill_formed(const char* begin, const char* end);

  const char* at_;
  const char* end_;
  size_t num_ill_formed_ = 0;
  const char* first_ill_formed_ = nullptr;
};

// Whether a value, as it is written, is an integer of 64 bits, which is then assigned to `value`.
bool is_integer(std::string_view raw, int64_t& value);

}  // namespace collector::read
