#include "capture/graph_log.h"

#include <optional>
#include <utility>

#include "capture/graph_node_ids.h"

namespace collector::capture {
namespace {

using cupti::CuptiFunctions;
using cupti::GraphChange;
using cupti::ResourceCallback;
using cupti::Result;

thread_local uint32_t last_instantiated = 0;

// The call of cupti::kGraphUpdateCalls that this thread makes.
struct UpdateInCall {
  uint32_t graph_id = 0;  // of the executable graph; 0: there is no such call
  uint32_t original_graph_id = 0;
  uint64_t original_node_id = 0;
  uint32_t correlation_id = 0;
};
thread_local UpdateInCall update_in_call;

bool is_change(const store::GraphChangeRow& row, GraphChange change) {
  return row.graph_change == static_cast<uint8_t>(change);
}

uint32_t id_of_graph(const CuptiFunctions& functions, void* graph) {
  uint32_t id = 0;
  if (graph == nullptr || functions.GetGraphId == nullptr) return 0;
  return functions.GetGraphId(graph, &id) == Result::kSuccess ? id : 0;
}

// Before CUDA 12.3 there is one function for both kinds of graphs.
uint32_t id_of_executable(const CuptiFunctions& functions, void* executable) {
  uint32_t id = 0;
  if (functions.GetGraphExecId == nullptr) return id_of_graph(functions, executable);
  if (executable == nullptr) return 0;
  return functions.GetGraphExecId(executable, &id) == Result::kSuccess ? id : 0;
}

uint64_t id_of_node(const CuptiFunctions& functions, void* node) {
  uint64_t id = 0;
  if (node == nullptr || functions.GetGraphNodeId == nullptr) return 0;
  return functions.GetGraphNodeId(node, &id) == Result::kSuccess ? id : 0;
}

// No value: the call updates a node that stands for no graph.
std::optional<UpdateInCall> update_of(const CuptiFunctions& functions, const cupti::GraphUpdateCall& call,
                                      const cupti::GraphUpdateParams& params) {
  UpdateInCall update;
  if (call.target == cupti::GraphUpdateTarget::kGraph) {
    update.original_graph_id = id_of_graph(functions, params.graphOrNode);
  } else {
    const void* graph = params.graphOrContent;
    if (call.target == cupti::GraphUpdateTarget::kNode) {
      const auto* const content = static_cast<const cupti::GraphNodeParams*>(graph);
      if (content == nullptr || content->type != cupti::GraphNodeParams::kChildGraph) return std::nullopt;
      graph = content->graph;
    }
    update.original_graph_id = id_of_graph(functions, const_cast<void*>(graph));
    update.original_node_id = id_of_node(functions, params.graphOrNode);
  }
  update.graph_id = id_of_executable(functions, params.graphExec);
  return update;
}

}  // namespace

uint32_t GraphLog::take_instantiated() noexcept { return std::exchange(last_instantiated, 0); }

void GraphLog::begin(bool forget) {
  const threads::MutexLock lock(mutex_);
  forget_ = forget;
  rows_.clear();
  num_rows_ = 0;
  lost_.store(0, std::memory_order_relaxed);
}

void GraphLog::notice(const cupti::Library& library, uint32_t callback_id, const cupti::GraphData& graph,
                      InlinedGraphs& inlined, uint64_t annotation, uint32_t thread_id) noexcept {
  const CuptiFunctions& functions = library.cupti();
  store::GraphChangeRow row{};
  const auto callback = static_cast<ResourceCallback>(callback_id);
  switch (callback) {
    case ResourceCallback::kGraphExecCreateStarting:
      break;
    case ResourceCallback::kGraphNodeDestroyStarting:
      if (!inlined.is_instantiating()) return;
      row.graph_node_id = id_of_node(functions, graph.node);
      break;
    case ResourceCallback::kGraphNodeCreated:
      row.graph_change = static_cast<uint8_t>(GraphChange::kNodeCreated);
      row.graph_node_id = id_of_node(functions, graph.node);
      break;
    case ResourceCallback::kGraphNodeCloned:
      row.graph_change = static_cast<uint8_t>(GraphChange::kNodeCopied);
      row.graph_node_id = id_of_node(functions, graph.node);
      row.original_node_id = id_of_node(functions, graph.originalNode);
      break;
    case ResourceCallback::kGraphNodeUpdated:
      row.graph_change = static_cast<uint8_t>(GraphChange::kNodeUpdated);
      // CUPTI 13.0.85 calls the node of the executable graph the original one, and that of the other graph the node.
      row.graph_node_id = id_of_node(functions, graph.originalNode);
      row.original_node_id = id_of_node(functions, graph.node);
      if (update_in_call.graph_id != 0 && graph_of(row.original_node_id) == update_in_call.graph_id) {
        std::swap(row.graph_node_id, row.original_node_id);
      }
      row.update_correlation_id = update_in_call.correlation_id;
      break;
    case ResourceCallback::kGraphNodeSetParams:
      // An update reports this, too, with the node that was instantiated as the original.
      if (update_in_call.graph_id != 0) return;
      row.graph_change = static_cast<uint8_t>(GraphChange::kParametersSet);
      row.graph_node_id = id_of_node(functions, graph.node);
      row.original_node_id = id_of_node(functions, graph.originalNode);
      break;
    case ResourceCallback::kGraphExecCreated:
      row.graph_change = static_cast<uint8_t>(GraphChange::kInstantiated);
      row.graph_id = id_of_executable(functions, graph.graphExec);
      row.original_graph_id = id_of_graph(functions, graph.graph);
      last_instantiated = row.graph_id;
      break;
    case ResourceCallback::kGraphExecDestroyStarting:
      row.graph_change = static_cast<uint8_t>(GraphChange::kDestroyed);
      row.graph_id = id_of_executable(functions, graph.graphExec);
      break;
    case ResourceCallback::kGraphDestroyStarting:
      row.graph_change = static_cast<uint8_t>(GraphChange::kDestroyed);
      row.graph_id = id_of_graph(functions, graph.graph);
      break;
    default:
      return;
  }
  if (row.graph_node_id != 0) {
    row.graph_id = graph_of(row.graph_node_id);
    row.original_graph_id = graph_of(row.original_node_id);
  }
  const auto change = static_cast<GraphChange>(row.graph_change);
  if (change == GraphChange::kNodeCreated || change == GraphChange::kInstantiated) row.external_id = annotation;
  row.thread_id = thread_id;
  try {
    follow(library, inlined, callback, row);
  } catch (...) {  // no memory
    inlined = {};
  }
  if (change != GraphChange::kNone) keep(library, row);
}

void GraphLog::follow(const cupti::Library& library, InlinedGraphs& inlined, ResourceCallback callback,
                      const store::GraphChangeRow& row) {
  switch (callback) {
    case ResourceCallback::kGraphNodeCloned:
      return inlined.node_copied(row.graph_node_id, row.original_node_id);
    case ResourceCallback::kGraphExecCreateStarting:
      return inlined.instantiation_starting();
    case ResourceCallback::kGraphNodeCreated:
      return inlined.node_created(row.graph_node_id);
    case ResourceCallback::kGraphNodeDestroyStarting:
      return inlined.node_destroyed(row.graph_node_id);
    case ResourceCallback::kGraphDestroyStarting:
      return inlined.graph_destroyed(row.graph_id);
    case ResourceCallback::kGraphExecCreated:
      for (const InlinedGraphs::Node& node : inlined.instantiated(row.graph_id)) {
        store::GraphChangeRow moved{};
        moved.graph_change = static_cast<uint8_t>(GraphChange::kNodeCopied);
        moved.graph_id = row.graph_id;
        moved.graph_node_id = node.id;
        moved.original_graph_id = graph_of(node.original_id);
        moved.original_node_id = node.original_id;
        moved.thread_id = row.thread_id;
        keep(library, moved);
      }
      return;
    default:
      return;
  }
}

void GraphLog::notice_call(const cupti::Library& library, const cupti::GraphUpdateCall& call,
                           const cupti::ApiCallData& data, uint32_t thread_id) noexcept {
  if (data.callbackSite == cupti::kCallEntered) {
    update_in_call = {};
    if (data.functionParams == nullptr) return;
    const auto& params = *static_cast<const cupti::GraphUpdateParams*>(data.functionParams);
    const std::optional<UpdateInCall> update = update_of(library.cupti(), call, params);
    if (!update) return;
    if (update->graph_id == 0) lost_.fetch_add(1, std::memory_order_relaxed);
    update_in_call = *update;
    update_in_call.correlation_id = data.correlationId;
    return;
  }
  // The call of the runtime contains that of the driver, which returns first.
  const UpdateInCall update = std::exchange(update_in_call, {});
  if (update.graph_id == 0 || data.functionReturnValue == nullptr) return;
  if (*static_cast<const uint32_t*>(data.functionReturnValue) != 0) return;
  store::GraphChangeRow row{};
  row.graph_change = static_cast<uint8_t>(GraphChange::kGraphUpdated);
  row.graph_id = update.graph_id;
  row.original_graph_id = update.original_graph_id;
  row.original_node_id = update.original_node_id;
  row.update_correlation_id = update.correlation_id;
  row.thread_id = thread_id;
  keep(library, row);
}

void GraphLog::keep(const cupti::Library& library, store::GraphChangeRow& row) noexcept {
  if (row.graph_id == 0) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  row.start_ns = library.clock().now().value_or(0);
  try {
    add(row);
  } catch (...) {  // no memory
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

void GraphLog::add(const store::GraphChangeRow& row) {
  const threads::MutexLock lock(mutex_);
  // CUPTI reports a copied node twice, as created and then as copied: one row is enough.
  if (!rows_.empty() && is_change(row, GraphChange::kNodeCopied) &&
      is_change(rows_.back(), GraphChange::kNodeCreated) && rows_.back().graph_node_id == row.graph_node_id) {
    rows_.back() = row;
    return;
  }
  if (num_rows_ >= kMostRows) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  rows_.push_back(row);
  ++num_rows_;
}

size_t GraphLog::move_to(store::Store& store) {
  std::vector<store::GraphChangeRow> rows;
  {
    const threads::MutexLock lock(mutex_);
    rows.swap(rows_);
    if (forget_) num_rows_ = 0;
  }
  size_t moved = 0;
  try {
    for (; moved < rows.size(); ++moved) store.append<store::GraphChangeRow>() = rows[moved];
  } catch (...) {  // no memory
    lost_.fetch_add(rows.size() - moved, std::memory_order_relaxed);
    throw;
  }
  return moved;
}

}  // namespace collector::capture
