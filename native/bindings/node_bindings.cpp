#include "bindings/node_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "stepstats/node_encoder.h"
#include "bindings/gil.h"

namespace py = pybind11;

namespace collector::convert {
namespace {

using Int64s = py::array_t<int64_t, py::array::c_style>;

// (field number, values, texts or None), one for each field, in the order of the numbers.
using GivenColumn = std::tuple<uint32_t, Int64s, std::optional<std::vector<std::string>>>;

void CheckRange(const Int64s& values, py::ssize_t limit, const char* what) {
  const int64_t* const data = values.data();
  for (py::ssize_t at = 0; at < values.size(); ++at) {
    if (data[at] < 0 || data[at] >= limit) throw py::index_error(what);
  }
}

py::bytes EncodeNodes(const std::vector<GivenColumn>& given, const Int64s& rows) {
  std::vector<NodeColumn> columns;
  const py::ssize_t num_nodes = given.empty() ? 0 : std::get<1>(given.front()).size();
  for (const auto& [field, values, texts] : given) {
    if (values.ndim() != 1 || values.size() != num_nodes) throw py::value_error("the columns differ in length");
    if (texts) CheckRange(values, static_cast<py::ssize_t>(texts->size()), "a text that is not there");
    columns.push_back({field, values.data(), texts.value_or(std::vector<std::string>()), texts.has_value()});
  }
  if (rows.ndim() != 1) throw py::value_error("the rows have more than one dimension");
  CheckRange(rows, num_nodes, "a row beyond the end of the columns");
  const NodeEncoder encoder = [&] {
    const GilRelease no_gil;
    return NodeEncoder(columns, rows.data(), static_cast<size_t>(rows.size()));
  }();
  PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(encoder.num_bytes()));
  if (bytes == nullptr) throw py::error_already_set();
  {
    const GilRelease no_gil;
    encoder.Write(PyBytes_AS_STRING(bytes));
  }
  return py::reinterpret_steal<py::bytes>(bytes);
}

}  // namespace

void BindNodes(py::module_& module) {
  module.def("encode_nodes", &EncodeNodes, py::arg("columns"), py::arg("rows"),
             "The wire bytes of DeviceStepStats.node_stats with a node for each of `rows`.\n\n"
             "Columns are (field number, int64 values, None) or (field number, places in texts, texts), in the order "
             "of the field numbers.\nRaises IndexError for a row or place that is not there.");
}

}  // namespace collector::convert
