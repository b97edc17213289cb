// Numbers as decimal text, against the standard library's.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "write/digits.h"

using namespace collector::write;

namespace {

template <typename Number>
std::string decimal(Number number) {
  char text[kDecimalRoom];
  return {text, static_cast<size_t>(put_decimal(text, number) - text)};
}

std::vector<uint64_t> numbers() {
  std::vector<uint64_t> found{0, std::numeric_limits<uint64_t>::max()};
  for (uint64_t power = 1;; power *= 10) {
    for (const uint64_t number : {power - 1, power, power + 1, power * 9}) found.push_back(number);
    if (power > std::numeric_limits<uint64_t>::max() / 10) break;
  }
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) found.push_back(random() >> random() % 64);
  return found;
}

}  // namespace

TEST_CASE("numbers of every length are written as the standard library writes them") {
  for (const uint64_t number : numbers()) {
    REQUIRE(decimal(number) == std::to_string(number));
    const auto with_sign = static_cast<int64_t>(number);
    REQUIRE(decimal(with_sign) == std::to_string(with_sign));
  }
}

TEST_CASE("eight digits keep their leading zeros") {
  for (const uint32_t number : {0u, 1u, 9'999u, 10'000u, 12'345'678u, 99'999'999u}) {
    char text[8];
    CHECK(put_eight_digits(text, number) == text + 8);
    const std::string digits = std::to_string(number);
    CHECK(std::string(text, 8) == std::string(8 - digits.size(), '0') + digits);
  }
}

TEST_CASE("numbers that are near one another are written as any other") {
  NearNumbers near;
  char text[kDecimalRoom];
  int64_t time = 1'700'000'000'000'000'000;
  for (const int64_t step : {0, 1, 99'999'999, 100'000'000, 7, -300'000'000}) {
    time += step;
    CHECK(std::string(text, static_cast<size_t>(near.put(text, time) - text)) == std::to_string(time));
  }
  for (const uint64_t number : numbers()) {
    const auto with_sign = static_cast<int64_t>(number);
    REQUIRE(std::string(text, static_cast<size_t>(near.put(text, with_sign) - text)) == std::to_string(with_sign));
  }
}
