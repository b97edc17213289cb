// collector._convert: the converters, which are independent of CUDA.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/analysis_bindings.h"
#include "bindings/annotate_methods.h"
#include "bindings/annotation_stack.h"
#include "bindings/drawing_arguments.h"
#include "bindings/gil.h"
#include "bindings/merge_bindings.h"
#include "bindings/message_bytes.h"
#include "bindings/node_bindings.h"
#include "bindings/profile_bindings.h"
#include "bindings/python_call.h"
#include "bindings/python_output.h"
#include "bindings/read_bindings.h"
#include "bindings/recording_bindings.h"
#include "bindings/xspace_bindings.h"
#include "cupti/version_checks.h"
#include "draw/step_drawing.h"
#include "stepstats/step_stats.h"
#include "write/tensorflow_timeline_writer.h"
#include "write/trace_writers.h"

namespace py = pybind11;

namespace collector::bindings {

using draw::DrawingOptions;
using draw::Summary;
using stepstats::StepStats;
using stepstats::WireError;
using write::AllocatorMaximum;
using write::BeyondInt64;
using write::OpTime;
using write::TensorflowTimelineOptions;
using write::TraceWriter;

namespace {

// Pretty text is rarely longer than this multiple of the message. Unused room costs only address space, but too little
// room costs more than the writing, because pages must be moved.
constexpr size_t kTextPerWire = 8;

TensorflowTimelineOptions make_options(bool show_dataflow, bool show_memory, const std::string& op_time, bool pretty,
                                       const std::unordered_map<int32_t, std::string>& data_type_names) {
  TensorflowTimelineOptions options;
  options.show_dataflow = show_dataflow;
  options.show_memory = show_memory;
  options.op_time = op_time == "schedule" ? OpTime::kSchedule : op_time == "gpu" ? OpTime::kGpu : OpTime::kAll;
  options.pretty = pretty;
  options.data_type_names = data_type_names;
  return options;
}

py::object tensorflow_timeline(const py::buffer& message, bool is_run_metadata, bool show_dataflow, bool show_memory,
                               const std::string& op_time, bool pretty,
                               const std::unordered_map<int32_t, std::string>& data_type_names) {
  const MessageBytes bytes(message);
  const TensorflowTimelineOptions options = make_options(show_dataflow, show_memory, op_time, pretty, data_type_names);
  StringOutput output(kTextPerWire * bytes.view().size());
  try {
    const GilRelease no_gil;
    write_tensorflow_timeline(StepStats(bytes.view(), is_run_metadata), options, output);
  } catch (const BeyondInt64&) {
    return py::none();
  }
  return output.take();
}

py::object maximums_of(const py::buffer& message, bool is_run_metadata, const std::string& op_time) {
  const MessageBytes bytes(message);
  const TensorflowTimelineOptions options = make_options(false, true, op_time, false, {});
  std::vector<AllocatorMaximum> maximums;
  try {
    const GilRelease no_gil;
    maximums = allocator_maximums(StepStats(bytes.view(), is_run_metadata), options);
  } catch (const BeyondInt64&) {
    return py::none();
  }
  py::list answer;
  for (const AllocatorMaximum& maximum : maximums) {
    py::set tensors;
    for (const std::string& name : maximum.tensors) tensors.add(py::bytes(name).attr("decode")());
    answer.append(
        py::make_tuple(py::bytes(maximum.allocator).attr("decode")(), maximum.time_us, maximum.num_bytes, tensors));
  }
  return std::move(answer);
}

py::dict to_dict(const Summary& summary) {
  py::dict answer;
  answer["slices"] = summary.slices;
  answer["arrows"] = summary.flows;
  answer["counter_values"] = summary.values;
  answer["left_out"] = summary.left_out;
  answer["left_out_ns"] = summary.left_out_ns;
  answer["longest_left_out_ns"] = summary.longest_left_out_ns;
  answer["filtered"] = summary.filtered;
  answer["untimed"] = summary.untimed;
  answer["base_ns"] = summary.base_ns;
  answer["end_ns"] = summary.end_ns;
  return answer;
}

// A Python predicate on names, for use without the GIL. Names that are not UTF-8 are passed in the form that viewers
// show.
std::function<bool(std::string_view)> predicate(const py::object& function) {
  if (function.is_none()) return nullptr;
  return [function](std::string_view name) {
    const GilAcquire gil;
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
    if (!text) throw py::error_already_set();
    return py::cast<bool>(py::bool_(call_python(function, text)));
  };
}

py::dict write_trace(const py::buffer& message, const py::function& write, bool is_run_metadata,
                     const std::string& writer, const py::object& keep_device, const py::object& keep_name,
                     int64_t min_duration_ns, std::optional<int64_t> window_start_ns,
                     std::optional<int64_t> window_end_ns, std::optional<int64_t> window_origin_ns,
                     std::optional<uint64_t> max_slices, bool arrows, bool counters, const std::string& label,
                     std::optional<int64_t> base_ns,
                     const std::vector<std::tuple<std::string, std::string, std::optional<int64_t>>>& remarks,
                     const std::unordered_map<std::string, std::string>& labels,
                     const std::unordered_map<uint32_t, uint32_t>& thread_processes,
                     const EventRecordArguments& event_records, const OpDetailArguments& op_details,
                     const OpDetailArguments& collectives, const OpDetailArguments& call_ops,
                     const SampledArguments& sampled, const py::function& describe) {
  const MessageBytes bytes(message);
  DrawingOptions options;
  options.keep_device = predicate(keep_device);
  options.keep_name = predicate(keep_name);
  options.min_duration_ns = min_duration_ns;
  options.window_start_ns = window_start_ns.value_or(options.window_start_ns);
  options.window_end_ns = window_end_ns.value_or(options.window_end_ns);
  options.window_origin_ns = window_origin_ns;
  options.max_slices = max_slices.value_or(options.max_slices);
  options.arrows = arrows;
  options.counters = counters;
  options.process_label = label;
  options.base_ns = base_ns;
  for (const auto& [name, details, wall_ns] : remarks) options.remarks.push_back({name, details, wall_ns});
  options.labels = labels;
  options.thread_processes = thread_processes;
  options.event_records = to_event_records(event_records);
  options.op_details = to_op_details(op_details);
  options.collectives = to_op_details(collectives);
  options.call_ops = to_op_details(call_ops);
  options.sampled = to_sampled(sampled);

  CallableOutput output(write);
  const std::unique_ptr<TraceWriter> visitor = make_trace_writer(writer, output);
  if (!visitor) throw py::value_error("no writer has this name");
  Summary summary;
  {
    const GilRelease no_gil;
    summary = draw_step(StepStats(bytes.view(), is_run_metadata), options, *visitor);
  }
  py::dict figures = to_dict(summary);
  const auto about = py::cast<std::string>(describe(figures));
  {
    const GilRelease no_gil;
    visitor->finish(about);
    output.flush();
  }
  return figures;
}

}  // namespace
}  // namespace collector::bindings

