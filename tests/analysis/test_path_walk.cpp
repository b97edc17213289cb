// The walk along the critical path: its segments tile the time, whatever the times are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/critical_path.h"

namespace {

using namespace collector::analysis;
using Values = std::vector<int64_t>;

Column<int64_t> column(const Values& values) { return {values.data(), values.size()}; }

struct Given {
  Values starts, ends, streams, call_times, threads, graphs;
  Values waiting, called_at, sources, recorded_at;
  Values wait_threads, wait_starts, wait_ends, wait_activities, wait_sets, launched_until;
  Values set_bounds{0, 0}, set_streams;

  void activity(int64_t start, int64_t end, int64_t stream, int64_t called, int64_t graph = kNone) {
    starts.push_back(start);
    ends.push_back(end);
    streams.push_back(stream);
    call_times.push_back(called);
    threads.push_back(called == kNone ? kNone : 0);
    graphs.push_back(graph);
  }
  Path path(int64_t first, int64_t kernel_gap_ns = 2000) const {
    return critical_path(
        {{column(starts), column(ends)}, column(streams), column(call_times), column(threads), column(graphs)},
        {column(waiting), column(called_at), column(sources), column(recorded_at)},
        {{column(wait_starts), column(wait_ends)},
         column(wait_threads),
         column(wait_activities),
         column(wait_sets),
         column(launched_until),
         column(set_bounds),
         column(set_streams)},
        first, kernel_gap_ns);
  }
};

int64_t time_of(const Path& path, SegmentKind kind) {
  int64_t length = 0;
  for (size_t at = 0; at < path.kinds.size(); ++at) {
    if (path.kinds[at] == static_cast<uint8_t>(kind)) length += path.ends[at] - path.starts[at];
  }
  return length;
}

}  // namespace

TEST_CASE("nothing has no path") { CHECK(Given().path(0).kinds.empty()); }

TEST_CASE("an activity whose call is not known begins with what is not known") {
  Given given;
  given.activity(100, 150, 0, kNone);
  const Path path = given.path(20);
  CHECK(path.starts == Values{20, 100});
  CHECK(path.ends == Values{100, 150});
  CHECK(time_of(path, SegmentKind::kUnknown) == 80);
}

TEST_CASE("a short gap behind the activity before is one between kernels, a long one a dependency") {
  Given given;
  given.activity(100, 150, 0, 10);
  given.activity(160, 200, 0, 20);
  CHECK(time_of(given.path(0), SegmentKind::kKernelGap) == 10);
  CHECK(time_of(given.path(0, 9), SegmentKind::kDependency) == 10);
}

TEST_CASE("a node of a graph waits for the node of its launch that ended last before") {
  Given given;
  given.activity(100, 150, 0, 10, 4);
  given.activity(155, 200, 1, 10, 4);
  const Path path = given.path(0);
  CHECK(path.rows == Values{0, 0, 0, 1, 1});
  CHECK(time_of(path, SegmentKind::kDependency) == 5);
}

TEST_CASE("of activities that ran at once on a stream the last to end counts") {
  Given given;
  given.activity(100, 500, 0, 10);
  given.activity(110, 450, 0, 10);
  given.activity(120, 130, 0, 10);
  given.activity(460, 470, 0, 10);  // the first one still runs, the second one has ended
  CHECK(given.path(0).rows == Values{0, 0, 0});
  given.activity(510, 600, 0, 20);
  CHECK(given.path(0).rows == Values{0, 0, 0, 4, 4});
  given.starts[4] = 480;
  given.ends[4] = 600;
  CHECK(given.path(0).rows == Values{0, 0, 0, 1, 3, 3, 4, 4});
}

TEST_CASE("a wait of the host that had to wait leads to what it waited for") {
  Given given;
  given.activity(100, 400, 0, 10);
  given.activity(600, 700, 0, 500);
  given.wait_threads = {0, 0};
  given.wait_starts = {50, 460};
  given.wait_ends = {450, 470};
  given.wait_activities = {kNone, kNone};
  given.wait_sets = {0, 0};
  given.launched_until = {50, 460};
  given.set_bounds = {0, 1};
  given.set_streams = {0};
  const Path path = given.path(0);
  CHECK(time_of(path, SegmentKind::kSynchronize) == 50);
  CHECK(time_of(path, SegmentKind::kHost) == 60);
  CHECK(path.rows[static_cast<size_t>(
            std::find(path.kinds.begin(), path.kinds.end(), static_cast<uint8_t>(SegmentKind::kSynchronize)) -
            path.kinds.begin())] == 0);
}

TEST_CASE("time that a wait for an unknown event may explain is neither latency nor a dependency") {
  Given given;
  given.activity(100, 150, 0, 10);
  given.activity(160, 200, 0, 20);
  given.waiting = {0, 0};
  given.called_at = {5, 15};
  given.sources = {kNone, kNone};
  given.recorded_at = {kNone, kNone};
  CHECK(time_of(given.path(0, 5), SegmentKind::kEventWait) == 90 + 10);
  CHECK(time_of(given.path(0), SegmentKind::kEventWait) == 90);
  given.sources[0] = 1;
  CHECK(time_of(given.path(0), SegmentKind::kLaunchLatency) == 90);
}

TEST_CASE("activities in no order are refused") {
  Given given;
  given.activity(100, 150, 0, 10);
  given.activity(50, 200, 0, 10);
  CHECK_THROWS_AS(given.path(0), std::invalid_argument);
}

TEST_CASE("segments tile the time, whatever happened") {
  std::mt19937_64 random(5);
  const auto number = [&random](uint64_t below) { return static_cast<int64_t>(random() % below); };
  for (int round = 0; round < 3000; ++round) {
    Given given;
    Values starts(static_cast<size_t>(1 + number(20)));
    for (int64_t& start : starts) start = number(300);
    std::sort(starts.begin(), starts.end());
    for (const int64_t start : starts) {
      given.activity(start, start + number(30), number(3), number(4) == 0 ? kNone : number(300),
                     number(2) == 0 ? kNone : number(3));
    }
    for (int64_t wait = number(4); wait > 0; --wait) {
      given.waiting.push_back(number(4) - 1);
      given.called_at.push_back(number(300));
      given.sources.push_back(number(5) - 1);
      given.recorded_at.push_back(number(300));
    }
    Values wait_ends(static_cast<size_t>(number(6)));
    for (int64_t& end : wait_ends) end = number(320);
    std::sort(wait_ends.begin(), wait_ends.end());
    for (const int64_t end : wait_ends) {
      given.wait_threads.push_back(0);
      given.wait_ends.push_back(end);
      given.wait_starts.push_back(end - number(100));
      given.wait_activities.push_back(number(2) == 0 ? kNone : number(starts.size()));
      given.wait_sets.push_back(0);
      given.launched_until.push_back(given.wait_starts.back());
    }
    given.set_bounds = {0, 3};
    given.set_streams = {0, 1, 2};
    const int64_t first = std::min<int64_t>(0, starts.front());
    const Path path = given.path(first);
    const int64_t last = *std::max_element(given.ends.begin(), given.ends.end());
    int64_t now = first;
    for (size_t at = 0; at < path.kinds.size(); ++at) {
      CHECK(path.starts[at] == now);
      CHECK(path.ends[at] > path.starts[at]);
      now = path.ends[at];
    }
    CHECK(now == last);
  }
}
