#include "bindings/xspace_bindings.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/drawing_arguments.h"
#include "bindings/gil.h"
#include "bindings/message_bytes.h"
#include "bindings/python_call.h"
#include "bindings/shown_text.h"
#include "draw/node_links.h"
#include "stepstats/step_stats.h"
#include "write/xspace_lines.h"
#include "write/xspace_text.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::Span;
using stepstats::StepStats;
using stepstats::ThreadName;
using write::EventDescription;
using write::EventLine;
using write::EventLines;
using write::LineOptions;
using write::PlaneTexts;
using write::StepEvents;
using write::XSpaceText;

namespace {

// The events of a message, with what is stated of the step besides.
class MessageEvents {
 public:
  MessageEvents(const py::buffer& message, bool is_run_metadata, const EventRecordArguments& event_records,
                const OpDetailArguments& details)
      : bytes_(message), event_records_(to_event_records(event_records)), details_(to_op_details(details)) {
    const GilRelease no_gil;
    step_ = std::make_unique<const StepStats>(bytes_.view(), is_run_metadata);
    events_ = std::make_unique<const StepEvents>(*step_);
  }
  MessageEvents(const MessageEvents&) = delete;
  MessageEvents& operator=(const MessageEvents&) = delete;

  py::list devices() const {
    py::list found;
    for (const stepstats::Device& device : step_->devices()) {
      py::dict threads;
      for (const ThreadName& thread : device.thread_names) threads[py::int_(thread.id)] = shown_text(thread.name);
      found.append(py::make_tuple(shown_text(device.name), threads));
    }
    return found;
  }

  std::optional<std::pair<int64_t, int64_t>> bounds() const {
    std::optional<std::pair<int64_t, int64_t>> found;
    for (size_t device = 0; device < step_->devices().size(); ++device) {
      for (const Span& span : events_->times(device)) {
        if (!span.valid()) continue;
        if (!found) found.emplace(span.start_ns, span.end_ns());
        found->first = std::min(found->first, span.start_ns);
        found->second = std::max(found->second, span.end_ns());
      }
    }
    return found;
  }

  py::list nodes(size_t device) const {
    py::list found;
    const std::vector<Span>& times = times_of(device);
    size_t at = 0;
    step_->for_each_message(step_->devices()[device], [&](std::string_view message) {
      const Span& span = times[at++];
      found.append(py::make_tuple(
          py::bytes(message.data(), message.size()),
          span.valid() ? py::object(py::make_tuple(span.start_ns, span.duration_ns)) : py::object(py::none())));
    });
    return found;
  }

  std::vector<std::tuple<size_t, size_t, size_t, size_t>> links() const {
    const GilRelease no_gil;
    std::vector<std::tuple<size_t, size_t, size_t, size_t>> found;
    for (const auto& [source, target] : draw::node_links(*step_, event_records_)) {
      found.emplace_back(source.device, source.node, target.device, target.node);
    }
    return found;
  }

  std::vector<std::vector<uint32_t>> nodes_beside(const std::vector<size_t>& devices,
                                                  const std::vector<size_t>& others) const {
    for (const size_t device : devices) times_of(device);
    for (const size_t device : others) times_of(device);
    const GilRelease no_gil;
    return events_->nodes_beside(devices, others);
  }

  py::tuple lines(size_t device, const py::function& describe, const py::function& stat_number, int64_t origin_ns,
                  int64_t shift_ns, bool by_thread, bool by_process,
                  const std::unordered_map<uint32_t, uint32_t>& processes, std::optional<uint64_t> first_correlation,
                  const std::string& correlation_stat, const std::vector<std::pair<int64_t, uint64_t>>& causes,
                  const std::unordered_map<size_t, uint64_t>& flows, const std::vector<py::bytes>& detail_stats,
                  const std::unordered_map<uint32_t, py::bytes>& event_stats,
                  const std::optional<std::vector<uint32_t>>& only) const {
    times_of(device);
    LineOptions options;
    options.describe = [&](std::string_view node, std::string_view activity, bool is_copy) {
      const GilAcquire gil;
      const auto [name, stats] = py::cast<std::pair<uint64_t, py::bytes>>(call_python(
          describe, py::bytes(node.data(), node.size()), py::bytes(activity.data(), activity.size()), is_copy));
      return EventDescription{name, std::string(stats)};
    };
    options.stat_number = [&](std::string_view name) {
      const GilAcquire gil;
      return py::cast<uint64_t>(call_python(stat_number, py::str(name.data(), name.size())));
    };
    options.origin_ns = origin_ns;
    options.shift_ns = shift_ns;
    options.by_thread = by_thread;
    options.by_process = by_process;
    options.processes = processes;
    options.first_correlation = first_correlation;
    options.correlation_stat = correlation_stat;
    for (const auto& [start_ns, number] : causes) options.causes.push_back({start_ns, number});
    options.flows = flows;
    for (const py::bytes& stats : detail_stats) options.detail_stats.emplace_back(stats);
    if (options.detail_stats.size() == details_.arguments.size()) options.details = &details_;
    for (const auto& [correlation_id, stats] : event_stats) options.event_stats.emplace(correlation_id, stats);
    if (only) options.only = &*only;
    const EventLines found = [&] {
      const GilRelease no_gil;
      return events_->lines(device, options);
    }();
    py::list lines;
    for (const EventLine& line : found.lines) {
      lines.append(py::make_tuple(line.thread, line.other_process, line.process, py::bytes(line.events)));
    }
    return py::make_tuple(lines, found.drawn, found.untimed);
  }

