#include "bindings/node_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bindings/gil.h"
#include "bindings/shown_text.h"
#include "bindings/typed_tables.h"
#include "stepstats/labelled_activities.h"
#include "stepstats/whole_message.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::FieldKind;
using stepstats::LabelledActivities;
using stepstats::MessageSchema;
using stepstats::ProcessKind;
using stepstats::StepStats;
using stepstats::ThreadName;

namespace {

using Int64s = py::array_t<int64_t, py::array::c_style>;

// By message: (field number, kind, index of the field's message schema).
using GivenSchema = std::vector<std::vector<std::tuple<uint32_t, uint8_t, uint32_t>>>;

std::optional<std::vector<uint64_t>> count_whole(const py::bytes& message, const GivenSchema& given, uint32_t root) {
  std::vector<MessageSchema> schemas(given.size());
  for (size_t at = 0; at < given.size(); ++at) {
    for (const auto& [number, kind, place] : given[at]) {
      if (kind > static_cast<uint8_t>(FieldKind::kMessage) || place >= given.size())
        throw py::index_error("a kind or message that is not there");
      schemas[at].add(number, {static_cast<FieldKind>(kind), place});
    }
  }
  if (root >= schemas.size()) throw py::index_error("a message that is not there");
  const std::string_view bytes(message);
  const GilRelease no_gil;
  return count_if_whole(bytes, schemas, root);
}

py::dict labelled_columns(const py::bytes& message, bool is_run_metadata, const std::vector<WantedTable>& wanted) {
  const std::string_view bytes(message);
  stepstats::TypedRows typed = wanted_rows(wanted);
  const LabelledActivities found = [&] {
    const GilRelease no_gil;
    return read_labelled_activities(StepStats(bytes, is_run_metadata), typed);
  }();
  py::dict columns;
  const std::vector<std::string_view> names = stepstats::labelled_column_names();
  for (size_t at = 0; at < names.size(); ++at) {
    const std::vector<int64_t>& values = found.columns[at];
    columns[py::str(names[at].data(), names[at].size())] =
        Int64s(static_cast<py::ssize_t>(values.size()), values.data());
  }
  py::list texts;
  for (uint32_t number = 0; number < found.texts.size(); ++number) texts.append(shown_text(found.texts[number]));
  py::list devices;
  for (const auto& device : found.devices) {
    devices.append(py::make_tuple(shown_text(device.name), shown_text(device.parts.unit),
                                  shown_text(device.parts.stream), device.parts.on_gpu,
                                  device.parts.process_kind != ProcessKind::kOther));
  }
  py::dict threads;
  for (const ThreadName& thread : found.thread_names) threads[py::int_(thread.id)] = shown_text(thread.name);
  py::dict answer;
  answer["columns"] = columns;
  answer["tables"] = column_values(typed);
  answer["thread_names"] = threads;
  answer["texts"] = texts;
  answer["devices"] = devices;
  answer["untimed"] = found.num_untimed;
  answer["unlabelled"] = found.num_unlabelled;
  return answer;
}

}  // namespace

void bind_nodes(py::module_& module) {
  module.def(
      "count_whole", &count_whole, py::arg("message"), py::arg("schema"), py::arg("root"),
      "How often each message of `schema` occurs in a message that protobuf parses; None where protobuf may not.\n"
      "\nA message of the schema is a list of (field number, kind, place of its message); kinds are 1 varint, 2 and "
      "3 numbers\nof 32 and 64 bits, 4 text, 5 bytes, 6 a message.");
  module.def(
      "labelled_columns", &labelled_columns, py::arg("message"), py::kw_only(), py::arg("is_run_metadata"),
      py::arg("tables"),
      "What names and labels of nodes say: int64 `columns` by name, with `texts`, `thread_names`, `devices` as "
      "(name, unit,\nstream, whether a GPU did it, whether it is a host's or a GPU's) and the numbers "
      "of\n`untimed` nodes, which have no possible time, and `unlabelled` ones, whose content is in columns of "
      "tables that are not wanted.\nThe columns of nodes are `tables`, in the form of `read_activities`; `table` and "
      "`table_row` are their places.\n\n"
      "A text is its place in `texts`; what a node does not say is -1. Raises WireError(what, position).");
}

}  // namespace collector::bindings
