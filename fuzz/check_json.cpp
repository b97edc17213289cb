#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "checks.h"

namespace collector::fuzz {
namespace {

// Reads one JSON text without recursion, so that no nesting is too deep.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : next_(text.data()), end_(text.data() + text.size()) {}

  void read_all() {
    read_value_start();
    while (!open_.empty()) {
      skip_space();
      if (open_.back().is_object) {
        continue_object();
      } else {
        continue_array();
      }
    }
    skip_space();
    require(next_ == end_, "something behind the JSON value");
  }

 private:
  struct Open {
    bool is_object;
    bool any;
    std::vector<std::string_view> keys;
  };

  void continue_object() {
    if (take_if('}')) {
      check_keys(open_.back().keys);
      open_.pop_back();
      return;
    }
    if (open_.back().any) take(',');
    open_.back().any = true;
    skip_space();
    open_.back().keys.push_back(read_string());
    skip_space();
    take(':');
    read_value_start();
  }

  void continue_array() {
    if (take_if(']')) {
      open_.pop_back();
      return;
    }
    if (open_.back().any) take(',');
    open_.back().any = true;
    read_value_start();
  }

  static void check_keys(std::vector<std::string_view>& keys) {
    std::sort(keys.begin(), keys.end());
    require(std::adjacent_find(keys.begin(), keys.end()) == keys.end(), "a key that comes twice in a JSON object");
  }

  // Reads a whole value, or the bracket that opens one.
  void read_value_start() {
    skip_space();
    require(next_ != end_, "JSON that ends where a value should be");
    switch (*next_) {
      case '{':
      case '[':
        open_.push_back({*next_++ == '{', false, {}});
        return;
      case '"':
        read_string();
        return;
      case 't':
        return read_word("true");
      case 'f':
        return read_word("false");
      case 'n':
        return read_word("null");
      default:
        read_number();
    }
  }

  void read_word(std::string_view word) {
    for (const char letter : word) take(letter);
  }

  void read_number() {
    take_if('-');
    if (!take_if('0')) read_digits();
    if (take_if('.')) read_digits();
    if (take_if('e') || take_if('E')) {
      if (!take_if('+')) take_if('-');
      read_digits();
    }
  }

  void read_digits() {
    require(is_digit(), "a JSON number without digits");
    while (is_digit()) ++next_;
  }
  bool is_digit() const { return next_ != end_ && *next_ >= '0' && *next_ <= '9'; }

  // Returns the text between the quotes, undecoded.
  std::string_view read_string() {
    take('"');
    const char* const start = next_;
    while (next_ != end_ && *next_ != '"') {
      require(static_cast<unsigned char>(*next_) >= 0x20, "a control character in a JSON string");
      if (*next_++ == '\\') read_escape();
    }
    const std::string_view text(start, static_cast<size_t>(next_ - start));
    take('"');
    require(is_utf8(text), "a JSON string that is not UTF-8");
    return text;
  }

  void read_escape() {
    require(next_ != end_ && std::string_view("\"\\/bfnrtu").find(*next_) != std::string_view::npos,
            "an unknown escape in a JSON string");
    if (*next_++ != 'u') return;
    const uint32_t unit = read_hex();
    require(unit < 0xDC00 || unit > 0xDFFF, "the second half of a surrogate pair alone");
    if (unit < 0xD800 || unit > 0xDFFF) return;
    read_word("\\u");
    const uint32_t second = read_hex();
    require(second >= 0xDC00 && second <= 0xDFFF, "the first half of a surrogate pair alone");
  }

  uint32_t read_hex() {
    uint32_t value = 0;
    for (int digit = 0; digit < 4; ++digit) {
      require(next_ != end_, "JSON that ends within an escape");
      const size_t found = std::string_view("0123456789abcdef").find(*next_++);
      require(found != std::string_view::npos, "an escape without four digits");
      value = value << 4 | static_cast<uint32_t>(found);
    }
    return value;
  }

  void skip_space() {
    while (next_ != end_ && (*next_ == ' ' || *next_ == '\n' || *next_ == '\t' || *next_ == '\r')) ++next_;
  }
  bool take_if(char letter) {
    if (next_ == end_ || *next_ != letter) return false;
    ++next_;
    return true;
  }
  void take(char letter) { require(take_if(letter), "a letter that JSON does not have there"); }

  const char* next_;
  const char* end_;
  std::vector<Open> open_;
};

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << "\n";
  std::abort();
}

bool is_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](size_t offset) {
      return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0u;
    };
    const auto follows = [&](size_t offset, unsigned low, unsigned high) {
      return byte(offset) >= low && byte(offset) <= high;
    };
    // Well-formed sequences by table 3-7 of the Unicode Standard.
    const unsigned first = byte(0);
    size_t length = 0;
    if (first <= 0x7F) {
      length = 1;
    } else if (first >= 0xC2 && first <= 0xDF) {
      length = follows(1, 0x80, 0xBF) ? 2 : 0;
    } else if (first >= 0xE0 && first <= 0xEF) {
      const bool second = follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
      length = second && follows(2, 0x80, 0xBF) ? 3 : 0;
    } else if (first >= 0xF0 && first <= 0xF4) {
      const bool second = follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
      length = second && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
    }
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void check_json(std::string_view text) { JsonReader(text).read_all(); }

std::string compacted(std::string_view json) {
  std::string compact;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char letter = json[at];
    if (in_string && letter == '\\') {
      compact += letter;
      compact += json[++at];
      continue;
    }
    if (letter == '"') in_string = !in_string;
    if (in_string || (letter != ' ' && letter != '\n')) compact += letter;
  }
  return compact;
}

}  // namespace collector::fuzz
