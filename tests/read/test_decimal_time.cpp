// Times as decimal text: exact, to the nearest nanosecond, and nothing for what is no time.
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "read/decimal_time.h"

using collector::read::nanoseconds_of_microseconds;

TEST_CASE("a time is exact to the nanosecond") {
  CHECK(nanoseconds_of_microseconds("0") == 0);
  CHECK(nanoseconds_of_microseconds("-0") == 0);
  CHECK(nanoseconds_of_microseconds("1") == 1000);
  CHECK(nanoseconds_of_microseconds("-1.5") == -1500);
  CHECK(nanoseconds_of_microseconds("+8") == 8000);
  CHECK(nanoseconds_of_microseconds("1700000000001245.375") == 1'700'000'000'001'245'375);
  CHECK(nanoseconds_of_microseconds("0000000000000000000000001") == 1000);
}

TEST_CASE("a finer time is rounded to the nearest nanosecond, of two to the even one") {
  CHECK(nanoseconds_of_microseconds("1.0004") == 1000);
  CHECK(nanoseconds_of_microseconds("1.0005") == 1000);
  CHECK(nanoseconds_of_microseconds("1.0015") == 1002);
  CHECK(nanoseconds_of_microseconds("1.00050000000000000000000000000001") == 1001);
  CHECK(nanoseconds_of_microseconds("1.0009") == 1001);
  CHECK(nanoseconds_of_microseconds("0.0004999") == 0);
  CHECK(nanoseconds_of_microseconds("0.00051") == 1);
  CHECK(nanoseconds_of_microseconds("-0.0006") == -1);
}

TEST_CASE("a time may have an exponent") {
  CHECK(nanoseconds_of_microseconds("1e-1") == 100);
  CHECK(nanoseconds_of_microseconds("1E3") == 1'000'000);
  CHECK(nanoseconds_of_microseconds("12.5e+1") == 125'000);
  CHECK(nanoseconds_of_microseconds("1e-3") == 1);
  CHECK(nanoseconds_of_microseconds("5e-4") == 0);
  CHECK(nanoseconds_of_microseconds("15e-4") == 2);
  CHECK(nanoseconds_of_microseconds("1e-99999999999999999999") == 0);
  CHECK(nanoseconds_of_microseconds("0e99999999999999999999") == 0);
}

TEST_CASE("146 years are no time, and neither is what is no number") {
  CHECK(nanoseconds_of_microseconds("4611686018427387.903") == collector::read::kMaxNanoseconds - 1);
  CHECK(nanoseconds_of_microseconds("-4611686018427387.903") == 1 - collector::read::kMaxNanoseconds);
  CHECK(nanoseconds_of_microseconds("4.6116860184273879030e15") == collector::read::kMaxNanoseconds - 1);
  for (const char* const text : {"",
                                 "-",
                                 "+",
                                 ".",
                                 "e1",
                                 "1e",
                                 "1e+",
                                 "1.2.3",
                                 "1 ",
                                 "NaN",
                                 "Infinity",
                                 "-Infinity",
                                 "soon",
                                 "0x10",
                                 "1_000",
                                 "4611686018427387.904",
                                 "-4611686018427387.904",
                                 "9999999999999999",
                                 "99999999999999999999999",
                                 "1e20",
                                 "1e999",
                                 "1e99999999999999999999"}) {
    CAPTURE(text);
    CHECK(nanoseconds_of_microseconds(text) == std::nullopt);
  }
}
