#include "read/decimal_time.h"

#include <algorithm>
#include <cstddef>

#include "stepstats/ascii.h"

namespace collector::read {

using stepstats::is_digit;

namespace {

constexpr int64_t kThreeDigits = 3;  // from microseconds to nanoseconds
constexpr int64_t kMostDigits = 19;  // of a number below kMaxNanoseconds
constexpr int64_t kLargestExponent = 1 << 20;

// The digits of a number without its point.
class Digits {
 public:
  Digits(std::string_view whole, std::string_view fraction) : whole_(whole), fraction_(fraction) {}
  size_t size() const { return whole_.size() + fraction_.size(); }
  int operator[](size_t at) const { return (at < whole_.size() ? whole_[at] : fraction_[at - whole_.size()]) - '0'; }

 private:
  std::string_view whole_;
  std::string_view fraction_;
};

std::string_view take_digits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// The integer of the digits before `end`, rounded by the digits from `end` on.
std::optional<int64_t> rounded(const Digits& digits, size_t begin, size_t end) {
  if (end > begin && end - begin > static_cast<size_t>(kMostDigits)) return std::nullopt;
  uint64_t value = 0;
  for (size_t at = begin; at < end; ++at) value = value * 10 + static_cast<uint64_t>(digits[at]);
  if (end < digits.size() && digits[end] >= 5) {
    bool is_half = digits[end] == 5;
    for (size_t at = end + 1; is_half && at < digits.size(); ++at) is_half = digits[at] == 0;
    if (!is_half || value % 2 == 1) ++value;
  }
  if (value >= static_cast<uint64_t>(kMaxNanoseconds)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// The fast path for most times: at most 16 digits, and up to three behind the point. Nothing for other texts.
std::optional<int64_t> plain_nanoseconds(std::string_view text) {
  constexpr size_t kMostPlain = 16;  // times since the epoch have 16
  uint64_t value = 0;
  size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) value = value * 10 + static_cast<uint64_t>(text[at] - '0');
  if (at == 0 || at > kMostPlain) return std::nullopt;
  size_t places = 0;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]) && places < 3; ++at, ++places) {
      value = value * 10 + static_cast<uint64_t>(text[at] - '0');
    }
    if (places == 0) return std::nullopt;
  }
  if (at != text.size()) return std::nullopt;
  for (; places < 3; ++places) value *= 10;
  return value < static_cast<uint64_t>(kMaxNanoseconds) ? std::optional<int64_t>(value) : std::nullopt;
}

}  // namespace

std::optional<int64_t> nanoseconds_of_microseconds(std::string_view text) {
  if (const std::optional<int64_t> plain = plain_nanoseconds(text)) return plain;
  const bool is_negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (is_negative || text[0] == '+')) text.remove_prefix(1);
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  int64_t exponent = 0;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    const bool is_small = !text.empty() && text[0] == '-';
    if (!text.empty() && (is_small || text[0] == '+')) text.remove_prefix(1);
    const std::string_view power = take_digits(text);
    if (power.empty()) return std::nullopt;
    for (const char digit : power) exponent = std::min(exponent * 10 + (digit - '0'), kLargestExponent);
    if (is_small) exponent = -exponent;
  }
  if (!text.empty()) return std::nullopt;

  const Digits digits(whole, fraction);
  size_t begin = 0;
  while (begin < digits.size() && digits[begin] == 0) ++begin;
  if (begin == digits.size()) return 0;
  // The position of the point in nanoseconds, which may lie before or behind all digits.
  const int64_t point = static_cast<int64_t>(whole.size()) + exponent + kThreeDigits;
  const auto first = static_cast<int64_t>(begin);
  const auto last = static_cast<int64_t>(digits.size());
  if (point < first) return 0;
  if (point - first > kMostDigits) return std::nullopt;
  std::optional<int64_t> value = rounded(digits, begin, static_cast<size_t>(std::min(point, last)));
  for (int64_t at = last; value && at < point; ++at) {
    value = *value < kMaxNanoseconds / 10 ? std::optional<int64_t>(*value * 10) : std::nullopt;
  }
  if (value && is_negative) value = -*value;
  return value;
}

}  // namespace collector::read