PYBIND11_MODULE(_convert, module, pybind11::mod_gil_not_used()) {
  using namespace collector::bindings;
  module.doc() = "Converters on StepStats and RunMetadata wire bytes. Needs no CUDA library.";
  collector::bindings::add_annotate_methods(module);
  collector::bindings::add_annotation_stack(module);

  // Never released: at the end of the process a destructor would do that without the interpreter, or beside it.
  static py::handle wire_error = py::exception<WireError>(module, "WireError", PyExc_ValueError).release();
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const WireError& error) {
      const py::tuple arguments = py::make_tuple(error.what(), error.position());
      PyErr_SetObject(wire_error.ptr(), arguments.ptr());
    }
  });

  module.def(
      "tensorflow_timeline", &tensorflow_timeline, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
      py::arg("show_dataflow"), py::arg("show_memory"), py::arg("op_time"), py::arg("pretty"),
      py::arg("data_type_names"),
      "TensorFlow's timeline of a message as JSON text; None where the exact answer needs numbers beyond 64 bits.\n\n"
      "Raises WireError(what, position) where the bytes are not the message they should be.");
  module.def(
      "allocator_maximums", &maximums_of, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
      py::arg("op_time"),
      "For each allocator (name, time in us, bytes, set of tensor names) where it held the most; None as above.");
  module.def(
      "write_trace", &write_trace, py::arg("message"), py::arg("write"), py::kw_only(), py::arg("is_run_metadata"),
      py::arg("writer"), py::arg("keep_device"), py::arg("keep_name"), py::arg("min_duration_ns"),
      py::arg("window_start_ns"), py::arg("window_end_ns"), py::arg("window_origin_ns"), py::arg("max_slices"),
      py::arg("arrows"), py::arg("counters"), py::arg("label"), py::arg("base_ns"), py::arg("remarks"),
      py::arg("labels"), py::arg("thread_processes"), py::arg("event_records"), py::arg("op_details"),
      py::arg("collectives"), py::arg("call_ops"), py::arg("sampled"), py::arg("describe"),
      "Draw a message by the writer of a name (see `trace_writers`); returns what was drawn and left out, by "
      "name.\n\n"
      "`write` is called with the file's bytes, piece by piece, as memoryviews valid during the call; "
      "`describe` once,\n"
      "with the figures that are returned, for the JSON object about the whole file. `base_ns` is the wall time of "
      "time 0,\nNone: the first start. `labels` are those of devices, `event_records` and `collectives` those of\n"
      "`collector.timeline.object_labels`, and `op_details` and `call_ops` those of "
      "`collector.timeline.op_arguments`.\nRaises WireError(what, position).");
  module.def("trace_writers", &collector::write::trace_writer_names, "The names of the writers of drawn files.");
  module.def("calls_back_for_graph_updates", &collector::cupti::calls_back_for_graph_updates, py::arg("cuda_version"),
             "Whether CUPTI of a CUDA version (12040 is 12.4) calls back for an update of an executable graph.");
  bind_merge(module);
  bind_analysis(module);
  bind_nodes(module);
  bind_recording(module);
  bind_profile(module);
  bind_read(module);
  bind_xspace(module);
}
