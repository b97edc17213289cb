// The lane of an activity: the first whose last activity has ended, compared with a plain search.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "draw/lanes.h"

using collector::draw::Lanes;

TEST_CASE("an activity takes the first lane that is free") {
  Lanes lanes;
  CHECK(lanes.place(0, 10) == 0);
  CHECK(lanes.place(5, 8) == 1);
  CHECK(lanes.place(9, 12) == 1);
  CHECK(lanes.place(11, 20) == 0);
  CHECK(lanes.size() == 2);
  lanes.clear();
  CHECK(lanes.size() == 0);
  CHECK(lanes.place(0, 1) == 0);
}

TEST_CASE("a lane whose end is the given time is not free") {
  Lanes lanes;
  CHECK(lanes.place(0, 10) == 0);
  CHECK(lanes.place(10, 20) == 1);
}

TEST_CASE("lanes are those of a plain search") {
  std::mt19937_64 random(7);
  Lanes lanes;
  std::vector<int64_t> ends;
  int64_t now = -500;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<int64_t>(random() % 5);
    const int64_t end = now + static_cast<int64_t>(random() % 400);
    size_t expected = 0;
    while (expected < ends.size() && ends[expected] >= now) ++expected;
    if (expected == ends.size()) ends.push_back(0);
    ends[expected] = end;
    REQUIRE(lanes.place(now, end) == expected);
    REQUIRE(lanes.size() == ends.size());
  }
}
