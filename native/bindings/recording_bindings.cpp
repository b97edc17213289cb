#include "bindings/recording_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/gil.h"
#include "bindings/message_bytes.h"
#include "bindings/typed_tables.h"
#include "stepstats/recorded_message.h"
#include "stepstats/recorded_step.h"
#include "stepstats/typed_rows.h"
#include "store/demangled_name.h"
#include "write/huge_pages.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::ColumnView;
using stepstats::RecordedMessage;
using stepstats::RecordedStep;
using stepstats::RecordedTable;
using stepstats::RowMessages;
using stepstats::StepSurroundings;
using stepstats::TypedRows;

namespace {

using Indices = py::array_t<uint32_t, py::array::c_style>;

// (Activity.Kind, columns by name, [(field of Activity, column)] in the order of the fields)
using GivenTable =
    std::tuple<uint32_t, std::map<std::string, py::array>, std::vector<std::pair<uint32_t, std::string>>>;
using GivenMessages = std::tuple<std::vector<std::string>, Indices>;
using GivenHostDevices = std::vector<std::pair<std::string, py::bytes>>;
using GivenTexts = std::map<std::string, std::vector<std::string>>;

// Keeps the arrays alive that the views of a step refer to.
class Views {
 public:
  ColumnView column(const py::array& given) {
    const char kind = given.dtype().kind();
    if (given.ndim() != 1 || (kind != 'i' && kind != 'u')) throw py::value_error("a column is no array of integers");
    py::array values = py::array::ensure(given, py::array::c_style);
    if (!values) throw py::error_already_set();
    const ColumnView view{static_cast<const char*>(values.data()), static_cast<uint8_t>(values.itemsize()),
                          kind == 'i'};
    kept_.push_back(std::move(values));
    return view;
  }

  const uint32_t* index(const Indices& given, size_t num_rows) {
    if (given.ndim() != 1 || static_cast<size_t>(given.size()) != num_rows) {
      throw py::value_error("the columns differ in length");
    }
    kept_.push_back(given);
    return given.data();
  }

  RecordedTable table(const GivenTable& given) {
    const auto& [kind, columns, fields] = given;
    RecordedTable table;
    table.kind = kind;
    table.num_rows = columns.empty() ? 0 : static_cast<size_t>(columns.begin()->second.size());
    if (table.num_rows > UINT32_MAX) throw py::value_error("a table of too many rows");
    for (const auto& [name, values] : columns) {
      if (static_cast<size_t>(values.size()) != table.num_rows) throw py::value_error("the columns differ in length");
      table.columns.emplace_back(name, column(values));
    }
    for (const auto& [number, name] : fields) table.fields.push_back({number, table[name]});
    return table;
  }

