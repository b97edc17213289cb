#include "tables.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "columns.h"

namespace collector {
namespace {

namespace py = pybind11;
using store::StreamKey;

struct Nothing {};

// The rows of every stream: `of` picks the chain.
template <typename Row>
py::dict streams_of(const store::Store& store, const store::Chunks<Row> store::Stream::* of) {
  TableBuilder<Row, StreamKey> table;
  table.column("device_id", [](const StreamKey& key, const Row&) { return key.device_id; })
      .column("context_id", [](const StreamKey& key, const Row&) { return key.context_id; })
      .column("stream_id", [](const StreamKey& key, const Row&) { return key.stream_id; });
  for (const auto& [key, stream] : store.streams()) table.add(key, stream.*of);
  return table.build();
}

template <typename Row>
py::dict rows_of(const store::Chunks<Row>& rows) {
  TableBuilder<Row, Nothing> table;
  table.add({}, rows);
  return table.build();
}

// The program's API calls, and the correlation ids of ours.
struct Calls {
  store::Chunks<store::ApiCallRow> program;
  std::unordered_set<uint32_t> own_correlations;
};

Calls split_calls(const store::Store& store, OwnCalls own) {
  Calls calls;
  for (size_t i = 0; i < store.api_calls.size(); ++i) {
    const store::ApiCallRow& row = store.api_calls[i];
    if (row.thread_id == own.thread_id && row.start_ns >= own.from_ns) {
      calls.own_correlations.insert(row.correlation_id);
    } else {
      calls.program.append() = row;
    }
  }
  return calls;
}

template <typename Row>
store::Chunks<Row> without(const store::Chunks<Row>& rows, const std::unordered_set<uint32_t>& correlations) {
  store::Chunks<Row> kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (correlations.count(rows[i].correlation_id) == 0) kept.append() = rows[i];
  }
  return kept;
}

py::dict api_calls_of(const cupti::Library& library, store::StringTable& strings,
                      const store::Chunks<store::ApiCallRow>& rows) {
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

py::dict annotations_of(store::StringTable& strings, const std::vector<store::AnnotationRow>& annotations,
                        const std::vector<std::string>& paths) {
  using Row = store::AnnotationRow;
  store::Chunks<Row> rows;
  for (const Row& annotation : annotations) {
    Row& row = rows.append();
    row = annotation;
    row.path_id = strings.intern(paths[annotation.path_id]);
  }
  return rows_of(rows);
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

py::dict tables_of(const cupti::Library& library, store::Store& store,
                   const std::vector<store::AnnotationRow>& annotations,
                   const std::vector<std::string>& annotation_paths, OwnCalls own_calls) {
  const Calls calls = split_calls(store, own_calls);
  py::dict tables;
  tables["kernels"] = streams_of(store, &store::Stream::kernels);
  tables["memcpys"] = streams_of(store, &store::Stream::memcpys);
  tables["memsets"] = streams_of(store, &store::Stream::memsets);
  tables["api_calls"] = api_calls_of(library, store.strings, calls.program);
  tables["external_correlations"] = rows_of(without(store.external_correlations, calls.own_correlations));
  tables["synchronizations"] = rows_of(without(store.synchronizations, calls.own_correlations));
  tables["overheads"] = rows_of(store.overheads);
  tables["memory_operations"] = rows_of(store.memory_operations);
  tables["annotations"] = annotations_of(store.strings, annotations, annotation_paths);
  py::dict out;
  out["tables"] = tables;
  out["strings"] = strings_of(store.strings);
  return out;
}

}  // namespace collector
