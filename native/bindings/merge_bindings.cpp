#include "bindings/merge_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
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
#include "bindings/python_output.h"
#include "draw/step_drawing.h"
#include "draw/track_order.h"
#include "stepstats/step_stats.h"
#include "write/merged_trace.h"
#include "write/trace_writers.h"

namespace py = pybind11;

namespace collector::bindings {

using draw::DrawingOptions;
using draw::Summary;
using draw::TrackOrder;
using stepstats::Device;
using stepstats::Node;
using stepstats::Span;
using stepstats::StepStats;
using write::MergedTrace;
using write::TraceWriter;

namespace {

// A MergedTrace that writes through a Python callable.
class MergedFile {
 public:
  MergedFile(py::function write, const std::string& writer,
             const std::vector<std::pair<std::string, std::string>>& owned_devices)
      : output_(std::move(write)) {
    std::unique_ptr<TraceWriter> made = make_trace_writer(writer, output_);
    if (!made) throw py::value_error("no writer has this name");
    trace_.emplace(std::move(made), TrackOrder(owned_devices));
  }

  // Returns the numbers of nodes drawn and of nodes without a valid time.
  std::pair<uint64_t, uint64_t> add(
      const py::bytes& message, bool is_run_metadata, const std::string& owner, int64_t base_ns, int64_t start_ns,
      int64_t shift_ns, int64_t added_to_correlations,
      const std::vector<std::tuple<std::string, std::string, std::optional<int64_t>>>& remarks,
      const std::unordered_map<std::string, std::string>& labels, const EventRecordArguments& event_records,
      const OpDetailArguments& op_details, const OpDetailArguments& collectives, const OpDetailArguments& call_ops,
      const SampledArguments& sampled) {
    const std::string_view bytes(message);
    DrawingOptions options;
    options.base_ns = base_ns;
    options.shift_ns = shift_ns;
    options.added_to_correlations = added_to_correlations;
    for (const auto& [name, details, wall_ns] : remarks) options.remarks.push_back({name, details, wall_ns});
    options.labels = labels;
    options.event_records = to_event_records(event_records);
    options.op_details = to_op_details(op_details);
    options.collectives = to_op_details(collectives);
    options.call_ops = to_op_details(call_ops);
    options.sampled = to_sampled(sampled);
    const GilRelease no_gil;
    const MergedTrace::Drawn drawn =
        trace_->add(StepStats(bytes, is_run_metadata), std::move(options), start_ns, owner);
    return {drawn.slices, drawn.untimed};
  }

  void mark(int64_t time_ns, const std::string& name, const std::string& details) {
    const GilRelease no_gil;
    trace_->mark({time_ns, name, details});
  }

  void finish(const std::string& metadata) {
    const GilRelease no_gil;
    trace_->finish(metadata);
    output_.flush();
  }

