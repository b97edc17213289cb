// Unions, gaps and sweeps, held against plain counts of every nanosecond.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/intervals.h"
#include "analysis/rows_by_start.h"
#include "analysis/sweep.h"

namespace {

using namespace collector::analysis;

constexpr int64_t kEnd = 80;

struct Rows {
  std::vector<int64_t> starts, ends, groups;
  std::vector<uint32_t> devices;
  std::vector<uint8_t> classes;

  IntervalColumns columns() const { return {{starts.data(), starts.size()}, {ends.data(), ends.size()}}; }
  Column<int64_t> group_column() const { return {groups.data(), groups.size()}; }
  ActivityColumns activities() const {
    return {columns(), {devices.data(), devices.size()}, {classes.data(), classes.size()}};
  }
  bool covers(size_t row, int64_t time) const { return starts[row] <= time && time < ends[row]; }
  std::set<int64_t> instants() const {
    std::set<int64_t> found;
    for (size_t row = 0; row < starts.size(); ++row) {
      for (int64_t time = starts[row]; time < ends[row]; ++time) found.insert(time);
    }
    return found;
  }
};

Rows random_rows(std::mt19937_64& random, size_t size) {
  Rows rows;
  for (size_t row = 0; row < size; ++row) {
    rows.starts.push_back(static_cast<int64_t>(random() % 60));
    rows.ends.push_back(rows.starts.back() + static_cast<int64_t>(random() % 15) - 2);
    rows.groups.push_back(static_cast<int64_t>(random() % 3));
    rows.devices.push_back(static_cast<uint32_t>(random() % 2));
    rows.classes.push_back(static_cast<uint8_t>(random() % kMaxClasses));
  }
  return rows;
}

std::set<int64_t> instants_of(const Intervals& intervals) {
  return Rows{intervals.starts, intervals.ends, {}, {}, {}}.instants();
}

}  // namespace

TEST_CASE("rows come in the order of their starts, of equal ones the first first") {
  std::mt19937_64 random(1);
  for (const size_t size : {0, 1, 5, 300, 3000}) {
    const Rows rows = random_rows(random, size);
    std::vector<int64_t> expected(size);
    for (size_t row = 0; row < size; ++row) expected[row] = static_cast<int64_t>(row);
    std::stable_sort(expected.begin(), expected.end(), [&rows](int64_t a, int64_t b) {
      const auto key = [&rows](int64_t row) {
        return std::pair{rows.devices[static_cast<size_t>(row)], rows.starts[static_cast<size_t>(row)]};
      };
      return key(a) < key(b);
    });
    const IntervalColumns columns = rows.columns();
    CHECK(order_by_device_and_start({columns.starts}, {{rows.devices.data(), size}}) == expected);
  }
}

TEST_CASE("rows of several tables are merged") {
  const std::vector<int64_t> kernels{10, 30, 20, 40};  // two streams
  const std::vector<int64_t> copies{15, 30};
  const std::vector<uint32_t> devices(4);
  CHECK(order_by_device_and_start({{kernels.data(), 4}, {copies.data(), 2}},
                                  {{devices.data(), 4}, {devices.data(), 2}}) ==
        std::vector<int64_t>{0, 4, 2, 1, 5, 3});
}

TEST_CASE("unions, overlaps, differences and gaps are those of sets") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    const Rows rows = random_rows(random, random() % 9);
    const Rows others = random_rows(random, random() % 9);
    const Intervals one = union_of(rows.columns());
    const Intervals other = union_of(others.columns());
    const std::set<int64_t> mine = rows.instants();
    const std::set<int64_t> theirs = others.instants();
    CHECK(instants_of(one) == mine);
    for (size_t at = 1; at < one.starts.size(); ++at) CHECK(one.starts[at] > one.ends[at - 1]);

    std::set<int64_t> both, left, free;
    std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::inserter(both, both.end()));
    std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::inserter(left, left.end()));
    CHECK(overlap_length(one.columns(), other.columns()) == static_cast<int64_t>(both.size()));
    CHECK(instants_of(difference_of(one.columns(), other.columns())) == left);

    const std::vector<int64_t> lengths = covered_lengths(one.columns(), others.columns());
    for (size_t row = 0; row < others.starts.size(); ++row) {
      int64_t expected = 0;
      for (int64_t time = others.starts[row]; time < others.ends[row]; ++time) expected += mine.count(time) > 0 ? 1 : 0;
      if (others.ends[row] >= others.starts[row]) CHECK(lengths[row] == expected);
    }

    const Gaps gaps = gaps_between(rows.columns(), 0, kEnd);
    for (int64_t time = 0; time < kEnd; ++time) {
      if (mine.count(time) == 0) free.insert(time);
    }
    CHECK(instants_of(gaps.free) == free);
    for (size_t at = 0; at < gaps.next.size(); ++at) {
      const int64_t end = gaps.free.ends[at];
      if (gaps.next[at] < 0) {
        CHECK(end == kEnd);
      } else {
        CHECK(rows.starts[static_cast<size_t>(gaps.next[at])] == end);
      }
    }
  }
}