 private:
  std::vector<py::array> kept_;
};

const std::vector<std::string>& texts_at(const GivenTexts& texts, const char* name) {
  const auto found = texts.find(name);
  if (found == texts.end()) throw py::key_error(name);
  return found->second;
}

py::bytes encode_step(const std::map<std::string, GivenTable>& tables, const std::vector<GivenTable>& without_node,
                      const GivenTexts& texts, std::vector<uint32_t> annotation_op_ends,
                      const Indices& annotation_label, const std::optional<GivenMessages>& outputs,
                      const std::optional<GivenMessages>& memory, const GivenHostDevices& host_devices,
                      const std::map<std::string, Indices>& host_device_of, const py::array& known_external_id,
                      const py::array& known_name_id, int64_t annotation_external_kind,
                      const std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>& first_contexts,
                      const std::string& device_prefix, int64_t offset_ns,
                      const std::optional<std::pair<py::bytes, py::bytes>>& around) {
  Views views;
  RecordedStep step;
  std::vector<std::pair<std::string, RecordedTable*>> own_tables{
      {"kernels", &step.kernels},
      {"memcpys", &step.memcpys},
      {"memsets", &step.memsets},
      {"api_calls", &step.api_calls},
      {"external_correlations", &step.external_correlations},
      {"graph_launches", &step.graph_launches},
      {"other_ranges", &step.other_ranges},
      {"annotations", &step.annotations},
  };
  for (size_t place = 0; place < step.side_tables.size(); ++place) {
    own_tables.emplace_back(stepstats::kSideTables[place].table, &step.side_tables[place]);
  }
  for (const auto& [name, table] : own_tables) {
    const auto found = tables.find(name);
    if (found == tables.end()) throw py::key_error(name);
    *table = views.table(found->second);
  }
  for (const GivenTable& given : without_node) step.without_node.push_back(views.table(given));
  step.short_names = texts_at(texts, "short_names");
  step.whole_names = texts_at(texts, "whole_names");
  step.api_names = texts_at(texts, "api_names");
  step.side_names = texts_at(texts, "side_names");
  step.graph_names = texts_at(texts, "graph_names");
  step.other_range_names = texts_at(texts, "other_range_names");
  step.paths = texts_at(texts, "paths");
  step.ops = texts_at(texts, "ops");
  step.annotation_labels = texts_at(texts, "annotation_labels");
  step.annotation_op_ends = std::move(annotation_op_ends);
  if (step.annotation_op_ends.size() != step.annotation_labels.size()) {
    throw py::value_error("the labels of annotations and the ends of their ops differ in number");
  }
  step.annotation_label = views.index(annotation_label, step.annotations.num_rows);
  const auto take_messages = [&views](const std::optional<GivenMessages>& given, size_t num_rows, RowMessages& to) {
    if (!given) return;
    to.messages = std::get<0>(*given);
    to.index = views.index(std::get<1>(*given), num_rows);
  };
  take_messages(outputs, step.annotations.num_rows, step.outputs);
  take_messages(memory, step.api_calls.num_rows, step.memory);
  for (const auto& [name, thread_names] : host_devices) step.host_devices.push_back({name, std::string(thread_names)});
  const auto take_places = [&](const char* table, size_t num_rows) -> const uint32_t* {
    const auto found = host_device_of.find(table);
    return found == host_device_of.end() ? nullptr : views.index(found->second, num_rows);
  };
  step.host_device_of_annotation = take_places("annotations", step.annotations.num_rows);
  step.host_device_of_call = take_places("api_calls", step.api_calls.num_rows);
  step.host_device_of_other_range = take_places("other_ranges", step.other_ranges.num_rows);
  if (known_external_id.size() != known_name_id.size()) throw py::value_error("the columns differ in length");
  step.num_known_annotations = static_cast<size_t>(known_external_id.size());
  step.known_external_id = views.column(known_external_id);
  step.known_name_id = views.column(known_name_id);
  step.annotation_external_kind = annotation_external_kind;
  for (const auto& [device, stream, context] : first_contexts) step.first_contexts[{device, stream}] = context;
  step.device_prefix = device_prefix;
  step.offset_ns = offset_ns;

  std::optional<StepSurroundings> surroundings;
  if (around) surroundings.emplace(StepSurroundings{around->first, around->second});
  std::optional<RecordedMessage> message;
  {
    const GilRelease no_gil;
    message.emplace(step, std::move(surroundings));
  }
  PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(message->num_bytes()));
  if (bytes == nullptr) throw py::error_already_set();
  char* const begin = PyBytes_AS_STRING(bytes);
  {
    const GilRelease no_gil;
    write::ask_for_huge_pages(begin, message->num_bytes());
    message->write(begin);
    message.reset();
  }
  return py::reinterpret_steal<py::bytes>(bytes);
}

py::tuple read_activities(const py::buffer& message, bool is_run_metadata, int64_t offset_ns,
                          const std::vector<WantedTable>& wanted) {
  const MessageBytes given(message);
  const std::string_view bytes = given.view();
  TypedRows rows = wanted_rows(wanted);
  {
    const GilRelease no_gil;
    read_typed_rows(bytes, is_run_metadata, offset_ns, rows);
  }
  return py::make_tuple(column_values(rows), py::bytes(rows.capture), rows.without_columns);
}

}  // namespace

void bind_recording(py::module_& module) {
  module.def(
      "demangle", [](const std::string& name) { return py::bytes(store::demangled_name(name)); }, py::arg("name"),
      "The C++ name of a mangled name, as UTF-8; the name itself if it is not mangled, or would become too long.");
  module.def("encode_step", &encode_step, py::kw_only(), py::arg("tables"), py::arg("without_node"), py::arg("texts"),
             py::arg("annotation_op_ends"), py::arg("annotation_label"), py::arg("outputs"), py::arg("memory"),
             py::arg("host_devices"), py::arg("host_device_of"), py::arg("known_external_id"), py::arg("known_name_id"),
             py::arg("annotation_external_kind"), py::arg("first_contexts"), py::arg("device_prefix"),
             py::arg("offset_ns"), py::arg("around"),
             "The wire bytes of a recording as StepStats, or as RunMetadata where `around` has its provenance and "
             "capture.\n\nTables are (Activity.Kind, columns, [(field of Activity, column)]). Raises ValueError for "
             "columns that do not fit together.");
  module.def("read_activities", &read_activities, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
             py::arg("offset_ns"), py::arg("tables"),
             "The columns of all activities in a message: for each of `tables`, (Activity.Kind, [(field, bytes of a "
             "value)]), the\nvalues of each field as bytes; RunMetadata.capture without its activities; and how many "
             "nodes have no columns.\n\nRaises WireError(what, position).");
}

}  // namespace collector::bindings