 private:
  CallableOutput output_;
  std::optional<MergedTrace> trace_;
};

// The first start and the last end in wall ns, or None if no node has a valid time.
py::object survey_step(const py::bytes& message, bool is_run_metadata) {
  const std::string_view bytes(message);
  Summary summary;
  bool has_times = false;
  {
    const GilRelease no_gil;
    const StepStats step(bytes, is_run_metadata);
    if (step.num_nodes() > 0) summary = survey(step, DrawingOptions());
    // Nodes that state no time are at 0 and have no duration.
    has_times = summary.untimed < step.num_nodes() && (summary.base_ns != 0 || summary.end_ns != 0);
  }
  if (!has_times) return py::none();
  return py::make_tuple(summary.base_ns, summary.base_ns + summary.end_ns);
}

// The least and the greatest correlation id of the nodes, or None if no node has one.
py::object correlation_ids(const py::bytes& message, bool is_run_metadata) {
  const std::string_view bytes(message);
  uint32_t least = UINT32_MAX;
  uint32_t greatest = 0;
  {
    const GilRelease no_gil;
    const StepStats step(bytes, is_run_metadata);
    for (const Device& device : step.devices()) {
      step.for_each_node(device, [&](const Node& node) {
        if (node.correlation_id == 0) return;
        least = std::min(least, node.correlation_id);
        greatest = std::max(greatest, node.correlation_id);
      });
    }
  }
  if (greatest == 0) return py::none();
  return py::make_tuple(least, greatest);
}

// By device: the starts in wall ns and the durations of its nodes, of which -1 means that a node has no valid time.
py::list node_times(const py::bytes& message, bool is_run_metadata) {
  const std::string_view bytes(message);
  std::vector<std::vector<Span>> times;
  {
    const GilRelease no_gil;
    times = draw::drawable_times(StepStats(bytes, is_run_metadata));
  }
  py::list by_device;
  for (const std::vector<Span>& of_device : times) {
    py::array_t<int64_t> starts(static_cast<py::ssize_t>(of_device.size()));
    py::array_t<int64_t> durations(static_cast<py::ssize_t>(of_device.size()));
    for (size_t at = 0; at < of_device.size(); ++at) {
      starts.mutable_data()[at] = of_device[at].start_ns;
      durations.mutable_data()[at] = of_device[at].duration_ns;
    }
    by_device.append(py::make_tuple(std::move(starts), std::move(durations)));
  }
  return by_device;
}

// The names of a message's devices as bytes, without reading their nodes.
py::list device_names(const py::bytes& message, bool is_run_metadata) {
  const StepStats step(std::string_view(message), is_run_metadata);
  py::list names;
  for (const Device& device : step.devices()) names.append(py::bytes(device.name));
  return names;
}

}  // namespace

void bind_merge(py::module_& module) {
  module.def("survey", &survey_step, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             "(first start, last end) of a message in ns since the epoch; None where no node has a possible time.");
  module.def("correlation_ids", &correlation_ids, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             "(least, greatest) correlation id of the nodes of a message; None where none has one.");
  module.def("node_times", &node_times, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             "By device (starts in ns since the epoch, durations) of its nodes; -1: a node has no possible time.");
  module.def("devices", &device_names, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             "The names of a message's devices as bytes, in its order.");
  py::class_<MergedFile>(module, "MergedTrace", "A trace file of several steps, drawn one after the other.")
      .def(py::init<py::function, const std::string&, const std::vector<std::pair<std::string, std::string>>&>(),
           py::arg("write"), py::kw_only(), py::arg("writer"), py::arg("owned_devices"),
           "`write` is called with the file's bytes, piece by piece, as memoryviews valid during the call.\n\n"
           "`owned_devices` are the owner (str) and the device (bytes) of all that will be added: they say the order.")
      .def("add", &MergedFile::add, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"), py::arg("owner"),
           py::arg("base_ns"), py::arg("start_ns"), py::arg("shift_ns"), py::arg("added_to_correlations"),
           py::arg("remarks"), py::arg("labels"), py::arg("event_records"), py::arg("op_details"),
           py::arg("collectives"), py::arg("call_ops"), py::arg("sampled"),
           "Draw a step that begins at `start_ns`, moved by `shift_ns`, on an axis that begins at `base_ns`.\n\n"
           "`added_to_correlations` keeps its correlation ids apart from those of other steps on the same tracks.\n"
           "Returns (nodes drawn, nodes without a possible time). `owner` is put before the names of its processes.\n"
           "`remarks` are marks of the step: (name, details, wall time or None for its end).\n"
           "`labels`, `event_records` and `collectives` are those of `collector.timeline.object_labels`, and "
           "`op_details`\n"
           "and `call_ops` those of `collector.timeline.op_arguments`.\n"
           "Raises WireError(what, position).")
      .def("mark", &MergedFile::mark, py::arg("time_ns"), py::arg("name"), py::arg("details") = "",
           "An instant of the whole file, ns after its base.")
      .def("finish", &MergedFile::finish, py::arg("metadata"),
           "Write what is left, with `metadata` (JSON text) about the file. Once, at the end.");
}

}  // namespace collector::bindings
