#include "read/json_cursor.h"

#include <cstring>

#include "stepstats/ascii.h"
#include "stepstats/utf8.h"

namespace collector::read {

using stepstats::is_digit;
using stepstats::is_lower;
using stepstats::is_upper;

namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHighBits = 0x8080808080808080u;

// A high bit in the first byte that is 0, and perhaps in later ones.
uint64_t zero_bytes(uint64_t word) { return (word - kOnes) & ~word & kHighBits; }

bool is_word_letter(char letter) {
  return is_digit(letter) || is_lower(letter) || is_upper(letter) || letter == '-' || letter == '+' || letter == '.';
}

size_t num_digits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

bool is_number(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  const size_t whole = num_digits(text);
  if (whole == 0 || (whole > 1 && text[0] == '0')) return false;
  text.remove_prefix(whole);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const size_t fraction = num_digits(text);
    if (fraction == 0) return false;
    text.remove_prefix(fraction);
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    const size_t power = num_digits(text);
    if (power == 0) return false;
    text.remove_prefix(power);
  }
  return text.empty();
}

// Reads four hexadecimal digits at `at`; the text has at least four characters there.
bool hex_of(const char* at, uint32_t& code) {
  code = 0;
  for (int i = 0; i < 4; ++i) {
    const char letter = at[i];
    const int digit = is_digit(letter)                 ? letter - '0'
                      : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                      : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                                       : -1;
    if (digit < 0) return false;
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  return true;
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool is_high_surrogate(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// Decodes the text between the quotes of a string, whose escapes are complete.
void decode_string(std::string_view written, std::string& out) {
  out.clear();
  for (size_t at = 0; at < written.size(); ++at) {
    if (written[at] != '\\') {
      out += written[at];
      continue;
    }
    const char letter = written[++at];
    constexpr std::string_view kEscapes = "bfnrt";
    constexpr std::string_view kMeanings = "\b\f\n\r\t";
    if (letter != 'u') {
      const size_t known = kEscapes.find(letter);
      out += known == std::string_view::npos ? letter : kMeanings[known];
      continue;
    }
    uint32_t code = 0;
    hex_of(written.data() + at + 1, code);
    at += 4;
    uint32_t low = 0;
    if (is_high_surrogate(code) && written.substr(at + 1, 2) == "\\u" && hex_of(written.data() + at + 3, low) &&
        is_low_surrogate(low)) {
      code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
      at += 6;
    }
    if (is_high_surrogate(code) || is_low_surrogate(code)) {
      out += '?';
    } else {
      append_utf8(code, out);
    }
  }
}

}  // namespace

std::string_view JsonCursor::string(std::string& scratch) {
  if (peek() != '"') throw NotJson("no JSON");
  const char* const begin = at_ + 1;
  bool has_escapes = false;
  skip_string(has_escapes);
  const std::string_view written(begin, static_cast<size_t>(at_ - 1 - begin));
  if (!has_escapes) return written;
  decode_string(written, scratch);
  return scratch;
}

bool JsonCursor::short_integer(int64_t& value) {
  constexpr int kMostDigits = 18;
  const bool is_negative = peek() == '-';
  const char* at = at_ + (is_negative ? 1 : 0);
  const char* const begin = at;
  uint64_t number = 0;  // has room for the digit that is one too many
  while (at < end_ && at - begin <= kMostDigits && is_digit(*at))
    number = number * 10 + static_cast<uint64_t>(*at++ - '0');
  const auto count = at - begin;
  if (count == 0 || count > kMostDigits || (*begin == '0' && count > 1)) return false;
  if (at == end_ || is_word_letter(*at)) return false;
  at_ = at;
  value = is_negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
  return true;
}

std::string_view JsonCursor::raw(int depth) {
  peek();
  const char* const begin = at_;
  skip_value(depth);
  return {begin, static_cast<size_t>(at_ - begin)};
}

void JsonCursor::skip_value(int depth) {
  switch (peek()) {
    case '"': {
      bool has_escapes = false;
      return skip_string(has_escapes);
    }
    case '{':
      return skip_object(depth + 1);
    case '[':
      return skip_list(depth + 1);
    default:
      return skip_word();
  }
}

void JsonCursor::skip_string(bool& has_escapes) {
  const char* const begin = ++at_;
  uint64_t seen = 0;
  for (;;) {
    while (end_ - at_ >= 8) {
      uint64_t word;
      std::memcpy(&word, at_, 8);
      seen |= word;
      if ((zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\')) != 0) break;
      at_ += 8;
    }
    while (at_ < end_ && *at_ != '"' && *at_ != '\\') seen |= static_cast<unsigned char>(*at_++);
    if (at_ == end_) throw NeedsMore();
    if (*at_ == '"') break;
    has_escapes = true;
    skip_escape();
  }
  if ((seen & kHighBits) != 0) note_ill_formed(begin, at_);
  ++at_;
}

void JsonCursor::skip_escape() {
  if (end_ - at_ < 2) throw NeedsMore();
  constexpr std::string_view kEscapes = "\"\\/bfnrtu";
  const char letter = at_[1];
  if (kEscapes.find(letter) == std::string_view::npos) throw NotJson("no JSON");
  at_ += 2;
  if (letter != 'u') return;
  if (end_ - at_ < 4) throw NeedsMore();
  uint32_t code = 0;
  if (!hex_of(at_, code)) throw NotJson("no JSON");
  at_ += 4;
}

void JsonCursor::skip_object(int depth) {
  if (depth > kMaxDepth) throw NotJson("nested too deeply");
  ++at_;
  if (take('}')) return;
  do {
    if (peek() != '"') throw NotJson("no JSON");
    bool has_escapes = false;
    skip_string(has_escapes);
    expect(':');
    skip_value(depth);
  } while (take(','));
  expect('}');
}

void JsonCursor::skip_list(int depth) {
  if (depth > kMaxDepth) throw NotJson("nested too deeply");
  ++at_;
  if (take(']')) return;
  do {
    skip_value(depth);
  } while (take(','));
  expect(']');
}

void JsonCursor::skip_word() {
  const char* const begin = at_;
  while (at_ < end_ && is_digit(*at_)) ++at_;
  if (at_ < end_ && at_ > begin && *begin != '0' && !is_word_letter(*at_)) return;  // the usual case
  while (at_ < end_ && is_word_letter(*at_)) ++at_;
  const std::string_view word(begin, static_cast<size_t>(at_ - begin));
  constexpr std::string_view kWords[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
  if (at_ == end_) throw NeedsMore();
  if (is_number(word)) return;
  for (const std::string_view known : kWords) {
    if (word == known) return;
  }
  throw NotJson("no JSON");
}

void JsonCursor::note_ill_formed(const char* begin, const char* end) {
  while (begin < end) {
    const auto* const here = reinterpret_cast<const unsigned char*>(begin);
    if (*here < 0x80) {
      ++begin;
      continue;
    }
    const auto available = static_cast<size_t>(end - begin);
    uint32_t code = 0;
    size_t length = stepstats::decode_utf8(here, available, code);
    if (length == 0) {
      if (num_ill_formed_++ == 0) first_ill_formed_ = begin;
      length = stepstats::broken_utf8_length(here, available);
    }
    begin += length;
  }
}

bool is_integer(std::string_view raw, int64_t& value) {
  constexpr size_t kMostDigits = 19;
  const bool is_negative = !raw.empty() && raw[0] == '-';
  if (is_negative) raw.remove_prefix(1);
  if (raw.empty() || raw.size() > kMostDigits || num_digits(raw) != raw.size()) return false;
  uint64_t number = 0;
  for (const char digit : raw) number = number * 10 + static_cast<uint64_t>(digit - '0');
  if (number > uint64_t{INT64_MAX}) return false;
  value = is_negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
  return true;
}

}  // namespace collector::read
