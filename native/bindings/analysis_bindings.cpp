#include "bindings/analysis_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/critical_path.h"
#include "analysis/intervals.h"
#include "analysis/nested_ranges.h"
#include "analysis/rows_by_start.h"
#include "analysis/sweep.h"
#include "bindings/gil.h"
#include "bindings/moved_array.h"

namespace py = pybind11;

namespace collector::bindings {
namespace {

template <typename Value>
using Array = py::array_t<Value, py::array::c_style>;
using Int64s = Array<int64_t>;

template <typename Value>
analysis::Column<Value> column(const Array<Value>& array) {
  if (array.ndim() != 1) throw py::value_error("a column is no array of one dimension");
  return {array.data(), static_cast<size_t>(array.size())};
}

template <typename Value>
analysis::Column<Value> column(const Array<Value>& array, size_t rows) {
  const analysis::Column<Value> found = column(array);
  if (found.size != rows) throw py::value_error("the columns differ in length");
  return found;
}

analysis::IntervalColumns intervals(const Int64s& starts, const Int64s& ends) {
  const analysis::Times first = column(starts);
  return {first, column(ends, first.size)};
}

template <typename Value>
py::array_t<Value> moved(std::vector<Value> values) {
  return moved_array<Value>(std::move(values));
}

py::tuple moved(analysis::Intervals found) {
  return py::make_tuple(moved(std::move(found.starts)), moved(std::move(found.ends)));
}

template <typename Work>
auto without_gil(Work work) {
  const GilRelease no_gil;
  return work();
}

py::tuple interval_union(const Int64s& starts, const Int64s& ends) {
  const analysis::IntervalColumns given = intervals(starts, ends);
  return moved(without_gil([&] { return analysis::union_of(given); }));
}

Int64s covered_lengths(const Int64s& union_starts, const Int64s& union_ends, const Int64s& starts, const Int64s& ends) {
  const analysis::IntervalColumns covering = intervals(union_starts, union_ends);
  const analysis::IntervalColumns given = intervals(starts, ends);
  return moved(without_gil([&] { return analysis::covered_lengths(covering, given); }));
}

int64_t overlap_length(const Int64s& starts, const Int64s& ends, const Int64s& other_starts, const Int64s& other_ends) {
  const analysis::IntervalColumns one = intervals(starts, ends);
  const analysis::IntervalColumns other = intervals(other_starts, other_ends);
  return without_gil([&] { return analysis::overlap_length(one, other); });
}

py::tuple interval_difference(const Int64s& starts, const Int64s& ends, const Int64s& taken_starts,
                              const Int64s& taken_ends) {
  const analysis::IntervalColumns from = intervals(starts, ends);
  const analysis::IntervalColumns taken = intervals(taken_starts, taken_ends);
  return moved(without_gil([&] { return analysis::difference_of(from, taken); }));
}

Int64s covered_by_group(const Int64s& groups, const Int64s& starts, const Int64s& ends, size_t count) {
  const analysis::IntervalColumns given = intervals(starts, ends);
  const analysis::Column<int64_t> numbers = column(groups, given.size());
  return moved(without_gil([&] { return analysis::covered_by_group(given, numbers, count); }));
}

py::tuple interval_gaps(const Int64s& starts, const Int64s& ends, int64_t begin_ns, int64_t end_ns) {
  const analysis::IntervalColumns given = intervals(starts, ends);
  analysis::Gaps gaps = without_gil([&] { return analysis::gaps_between(given, begin_ns, end_ns); });
  return py::make_tuple(moved(std::move(gaps.free.starts)), moved(std::move(gaps.free.ends)),
                        moved(std::move(gaps.next)));
}

Int64s times_by_number(const Int64s& starts, const Int64s& ends, int64_t begin_ns, int64_t end_ns) {
  const analysis::IntervalColumns given = intervals(starts, ends);
  return moved(without_gil([&] { return analysis::times_by_number(given, begin_ns, end_ns); }));
}

py::tuple sweep_groups(const Int64s& groups, const Int64s& starts, const Int64s& ends, size_t count) {
  const analysis::IntervalColumns given = intervals(starts, ends);
  const analysis::Column<int64_t> numbers = column(groups, given.size());
  analysis::GroupTimes times = without_gil([&] { return analysis::sweep_groups(given, numbers, count); });
  return py::make_tuple(moved(std::move(times.covered)), moved(std::move(times.alone)));
}

// (starts, ends, devices, classes)
using GivenActivities = std::tuple<Int64s, Int64s, Array<uint32_t>, Array<uint8_t>>;

py::list sweep_devices(const std::vector<GivenActivities>& given,
                       const std::optional<std::pair<int64_t, int64_t>>& window) {
  std::vector<analysis::ActivityColumns> tables;
  for (const auto& [starts, ends, devices, classes] : given) {
    const analysis::IntervalColumns times = intervals(starts, ends);
    tables.push_back({times, column(devices, times.size()), column(classes, times.size())});
  }
  std::vector<analysis::DeviceTimes> found = without_gil([&] { return analysis::sweep_devices(tables, window); });
  py::list answer;
  for (analysis::DeviceTimes& device : found) {
    answer.append(py::make_tuple(device.device, device.num_activities, device.first_start, device.last_end,
                                 Int64s(static_cast<py::ssize_t>(device.by_classes.size()), device.by_classes.data()),
                                 moved(std::move(device.by_number))));
  }
  return answer;
}

Int64s order_by_device_and_start(const std::vector<std::pair<Array<uint32_t>, Int64s>>& tables) {
  std::vector<analysis::Times> starts;
  std::vector<analysis::Column<uint32_t>> devices;
  for (const auto& [own_devices, own_starts] : tables) {
    starts.push_back(column(own_starts));
    devices.push_back(column(own_devices, starts.back().size));
  }
  return moved(without_gil([&] { return analysis::order_by_device_and_start(starts, devices); }));
}

py::tuple nested_ranges(const Int64s& order, const Int64s& threads, const Int64s& ends_ns) {
  const auto rows = column(order);
  const auto of_rows = column(threads, rows.size);
  const auto ends = column(ends_ns, rows.size);
  analysis::NestedRanges found = without_gil([&] { return analysis::nested_ranges(rows, of_rows, ends); });
  return py::make_tuple(moved(std::move(found.parents)), moved(std::move(found.depths)));
}

// Activities: starts, ends, streams, times of calls, threads, graphs.
using GivenPathActivities = std::tuple<Int64s, Int64s, Int64s, Int64s, Int64s, Int64s>;
// Waits of streams: streams, times of calls, streams waited for, times of the records.
using GivenStreamWaits = std::tuple<Int64s, Int64s, Int64s, Int64s>;
// Waits of the host: threads, starts, ends, activities, sets of streams, times until which launches count.
using GivenHostWaits = std::tuple<Int64s, Int64s, Int64s, Int64s, Int64s, Int64s>;

py::tuple critical_path(const GivenPathActivities& given, const GivenStreamWaits& given_waits,
                        const GivenHostWaits& given_host_waits, const std::vector<Int64s>& stream_sets,
                        int64_t first_ns, int64_t kernel_gap_ns) {
  const auto& [starts, ends, streams, call_times, threads, graphs] = given;
  analysis::PathActivities activities{intervals(starts, ends), {}, {}, {}, {}};
  const size_t rows = activities.size();
  activities.streams = column(streams, rows);
  activities.call_times = column(call_times, rows);
  activities.threads = column(threads, rows);
  activities.graphs = column(graphs, rows);

  const auto& [wait_streams, called_at, sources, recorded_at] = given_waits;
  const analysis::Column<int64_t> waiting = column(wait_streams);
  const analysis::StreamWaits stream_waits{waiting, column(called_at, waiting.size), column(sources, waiting.size),
                                           column(recorded_at, waiting.size)};

  const auto& [wait_threads, wait_starts, wait_ends, wait_activities, wait_sets, launched_until] = given_host_waits;
  std::vector<int64_t> set_bounds{0};
  std::vector<int64_t> set_streams;
  for (const Int64s& set : stream_sets) {
    const analysis::Column<int64_t> members = column(set);
    set_streams.insert(set_streams.end(), members.values, members.values + members.size);
    set_bounds.push_back(static_cast<int64_t>(set_streams.size()));
  }
  analysis::HostWaits host_waits{intervals(wait_starts, wait_ends), {}, {}, {}, {}, {}, {}};
  const size_t num_waits = host_waits.times.size();
  host_waits.threads = column(wait_threads, num_waits);
  host_waits.activities = column(wait_activities, num_waits);
  host_waits.stream_sets = column(wait_sets, num_waits);
  host_waits.launched_until = column(launched_until, num_waits);
  host_waits.set_bounds = {set_bounds.data(), set_bounds.size()};
  host_waits.set_streams = {set_streams.data(), set_streams.size()};
  for (size_t wait = 0; wait < num_waits; ++wait) {
    const int64_t activity = host_waits.activities[wait];
    const int64_t set = host_waits.stream_sets[wait];
    const bool has_activity = activity >= 0 && static_cast<size_t>(activity) < rows;
    const bool has_set = set >= 0 && static_cast<size_t>(set) < stream_sets.size();
    if (!has_activity && (activity != analysis::kNone || !has_set)) {
      throw py::value_error("a wait for no activity and no set of streams");
    }
  }

  analysis::Path path = without_gil(
      [&] { return analysis::critical_path(activities, stream_waits, host_waits, first_ns, kernel_gap_ns); });
  return py::make_tuple(moved(std::move(path.kinds)), moved(std::move(path.starts)), moved(std::move(path.ends)),
                        moved(std::move(path.rows)));
}

}  // namespace

void bind_analysis(py::module_& module) {
  module.def("interval_union", &interval_union, py::arg("starts"), py::arg("ends"),
             "The starts and ends of the union of any intervals: it does not touch itself and is in order.");
  module.def("covered_lengths", &covered_lengths, py::arg("union_starts"), py::arg("union_ends"), py::arg("starts"),
             py::arg("ends"), "The length of each interval that a union covers.");
  module.def("overlap_length", &overlap_length, py::arg("starts"), py::arg("ends"), py::arg("other_starts"),
             py::arg("other_ends"), "The length that both of two unions cover.");
  module.def("interval_difference", &interval_difference, py::arg("starts"), py::arg("ends"), py::arg("taken_starts"),
             py::arg("taken_ends"), "The starts and ends of what of one union another one leaves.");
  module.def("covered_by_group", &covered_by_group, py::arg("groups"), py::arg("starts"), py::arg("ends"),
             py::arg("count"),
             "For each of the groups 0 to `count` - 1 the length that at least one of its intervals covers.");
  module.def(
      "interval_gaps", &interval_gaps, py::arg("starts"), py::arg("ends"), py::arg("begin_ns"), py::arg("end_ns"),
      "What intervals leave free of a window: starts, ends, and the row of what starts at each end, -1: nothing.");
  module.def("times_by_number", &times_by_number, py::arg("starts"), py::arg("ends"), py::arg("begin_ns"),
             py::arg("end_ns"), "How long 0, 1, 2, ... of the intervals ran at once, in a window.");
  module.def("sweep_groups", &sweep_groups, py::arg("groups"), py::arg("starts"), py::arg("ends"), py::arg("count"),
             "For each of the groups 0 to `count` - 1 how long at least one of its intervals ran, and how long none of "
             "another group did.");
  module.def("sweep_devices", &sweep_devices, py::arg("tables"), py::arg("window"),
             "For each device (number, activities, first start, last end, times by set of classes, times by number of "
             "activities).\n\nTables are (starts, ends, devices, classes), classes 0 to 3; place 0b101 of the times by "
             "set is how long exactly classes\n0 and 2 ran. Times are those in the window, or in the span of the "
             "device's activities.");
  module.def("order_by_device_and_start", &order_by_device_and_start, py::arg("tables"),
             "The places of the rows of all tables, (devices, starts), in order of devices, and of starts on each.");
  module.def(
      "nested_ranges", &nested_ranges, py::arg("order"), py::arg("threads"), py::arg("ends_ns"),
      "The row of the range around each range, or -1, and the number of ranges around it.\n\nThe order is that of "
      "threads, starts and descending ends; threads and ends are by row.");
  module.def("critical_path", &critical_path, py::arg("activities"), py::arg("stream_waits"), py::arg("host_waits"),
             py::arg("stream_sets"), py::arg("first_ns"), py::arg("kernel_gap_ns"),
             "The segments of the critical path: kinds, starts, ends, rows; see native/analysis/critical_path.h.");
}

}  // namespace collector::bindings
