// A place in JSON text of which only a part is there yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace collector::read {

// The text ends inside of a value. More of it may come.
class NeedsMore : public std::exception {
 public:
  const char* what() const noexcept override { return "cut off"; }
};

// The text is no JSON.
class NotJson : public std::exception {
 public:
  explicit NotJson(const char* why) : why_(why) {}
  const char* what() const noexcept override { return why_; }

 private:
  const char* why_;
};

// Reads values one after the other. What Python's decoder takes is taken: control characters in strings, NaN and
// Infinity. Values may nest up to a limit; a view of a value is valid as long as the text, or the scratch, is.
class JsonCursor {
 public:
  static constexpr int kMaxDepth = 256;

  JsonCursor(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const { return at_; }

  // The next letter that is no space.
  char peek() {
    while (at_ < end_ && is_space(*at_)) ++at_;
    if (at_ == end_) throw NeedsMore();
    return *at_;
  }
  // Takes the next letter, if it is this one.
  bool take(char letter) {
    if (peek() != letter) return false;
    ++at_;
    return true;
  }
  // Takes the next letter, which has to be this one.
  void expect(char letter) {
    if (!take(letter)) throw NotJson("no JSON");
  }

  // A string's text: a view of the text where it has no escapes, else of `scratch`. A lone surrogate becomes "?".
  std::string_view string(std::string& scratch);
  // Takes the next value, if it is a whole number of at most 18 digits that is all there.
  bool short_integer(int64_t& value);
  // A value as it is written. `depth` is how many values are around it.
  std::string_view raw(int depth = 0);

  // How many places of strings read so far are not UTF-8, and where the first is; null: there is none.
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

// Whether a value as it is written is a whole number of 64 bits, and which.
bool is_integer(std::string_view raw, int64_t& value);

}  // namespace collector::read
