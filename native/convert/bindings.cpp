// collector._convert: the converters, apart from everything that knows CUDA.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>

#include "convert/compatible_writer.h"
#include "convert/python_output.h"
#include "convert/step_stats.h"

namespace py = pybind11;

namespace collector::convert {
namespace {

// Bytes of the caller's, held for as long as they are read without the GIL.
class Bytes {
 public:
  explicit Bytes(const py::buffer& object) : info_(object.request()) {
    if (info_.itemsize != 1 || info_.ndim != 1 || (info_.size > 0 && info_.strides[0] != 1)) {
      throw py::value_error("the message must be given as contiguous bytes");
    }
  }
  std::string_view view() const {
    return info_.size == 0 ? std::string_view("", 0)
                           : std::string_view(static_cast<const char*>(info_.ptr), static_cast<size_t>(info_.size));
  }

 private:
  py::buffer_info info_;
};

CompatibleOptions MakeOptions(bool show_dataflow, bool show_memory, const std::string& op_time, bool pretty,
                              const std::unordered_map<int32_t, std::string>& data_type_names) {
  CompatibleOptions options;
  options.show_dataflow = show_dataflow;
  options.show_memory = show_memory;
  options.op_time = op_time == "schedule" ? OpTime::kSchedule : op_time == "gpu" ? OpTime::kGpu : OpTime::kAll;
  options.pretty = pretty;
  options.data_type_names = data_type_names;
  return options;
}

py::object CompatibleText(const py::buffer& message, bool is_run_metadata, bool show_dataflow, bool show_memory,
                          const std::string& op_time, bool pretty,
                          const std::unordered_map<int32_t, std::string>& data_type_names) {
  const Bytes bytes(message);
  const CompatibleOptions options = MakeOptions(show_dataflow, show_memory, op_time, pretty, data_type_names);
  StringOutput output;
  try {
    const py::gil_scoped_release no_gil;
    WriteCompatible(StepStats(bytes.view(), is_run_metadata), options, output);
  } catch (const BeyondInt64&) {
    return py::none();
  }
  return output.Take();
}

py::object CompatibleMaximums(const py::buffer& message, bool is_run_metadata, const std::string& op_time) {
  const Bytes bytes(message);
  const CompatibleOptions options = MakeOptions(false, true, op_time, false, {});
  std::vector<AllocatorMaximum> maximums;
  try {
    const py::gil_scoped_release no_gil;
    maximums = AllocatorMaximums(StepStats(bytes.view(), is_run_metadata), options);
  } catch (const BeyondInt64&) {
    return py::none();
  }
  py::list answer;
  for (const AllocatorMaximum& maximum : maximums) {
    py::set tensors;
    for (const std::string& name : maximum.tensors) tensors.add(py::bytes(name).attr("decode")());
    answer.append(py::make_tuple(py::bytes(maximum.allocator).attr("decode")(), maximum.time_us, maximum.num_bytes, tensors));
  }
  return std::move(answer);
}

}  // namespace
}  // namespace collector::convert

PYBIND11_MODULE(_convert, module) {
  using namespace collector::convert;
  module.doc() = "Converters on StepStats and RunMetadata wire bytes. Needs no CUDA library.";

  static py::exception<WireError> wire_error(module, "WireError", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const WireError& error) {
      const py::tuple arguments = py::make_tuple(error.what(), error.position());
      PyErr_SetObject(wire_error.ptr(), arguments.ptr());
    }
  });

  module.def("compatible_text", &CompatibleText, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             py::arg("show_dataflow"), py::arg("show_memory"), py::arg("op_time"), py::arg("pretty"),
             py::arg("data_type_names"),
             "TensorFlow's timeline of a message as JSON text; None where the exact answer needs numbers beyond 64 bits.\n\n"
             "Raises WireError(what, position) where the bytes are not the message they should be.");
  module.def("compatible_maximums", &CompatibleMaximums, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             py::arg("op_time"),
             "For each allocator (name, time in us, bytes, set of tensor names) where it held the most; None as above.");
}