TEST_CASE("a gap is cut to the window") {
  const std::vector<int64_t> starts{-20, 30, 95};
  const std::vector<int64_t> ends{5, 40, 200};
  const Gaps gaps = gaps_between({{starts.data(), 3}, {ends.data(), 3}}, 0, 90);
  CHECK(gaps.free.starts == std::vector<int64_t>{5, 40});
  CHECK(gaps.free.ends == std::vector<int64_t>{30, 90});
  CHECK(gaps.next == std::vector<int64_t>{1, -1});
}

TEST_CASE("a sweep counts every nanosecond by what ran") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const Rows kernels = random_rows(random, random() % 12);
    const Rows copies = random_rows(random, random() % 4);
    for (const DeviceTimes& device : sweep_devices({kernels.activities(), copies.activities()}, std::pair{10, 50})) {
      TimesByClasses by_classes{};
      std::vector<int64_t> by_number(32);
      uint64_t num_activities = 0;
      for (int64_t time = 10; time < 50; ++time) {
        size_t number = 0, classes = 0;
        for (const Rows* rows : {&kernels, &copies}) {
          for (size_t row = 0; row < rows->starts.size(); ++row) {
            if (rows->devices[row] != device.device) continue;
            if (time == 10) ++num_activities;
            if (!rows->covers(row, time)) continue;
            ++number;
            classes |= size_t{1} << rows->classes[row];
          }
        }
        ++by_classes[classes];
        ++by_number[number];
      }
      CHECK(device.by_classes == by_classes);
      CHECK(device.num_activities == num_activities);
      for (size_t number = 0; number < by_number.size(); ++number) {
        CHECK((number < device.by_number.size() ? device.by_number[number] : 0) == by_number[number]);
      }
    }
  }
}

TEST_CASE("groups: what each covers, and what it covers alone") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const Rows rows = random_rows(random, random() % 12);
    std::vector<int64_t> covered(3), alone(3);
    for (int64_t time = 0; time < kEnd; ++time) {
      std::set<int64_t> running;
      for (size_t row = 0; row < rows.starts.size(); ++row) {
        if (rows.covers(row, time)) running.insert(rows.groups[row]);
      }
      for (const int64_t group : running) ++covered[static_cast<size_t>(group)];
      if (running.size() == 1) ++alone[static_cast<size_t>(*running.begin())];
    }
    const GroupTimes times = sweep_groups(rows.columns(), rows.group_column(), 3);
    CHECK(times.covered == covered);
    CHECK(times.alone == alone);
    CHECK(covered_by_group(rows.columns(), rows.group_column(), 3) == covered);
  }
}

TEST_CASE("a number that no group or class has is refused") {
  Rows rows;
  rows.starts = {0};
  rows.ends = {1};
  rows.groups = {3};
  rows.devices = {0};
  rows.classes = {kMaxClasses};
  CHECK_THROWS_AS(sweep_groups(rows.columns(), rows.group_column(), 3), std::out_of_range);
  CHECK_THROWS_AS(covered_by_group(rows.columns(), rows.group_column(), 3), std::out_of_range);
  CHECK_THROWS_AS(sweep_devices({rows.activities()}, std::nullopt), std::out_of_range);
}

TEST_CASE("times that are further apart than a number says wrap and do no harm") {
  const std::vector<int64_t> starts{INT64_MIN, 0};
  const std::vector<int64_t> ends{INT64_MAX, 5};
  const IntervalColumns columns{{starts.data(), 2}, {ends.data(), 2}};
  const Intervals joined = union_of(columns);
  CHECK(joined.starts == std::vector<int64_t>{INT64_MIN});
  CHECK(times_by_number(columns, INT64_MIN, INT64_MAX)[2] == 5);
}
