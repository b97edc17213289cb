#include "tables.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "columns.h"

namespace collector {
namespace {

namespace py = pybind11;
using store::StreamKey;

template <typename Row>
struct StreamTable : TableBuilder<Row, StreamKey> {
  StreamTable() {
    this->column("start_ns", [](const StreamKey&, const Row& r) { return r.start_ns; })
        .column("end_ns", [](const StreamKey&, const Row& r) { return r.end_ns; })
        .column("device_id", [](const StreamKey& k, const Row&) { return k.device_id; })
        .column("context_id", [](const StreamKey& k, const Row&) { return k.context_id; })
        .column("stream_id", [](const StreamKey& k, const Row&) { return k.stream_id; })
        .column("correlation_id", [](const StreamKey&, const Row& r) { return r.correlation_id; })
        .column("graph_id", [](const StreamKey&, const Row& r) { return r.graph_id; })
        .column("graph_node_id", [](const StreamKey&, const Row& r) { return r.graph_node_id; });
  }
};

py::dict kernels_of(const store::Store& store) {
  using Row = store::KernelRow;
  StreamTable<Row> table;
  table.column("name_id", [](const StreamKey&, const Row& r) { return r.name_id; })
      .column("grid_x", [](const StreamKey&, const Row& r) { return r.grid_x; })
      .column("grid_y", [](const StreamKey&, const Row& r) { return r.grid_y; })
      .column("grid_z", [](const StreamKey&, const Row& r) { return r.grid_z; })
      .column("block_x", [](const StreamKey&, const Row& r) { return r.block_x; })
      .column("block_y", [](const StreamKey&, const Row& r) { return r.block_y; })
      .column("block_z", [](const StreamKey&, const Row& r) { return r.block_z; })
      .column("cluster_x", [](const StreamKey&, const Row& r) { return r.cluster_x; })
      .column("cluster_y", [](const StreamKey&, const Row& r) { return r.cluster_y; })
      .column("cluster_z", [](const StreamKey&, const Row& r) { return r.cluster_z; })
      .column("registers_per_thread", [](const StreamKey&, const Row& r) { return r.registers_per_thread; })
      .column("static_shared_bytes", [](const StreamKey&, const Row& r) { return r.static_shared_bytes; })
      .column("dynamic_shared_bytes", [](const StreamKey&, const Row& r) { return r.dynamic_shared_bytes; })
      .column("local_bytes_per_thread", [](const StreamKey&, const Row& r) { return r.local_bytes_per_thread; })
      .column("launch_type", [](const StreamKey&, const Row& r) { return r.launch_type; });
  for (const auto& [key, stream] : store.streams()) table.add(key, stream.kernels);
  return table.build();
}

py::dict memcpys_of(const store::Store& store) {
  using Row = store::MemcpyRow;
  StreamTable<Row> table;
  table.column("num_bytes", [](const StreamKey&, const Row& r) { return r.num_bytes; })
      .column("copy_kind", [](const StreamKey&, const Row& r) { return r.copy_kind; })
      .column("src_kind", [](const StreamKey&, const Row& r) { return r.src_kind; })
      .column("dst_kind", [](const StreamKey&, const Row& r) { return r.dst_kind; })
      .column("is_async", [](const StreamKey&, const Row& r) { return r.is_async; })
      .column("src_device_id", [](const StreamKey&, const Row& r) { return r.src_device_id; })
      .column("src_context_id", [](const StreamKey&, const Row& r) { return r.src_context_id; })
      .column("dst_device_id", [](const StreamKey&, const Row& r) { return r.dst_device_id; })
      .column("dst_context_id", [](const StreamKey&, const Row& r) { return r.dst_context_id; });
  for (const auto& [key, stream] : store.streams()) table.add(key, stream.memcpys);
  return table.build();
}

py::dict memsets_of(const store::Store& store) {
  using Row = store::MemsetRow;
  StreamTable<Row> table;
  table.column("num_bytes", [](const StreamKey&, const Row& r) { return r.num_bytes; })
      .column("value", [](const StreamKey&, const Row& r) { return r.value; })
      .column("memory_kind", [](const StreamKey&, const Row& r) { return r.memory_kind; })
      .column("is_async", [](const StreamKey&, const Row& r) { return r.is_async; });
  for (const auto& [key, stream] : store.streams()) table.add(key, stream.memsets);
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

struct Nothing {};

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
  table.column("start_ns", [](const Nothing&, const Row& r) { return r.start_ns; })
      .column("end_ns", [](const Nothing&, const Row& r) { return r.end_ns; })
      .column("domain", [](const Nothing&, const Row& r) { return r.domain; })
      .column("callback_id", [](const Nothing&, const Row& r) { return r.callback_id; })
      .column("name_id", [&names](const Nothing&, const Row& r) { return names.at({r.domain, r.callback_id}); })
      .column("process_id", [](const Nothing&, const Row& r) { return r.process_id; })
      .column("thread_id", [](const Nothing&, const Row& r) { return r.thread_id; })
      .column("correlation_id", [](const Nothing&, const Row& r) { return r.correlation_id; })
      .column("return_value", [](const Nothing&, const Row& r) { return r.return_value; });
  table.add({}, rows);
  return table.build();
}

py::dict external_correlations_of(const store::Chunks<store::ExternalCorrelationRow>& rows) {
  using Row = store::ExternalCorrelationRow;
  TableBuilder<Row, Nothing> table;
  table.column("correlation_id", [](const Nothing&, const Row& r) { return r.correlation_id; })
      .column("external_id", [](const Nothing&, const Row& r) { return r.external_id; })
      .column("external_kind", [](const Nothing&, const Row& r) { return r.external_kind; });
  table.add({}, rows);
  return table.build();
}

py::dict synchronizations_of(const store::Chunks<store::SynchronizationRow>& rows) {
  using Row = store::SynchronizationRow;
  TableBuilder<Row, Nothing> table;
  table.column("start_ns", [](const Nothing&, const Row& r) { return r.start_ns; })
      .column("end_ns", [](const Nothing&, const Row& r) { return r.end_ns; })
      .column("sync_type", [](const Nothing&, const Row& r) { return r.sync_type; })
      .column("context_id", [](const Nothing&, const Row& r) { return r.context_id; })
      .column("stream_id", [](const Nothing&, const Row& r) { return r.stream_id; })
      .column("correlation_id", [](const Nothing&, const Row& r) { return r.correlation_id; })
      .column("event_id", [](const Nothing&, const Row& r) { return r.event_id; })
      .column("return_value", [](const Nothing&, const Row& r) { return r.return_value; });
  table.add({}, rows);
  return table.build();
}

py::dict overheads_of(const store::Store& store) {
  using Row = store::OverheadRow;
  TableBuilder<Row, Nothing> table;
  table.column("start_ns", [](const Nothing&, const Row& r) { return r.start_ns; })
      .column("end_ns", [](const Nothing&, const Row& r) { return r.end_ns; })
      .column("overhead_kind", [](const Nothing&, const Row& r) { return r.overhead_kind; })
      .column("object_kind", [](const Nothing&, const Row& r) { return r.object_kind; })
      .column("process_id", [](const Nothing&, const Row& r) { return r.process_id; })
      .column("thread_id", [](const Nothing&, const Row& r) { return r.thread_id; })
      .column("device_id", [](const Nothing&, const Row& r) { return r.device_id; })
      .column("context_id", [](const Nothing&, const Row& r) { return r.context_id; })
      .column("stream_id", [](const Nothing&, const Row& r) { return r.stream_id; })
      .column("correlation_id", [](const Nothing&, const Row& r) { return r.correlation_id; });
  table.add({}, store.overheads);
  return table.build();
}

py::dict memory_operations_of(const store::Store& store) {
  using Row = store::MemoryOperationRow;
  TableBuilder<Row, Nothing> table;
  table.column("start_ns", [](const Nothing&, const Row& r) { return r.start_ns; })
      .column("operation", [](const Nothing&, const Row& r) { return r.operation; })
      .column("memory_kind", [](const Nothing&, const Row& r) { return r.memory_kind; })
      .column("address", [](const Nothing&, const Row& r) { return r.address; })
      .column("num_bytes", [](const Nothing&, const Row& r) { return r.num_bytes; })
      .column("device_id", [](const Nothing&, const Row& r) { return r.device_id; })
      .column("context_id", [](const Nothing&, const Row& r) { return r.context_id; })
      .column("stream_id", [](const Nothing&, const Row& r) { return r.stream_id; })
      .column("correlation_id", [](const Nothing&, const Row& r) { return r.correlation_id; })
      .column("name_id", [](const Nothing&, const Row& r) { return r.name_id; })
      .column("is_async", [](const Nothing&, const Row& r) { return r.is_async; })
      .column("pool_type", [](const Nothing&, const Row& r) { return r.pool_type; })
      .column("pool_address", [](const Nothing&, const Row& r) { return r.pool_address; })
      .column("pool_bytes", [](const Nothing&, const Row& r) { return r.pool_bytes; })
      .column("pool_used_bytes", [](const Nothing&, const Row& r) { return r.pool_used_bytes; });
  table.add({}, store.memory_operations);
  return table.build();
}

py::dict annotations_of(store::StringTable& strings, const std::vector<capture::AnnotationRow>& annotations,
                        const std::vector<std::string>& paths) {
  using Row = capture::AnnotationRow;
  store::Chunks<Row> rows;
  for (const Row& annotation : annotations) {
    Row& row = rows.append();
    row = annotation;
    row.path_id = strings.intern(paths[annotation.path_id]);
  }
  TableBuilder<Row, Nothing> table;
  table.column("start_ns", [](const Nothing&, const Row& r) { return r.start_ns; })
      .column("end_ns", [](const Nothing&, const Row& r) { return r.end_ns; })
      .column("external_id", [](const Nothing&, const Row& r) { return r.external_id; })
      .column("name_id", [](const Nothing&, const Row& r) { return r.path_id; })
      .column("thread_id", [](const Nothing&, const Row& r) { return r.thread_id; })
      .column("depth", [](const Nothing&, const Row& r) { return r.depth; })
      .column("details_id", [](const Nothing&, const Row& r) { return r.details_id; });
  table.add({}, rows);
  return table.build();
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
                   const std::vector<capture::AnnotationRow>& annotations,
                   const std::vector<std::string>& annotation_paths, OwnCalls own_calls) {
  const Calls calls = split_calls(store, own_calls);
  py::dict tables;
  tables["kernels"] = kernels_of(store);
  tables["memcpys"] = memcpys_of(store);
  tables["memsets"] = memsets_of(store);
  tables["api_calls"] = api_calls_of(library, store.strings, calls.program);
  tables["external_correlations"] =
      external_correlations_of(without(store.external_correlations, calls.own_correlations));
  tables["synchronizations"] = synchronizations_of(without(store.synchronizations, calls.own_correlations));
  tables["overheads"] = overheads_of(store);
  tables["memory_operations"] = memory_operations_of(store);
  tables["annotations"] = annotations_of(store.strings, annotations, annotation_paths);
  py::dict out;
  out["tables"] = tables;
  out["strings"] = strings_of(store.strings);
  return out;
}

}  // namespace collector
