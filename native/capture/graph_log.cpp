#include "capture/graph_log.h"

#include <utility>

namespace collector::capture {
namespace {

using cupti::CuptiFunctions;
using cupti::GraphChange;
using cupti::ResourceCallback;
using cupti::Result;

thread_local uint32_t last_instantiated = 0;

constexpr int kNodeBits = 32;  // of a node's id: its place in the graph

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
                      uint64_t annotation, uint32_t thread_id) noexcept {
  const CuptiFunctions& functions = library.cupti();
  store::GraphChangeRow row{};
  const auto callback = static_cast<ResourceCallback>(callback_id);
  switch (callback) {
    case ResourceCallback::kGraphNodeCreated:
      row.graph_change = static_cast<uint8_t>(GraphChange::kNodeCreated);
      row.graph_node_id = id_of_node(functions, graph.node);
      break;
    case ResourceCallback::kGraphNodeCloned:
    case ResourceCallback::kGraphNodeUpdated:
    case ResourceCallback::kGraphNodeSetParams:
      row.graph_change = static_cast<uint8_t>(
          callback == ResourceCallback::kGraphNodeCloned ? GraphChange::kNodeCopied : GraphChange::kNodeUpdated);
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
    row.graph_id = static_cast<uint32_t>(row.graph_node_id >> kNodeBits);
    row.original_graph_id = static_cast<uint32_t>(row.original_node_id >> kNodeBits);
  }
  if (row.graph_id == 0) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  row.start_ns = library.clock().now().value_or(0);
  const auto change = static_cast<GraphChange>(row.graph_change);
  if (change == GraphChange::kNodeCreated || change == GraphChange::kInstantiated) row.external_id = annotation;
  row.thread_id = thread_id;
  try {
    add(row);
  } catch (...) {  // no memory
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

void GraphLog::add(const store::GraphChangeRow& row) {
  const threads::MutexLock lock(mutex_);
  // CUPTI reports a copied node twice, as created and then as copied: one row is enough.
  const bool is_copy = row.original_node_id != 0 && !rows_.empty();
  if (is_copy && rows_.back().graph_node_id == row.graph_node_id && rows_.back().original_node_id == 0) {
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
