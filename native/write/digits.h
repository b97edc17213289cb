// Prints numbers as decimal text, eight digits at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace collector::write {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight digits are made as one number below");

// The room that put_decimal needs for any number.
inline constexpr int kDecimalRoom = 32;

// The eight decimal digits of a number below 10^8 as values from 0 to 9, the highest digit in the lowest byte. The
// number is divided into halves of four digits, quarters of two, and bytes of one. The divisions are multiplications
// that are exact in their range.
inline uint64_t eight_digits(uint32_t number) {
  const uint64_t fours = number / 10000 | static_cast<uint64_t>(number % 10000) << 32;
  const uint64_t hundreds = fours * 10486 >> 20 & 0x0000007F0000007Fu;
  const uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  const uint64_t tens = twos * 103 >> 10 & 0x000F000F000F000Fu;
  return tens | (twos - tens * 10) << 8;
}

inline constexpr uint64_t kEightZeros = 0x3030303030303030u;

inline char* put_eight_digits(char* to, uint32_t number) {
  const uint64_t text = eight_digits(number) | kEightZeros;
  std::memcpy(to, &text, 8);
  return to + 8;
}

// Writes a number below 10^8 without leading zeros and returns the end of the text; bytes behind the end may be
// overwritten.
inline char* put_few_digits(char* to, uint32_t number) {
  const uint64_t digits = eight_digits(number);
  const int leading_zeros = __builtin_ctzll(digits | uint64_t{1} << 56) / 8;  // keeps the last digit
  const uint64_t text = (digits | kEightZeros) >> 8 * leading_zeros;
  std::memcpy(to, &text, 8);
  return to + 8 - leading_zeros;
}

// Like put_few_digits, but for any number.
inline char* put_decimal(char* to, uint64_t number) {
  constexpr uint64_t kEightDigits = 100'000'000;
  if (number < kEightDigits) return put_few_digits(to, static_cast<uint32_t>(number));
  const uint64_t high = number / kEightDigits;
  if (high < kEightDigits) {
    to = put_few_digits(to, static_cast<uint32_t>(high));
  } else {
    to = put_few_digits(to, static_cast<uint32_t>(high / kEightDigits));
    to = put_eight_digits(to, static_cast<uint32_t>(high % kEightDigits));
  }
  return put_eight_digits(to, static_cast<uint32_t>(number % kEightDigits));
}

inline char* put_decimal(char* to, int64_t number) {
  if (number >= 0) return put_decimal(to, static_cast<uint64_t>(number));
  *to = '-';
  return put_decimal(to + 1, uint64_t{0} - static_cast<uint64_t>(number));
}

// Prints numbers that usually differ only in their last eight digits, as the times of a step do.
class NearNumbers {
 public:
  // Like put_decimal.
  char* put(char* to, int64_t number) {
    constexpr uint64_t kEightDigits = 100'000'000;
    const uint64_t high = static_cast<uint64_t>(number) / kEightDigits;
    if (high == 0 || high >= kEightDigits) return put_decimal(to, number);  // other leading digits, or a sign
    if (high != high_) {
      high_ = high;
      high_digits_ = put_few_digits(text_, static_cast<uint32_t>(high)) - text_;
    }
    std::memcpy(to, text_, 8);
    return put_eight_digits(to + high_digits_, static_cast<uint32_t>(static_cast<uint64_t>(number) % kEightDigits));
  }

 private:
  uint64_t high_ = 0;
  ptrdiff_t high_digits_ = 0;
  char text_[8] = {};
};

}  // namespace collector::write
