#include "bindings/tables.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "bindings/columns.h"
#include "capture/api_call_names.h"

namespace collector::bindings {
namespace {

namespace py = pybind11;
using store::StreamKey;

struct Nothing {};

// The rows of all streams as columns.
template <typename Row>
py::dict streams_of(store::Store& store) {
  TableBuilder<Row, StreamKey> table;
  table.column("device_id", [](const StreamKey& key, const Row&) { return key.device_id; })
      .column("context_id", [](const StreamKey& key, const Row&) { return key.context_id; })
      .column("stream_id", [](const StreamKey& key, const Row&) { return key.stream_id; });
  for (auto& [key, stream] : store.streams()) table.add(key, stream.rows.template of<Row>());
  return table.build();
}

template <typename Rows>
py::dict rows_of(Rows& rows) {
  using Row = std::decay_t<decltype(rows[0])>;
  TableBuilder<Row, Nothing> table;
  table.add({}, rows);
  return table.build();
}

py::dict api_calls_of(const cupti::Library& library, store::StringTable& strings,
                      store::Chunks<store::ApiCallRow>& rows) {
  using Row = store::ApiCallRow;
  const capture::ApiCallNames names = capture::intern_api_call_names(library, rows, strings);
  TableBuilder<Row, Nothing> table;
  table.column("name_id", [&names](const Nothing&, const Row& r) { return names.at({r.domain, r.callback_id}); });
  table.add({}, rows);
  return table.build();
}

py::dict annotations_of(store::StringTable& strings, std::vector<store::AnnotationRow> annotations,
                        const std::vector<std::string>& paths) {
  // The numbers of other texts than names begin at 1.
  const auto shared = [&](uint32_t text) { return text == 0 ? 0 : strings.intern(paths[text - 1]); };
  for (store::AnnotationRow& row : annotations) {
    row.name_id = strings.intern(paths[row.name_id]);
    row.domain_name_id = shared(row.domain_name_id);
    row.category_name_id = shared(row.category_name_id);
    row.payload_text_id = shared(row.payload_text_id);
    row.shapes_text_id = shared(row.shapes_text_id);
  }
  return rows_of(annotations);
}

py::list strings_of(const store::StringTable& strings) {
  py::list out;
  for (const std::string& text : strings.texts()) {
    // Kernel names are arbitrary bytes of the program.
    out.append(py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace")));
  }
  return out;
}

}  // namespace

py::dict tables_of(const cupti::Library& library, store::Store& store, std::vector<store::AnnotationRow> annotations,
                   const std::vector<std::string>& annotation_paths, capture::OwnCalls own_calls) {
  // The store is also emptied if memory runs out on the way, because its rows cannot be fetched again.
  const std::unique_ptr<store::Store, void (*)(store::Store*)> emptied(&store,
                                                                       [](store::Store* taken) { taken->clear(); });
  capture::remove_own_calls(store, own_calls);
  py::dict tables;
  store::each_row_type(store::AllRows(), [&](auto type) {
    using Row = typename decltype(type)::Type;
    py::dict table;
    if constexpr (std::is_same_v<Row, store::AnnotationRow>) {
      table = annotations_of(store.strings, std::move(annotations), annotation_paths);
    } else if constexpr (std::is_same_v<Row, store::ApiCallRow>) {
      table = api_calls_of(library, store.strings, store.rows.of<Row>());
    } else if constexpr (store::Table<Row>::kIsPerStream) {
      table = streams_of<Row>(store);
    } else {
      table = rows_of(store.rows.of<Row>());
    }
    tables[py::str(std::string(store::Table<Row>::kName))] = table;
  });
  py::dict out;
  out["tables"] = tables;
  out["strings"] = strings_of(store.strings);
  return out;
}

}  // namespace collector::bindings