 private:
  const std::vector<Span>& times_of(size_t device) const {
    if (device >= step_->devices().size()) throw py::index_error("a device that is not there");
    return events_->times(device);
  }

  MessageBytes bytes_;
  std::vector<draw::EventRecord> event_records_;
  draw::OpDetails details_;
  std::unique_ptr<const StepStats> step_;
  std::unique_ptr<const StepEvents> events_;
};

// The text of the events of one file, line by line.
class EventTexts {
 public:
  EventTexts() : text_([](double number) { return number_text(number); }) {}

  void begin_plane(const std::unordered_map<int64_t, std::pair<std::string, py::bytes>>& events,
                   const std::unordered_map<int64_t, std::string>& stats, uint64_t process) {
    PlaneTexts texts;
    for (const auto& [number, metadata] : events) {
      texts.events[number] = {metadata.first, std::string(metadata.second)};
    }
    texts.stats = stats;
    text_.begin_plane(texts, process);
  }

  void begin_line(const py::bytes& line, int64_t timestamp_ns, uint64_t thread) {
    line_ = line;
    text_.begin_line(std::string_view(line_), timestamp_ns, thread);
  }

  py::bytes next(size_t num_bytes) {
    const std::string_view text = [&] {
      const GilRelease no_gil;
      return text_.next(num_bytes);
    }();
    return {text.data(), text.size()};
  }

  py::dict not_kept() const {
    py::dict counts;
    for (const auto& [name, count] : text_.not_kept()) counts[py::str(name)] = count;
    return counts;
  }

 private:
  // As Python's repr.
  static std::string number_text(double number) {
    const GilAcquire gil;
    char* const text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (text == nullptr) throw py::error_already_set();
    std::string copy(text);
    PyMem_Free(text);
    return copy;
  }

  py::bytes line_;
  XSpaceText text_;
};

}  // namespace

void bind_xspace(py::module_& module) {
  py::class_<EventTexts>(module, "XSpaceText", "The events of an XSpace as the text of a Chrome trace.")
      .def(py::init<>())
      .def("begin_plane", &EventTexts::begin_plane, py::arg("events"), py::arg("stats"), py::arg("process"),
           "The following lines are of this plane. `events`: the name, and the stats as fields of an XEvent, of each\n"
           "metadata of events; `stats`: the name of each metadata of stats.")
      .def("begin_line", &EventTexts::begin_line, py::arg("line"), py::arg("timestamp_ns"), py::arg("thread"),
           "The following events are those of this XLine, as protobuf writes it.")
      .def("next", &EventTexts::next, py::arg("num_bytes"),
           "About so many bytes of events, each with a comma behind it; empty behind the last. Raises WireError.")
      .def("not_kept", &EventTexts::not_kept, "Stat -> the number of events with bytes as its value.");
  py::class_<MessageEvents>(module, "StepEvents", "The nodes of a message as events of an XSpace.")
      .def(py::init<const py::buffer&, bool, const EventRecordArguments&, const OpDetailArguments&>(),
           py::arg("message"), py::kw_only(), py::arg("is_run_metadata"), py::arg("event_records"),
           py::arg("op_details"),
           "`event_records` are those of `collector.timeline.object_labels`, and `op_details` those of\n"
           "`collector.timeline.op_arguments`. Raises WireError(what, position).")
      .def("devices", &MessageEvents::devices, "The name of each device, and the names of its threads by number.")
      .def("bounds", &MessageEvents::bounds,
           "First start and last end of all nodes, in ns of wall time; None: none has a possible time.")
      .def("nodes", &MessageEvents::nodes, py::arg("device"),
           "The nodes of a device as messages, each with its start and duration in ns, or None.")
      .def("links", &MessageEvents::links,
           "The arrows of the step: (device, node) of the source and (device, node) of the target, as indices. From "
           "the\nawaited activity, or the call that recorded the awaited event, to a wait; from an op to its backward "
           "pass.")
      .def("nodes_beside", &MessageEvents::nodes_beside, py::arg("devices"), py::arg("others"),
           "For each of some devices the indices of its nodes that none of the others has.")
      .def("lines", &MessageEvents::lines, py::arg("device"), py::kw_only(), py::arg("describe"),
           py::arg("stat_number"), py::arg("origin_ns"), py::arg("shift_ns"), py::arg("by_thread"),
           py::arg("by_process"), py::arg("processes"), py::arg("first_correlation"), py::arg("correlation_stat"),
           py::arg("causes"), py::arg("flows"), py::arg("detail_stats"), py::arg("event_stats"), py::arg("only"),
           "The events of a device, in order: for each line its thread, the process that it is apart for (0: none), "
           "the\nprocess of its calls (0: not known) and the fields of an XLine. And the numbers of nodes drawn, and "
           "of nodes\nwithout a possible time.\n\n"
           "`describe(node, activity, is_copy)` returns the number of the name and the fields of an XEvent that all "
           "nodes have\nwhich differ from this one in times and ids alone; `is_copy`: only the place of the node "
           "states that it is a copy. `detail_stats` are those of each of the `op_details`, "
           "and\n`event_stats` those of calls by correlation id.");
}

}  // namespace collector::bindings
