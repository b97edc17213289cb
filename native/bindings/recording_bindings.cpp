#include "bindings/recording_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <sys/mman.h>
#include <unistd.h>

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
#include "bindings/moved_array.h"
#include "stepstats/recorded_step.h"
#include "stepstats/typed_rows.h"
#include "stepstats/wire_sink.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::ColumnView;
using stepstats::kBytes;
using stepstats::Measure;
using stepstats::RecordedStep;
using stepstats::RecordedStepEncoder;
using stepstats::RecordedTable;
using stepstats::RowMessages;
using stepstats::TypedRows;
using stepstats::TypedTable;
using stepstats::WireWriter;

namespace {

using Indices = py::array_t<uint32_t, py::array::c_style>;

// (Activity.Kind, columns by name, [(field of Activity, column)] in the order of the fields)
using GivenTable =
    std::tuple<uint32_t, std::map<std::string, py::array>, std::vector<std::pair<uint32_t, std::string>>>;
using GivenMessages = std::tuple<std::vector<std::string>, Indices>;
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

// Large bytes are written once from front to back: with small pages, page faults would cost more than the writing.
void ask_for_huge_pages(char* begin, size_t num_bytes) {
  constexpr size_t kHugePageBytes = size_t{2} << 20;
  if (num_bytes < kHugePageBytes) return;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t last = (address + num_bytes) / page_bytes * page_bytes;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

constexpr uint32_t kStepStats = 1;  // of RunMetadata
constexpr uint32_t kProvenance = 100001;
constexpr uint32_t kCapture = 100002;

// The parts of a RunMetadata around its devices; a plain StepStats has none of them.
template <typename Sink>
void put_head(Sink& sink, size_t num_bytes) {
  if (num_bytes == 0) return;
  sink.put_varint(make_tag(kStepStats, kBytes));
  sink.put_varint(num_bytes);
}
template <typename Sink>
void put_capture_head(Sink& sink, const std::string& provenance, const std::string& capture, size_t activity_bytes) {
  sink.put_varint(make_tag(kProvenance, kBytes));
  sink.put_varint(provenance.size());
  sink.put_raw(provenance);
  sink.put_varint(make_tag(kCapture, kBytes));
  sink.put_varint(capture.size() + activity_bytes);
  sink.put_raw(capture);
}

py::bytes encode_step(const std::map<std::string, GivenTable>& tables, const std::vector<GivenTable>& without_node,
                      const GivenTexts& texts, const Indices& annotation_label,
                      const std::optional<GivenMessages>& outputs, const std::optional<GivenMessages>& memory,
                      const py::bytes& thread_names, const py::array& known_external_id, const py::array& known_name_id,
                      int64_t annotation_external_kind, const std::string& device_prefix, int64_t offset_ns,
                      const std::optional<std::pair<py::bytes, py::bytes>>& around) {
  Views views;
  RecordedStep step;
  const std::pair<const char*, RecordedTable*> own_tables[] = {
      {"kernels", &step.kernels},
      {"memcpys", &step.memcpys},
      {"memsets", &step.memsets},
      {"api_calls", &step.api_calls},
      {"external_correlations", &step.external_correlations},
      {"synchronizations", &step.synchronizations},
      {"overheads", &step.overheads},
      {"memory_operations", &step.memory_operations},
      {"annotations", &step.annotations},
  };
  for (const auto& [name, table] : own_tables) {
    const auto found = tables.find(name);
    if (found == tables.end()) throw py::key_error(name);
    *table = views.table(found->second);
  }
  for (const GivenTable& given : without_node) step.without_node.push_back(views.table(given));
  step.short_names = texts_at(texts, "short_names");
  step.whole_names = texts_at(texts, "whole_names");
  step.api_names = texts_at(texts, "api_names");
  step.paths = texts_at(texts, "paths");
  step.ops = texts_at(texts, "ops");
  step.annotation_labels = texts_at(texts, "annotation_labels");
  step.annotation_label = views.index(annotation_label, step.annotations.num_rows);
  const auto take_messages = [&views](const std::optional<GivenMessages>& given, size_t num_rows, RowMessages& to) {
    if (!given) return;
    to.messages = std::get<0>(*given);
    to.index = views.index(std::get<1>(*given), num_rows);
  };
  take_messages(outputs, step.annotations.num_rows, step.outputs);
  take_messages(memory, step.api_calls.num_rows, step.memory);
  step.thread_names = std::string(thread_names);
  if (known_external_id.size() != known_name_id.size()) throw py::value_error("the columns differ in length");
  step.num_known_annotations = static_cast<size_t>(known_external_id.size());
  step.known_external_id = views.column(known_external_id);
  step.known_name_id = views.column(known_name_id);
  step.annotation_external_kind = annotation_external_kind;
  step.device_prefix = device_prefix;
  step.offset_ns = offset_ns;

  std::optional<std::pair<std::string, std::string>> surrounding;
  if (around) surrounding.emplace(around->first, around->second);
  std::optional<RecordedStepEncoder> encoder;
  Measure measure;
  {
    const GilRelease no_gil;
    encoder.emplace(step);
    if (surrounding) {
      put_head(measure, encoder->step_bytes());
      put_capture_head(measure, surrounding->first, surrounding->second, encoder->capture_bytes());
    }
  }
  const size_t num_bytes = measure.num_bytes() + encoder->step_bytes() + (surrounding ? encoder->capture_bytes() : 0);
  PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(num_bytes));
  if (bytes == nullptr) throw py::error_already_set();
  char* const begin = PyBytes_AS_STRING(bytes);
  {
    const GilRelease no_gil;
    ask_for_huge_pages(begin, num_bytes);
    WireWriter head(begin);
    if (surrounding) put_head(head, encoder->step_bytes());
    WireWriter behind(encoder->write_step(head.to()));
    if (surrounding) {
      put_capture_head(behind, surrounding->first, surrounding->second, encoder->capture_bytes());
      encoder->write_capture(behind.to());
    }
    encoder.reset();
  }
  return py::reinterpret_steal<py::bytes>(bytes);
}

std::string_view view_of(const py::buffer_info& info) {
  if (info.itemsize != 1 || info.ndim != 1 || (info.size > 0 && info.strides[0] != 1)) {
    throw py::value_error("the message must be given as contiguous bytes");
  }
  return info.size == 0 ? std::string_view("", 0)
                        : std::string_view(static_cast<const char*>(info.ptr), static_cast<size_t>(info.size));
}

// (Activity.Kind, [(field of Activity, bytes of a value)])
using WantedTable = std::tuple<uint32_t, std::vector<std::pair<uint32_t, uint8_t>>>;

py::tuple read_activities(const py::buffer& message, bool is_run_metadata, int64_t offset_ns,
                          const std::vector<WantedTable>& wanted) {
  const py::buffer_info info = message.request();
  const std::string_view bytes = view_of(info);
  TypedRows rows;
  for (const auto& [kind, columns] : wanted) {
    TypedTable& table = rows.tables.emplace_back();
    table.kind = kind;
    for (const auto& [field, width] : columns) {
      if (width > sizeof(int64_t)) throw py::value_error("a column of values of more than 64 bits");
      table.columns.push_back({field, width, {}});
    }
  }
  {
    const GilRelease no_gil;
    read_typed_rows(bytes, is_run_metadata, offset_ns, rows);
  }
  py::list tables;
  for (TypedTable& table : rows.tables) {
    py::list columns;
    for (TypedTable::Column& column : table.columns) columns.append(moved_array<uint8_t>(std::move(column.values)));
    tables.append(std::move(columns));
  }
  return py::make_tuple(tables, py::bytes(rows.capture), rows.without_columns);
}

}  // namespace

void bind_recording(py::module_& module) {
  module.def("encode_step", &encode_step, py::kw_only(), py::arg("tables"), py::arg("without_node"), py::arg("texts"),
             py::arg("annotation_label"), py::arg("outputs"), py::arg("memory"), py::arg("thread_names"),
             py::arg("known_external_id"), py::arg("known_name_id"), py::arg("annotation_external_kind"),
             py::arg("device_prefix"), py::arg("offset_ns"), py::arg("around"),
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
