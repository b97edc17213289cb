#include "bindings/tables.h"

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "bindings/columns.h"

namespace collector {
namespace {

namespace py = pybind11;
using store::StreamKey;

struct Nothing {};

// The rows of every stream.
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

// Takes the collector's own API calls out of the store, and what belongs to them.
void remove_own_calls(store::Store& store, OwnCalls own) {
  std::unordered_set<uint32_t> correlations;
  store.rows.of<store::ApiCallRow>().remove_if([&](const store::ApiCallRow& row) {
    const bool is_own = row.thread_id == own.thread_id && row.start_ns >= own.from_ns;
    if (is_own) correlations.insert(row.correlation_id);
    return is_own;
  });
  const auto belongs = [&correlations](const auto& row) { return correlations.count(row.correlation_id) != 0; };
  store.rows.of<store::ExternalCorrelationRow>().remove_if(belongs);
  store.rows.of<store::SynchronizationRow>().remove_if(belongs);
}

py::dict api_calls_of(const cupti::Library& library, store::StringTable& strings,
                      store::Chunks<store::ApiCallRow>& rows) {
  using Row = store::ApiCallRow;
  std::map<std::pair<uint8_t, uint32_t>, uint32_t> names;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [entry, is_new] = names.try_emplace({rows[i].domain, rows[i].callback_id}, 0);
    if (!is_new) continue;
    std::string name = library.callback_name(static_cast<cupti::CallbackDomain>(rows[i].domain), rows[i].callback_id);
    if (name.empty()) name = "callback " + std::to_string(rows[i].callback_id);
    entry->second = strings.intern(name);
  }
  TableBuilder<Row, Nothing> table;
  table.column("name_id", [&names](const Nothing&, const Row& r) { return names.at({r.domain, r.callback_id}); });
  table.add({}, rows);
  return table.build();
}

py::dict annotations_of(store::StringTable& strings, std::vector<store::AnnotationRow> annotations,
                        const std::vector<std::string>& paths) {
  for (store::AnnotationRow& row : annotations) row.name_id = strings.intern(paths[row.name_id]);
  return rows_of(annotations);
}

py::list strings_of(const store::StringTable& strings) {
  py::list out;
  for (const std::string& text : strings.texts()) {
    // Kernel names are bytes of the program's choosing.
    out.append(py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace")));
  }
  return out;
}

}  // namespace

py::dict tables_of(const cupti::Library& library, store::Store& store, std::vector<store::AnnotationRow> annotations,
                   const std::vector<std::string>& annotation_paths, OwnCalls own_calls) {
  // Also where memory runs out half-way: nobody will come for the rest.
  const std::unique_ptr<store::Store, void (*)(store::Store*)> emptied(&store,
                                                                       [](store::Store* taken) { taken->clear(); });
  remove_own_calls(store, own_calls);
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

}  // namespace collector
