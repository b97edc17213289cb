// The calls that give an executable graph the parameters of another graph, and their arguments.
#pragma once

#include <cstdint>

#include "cupti/abi.h"

namespace collector::cupti {

enum class GraphUpdateTarget : uint8_t {
  kGraph,       // all nodes
  kChildGraph,  // the nodes of a child graph
  kNode,        // a node of any type, which may stand for a child graph
};

// By its number in cupti_driver_cbid.h or cupti_runtime_cbid.h, which never changes.
struct GraphUpdateCall {
  CallbackDomain domain;
  uint32_t id;
  GraphUpdateTarget target;
};

constexpr GraphUpdateCall kGraphUpdateCalls[] = {
    {CallbackDomain::kDriverApi, 561, GraphUpdateTarget::kGraph},        // cuGraphExecUpdate
    {CallbackDomain::kDriverApi, 696, GraphUpdateTarget::kGraph},        // cuGraphExecUpdate_v2
    {CallbackDomain::kDriverApi, 586, GraphUpdateTarget::kChildGraph},   // cuGraphExecChildGraphNodeSetParams
    {CallbackDomain::kDriverApi, 714, GraphUpdateTarget::kNode},         // cuGraphExecNodeSetParams
    {CallbackDomain::kRuntimeApi, 335, GraphUpdateTarget::kGraph},       // cudaGraphExecUpdate_v10020
    {CallbackDomain::kRuntimeApi, 361, GraphUpdateTarget::kChildGraph},  // cudaGraphExecChildGraphNodeSetParams_v11010
    {CallbackDomain::kRuntimeApi, 447, GraphUpdateTarget::kNode},        // cudaGraphExecNodeSetParams_v12020
};

// Returns nullptr for any other call.
constexpr const GraphUpdateCall* graph_update_call(uint32_t domain, uint32_t id) {
  for (const GraphUpdateCall& call : kGraphUpdateCalls) {
    if (static_cast<uint32_t>(call.domain) == domain && call.id == id) return &call;
  }
  return nullptr;
}

// NOLINTBEGIN(readability-identifier-naming): as in abi.h.

// The first arguments of each of these calls.
struct GraphUpdateParams {
  void* graphExec;
  void* graphOrNode;           // the graph of kGraph, otherwise the node
  const void* graphOrContent;  // the graph of kChildGraph; of kNode a GraphNodeParams
};

// The first members of CUgraphNodeParams and cudaGraphNodeParams, if the node stands for a child graph.
struct GraphNodeParams {
  static constexpr uint32_t kChildGraph = 4;  // CU_GRAPH_NODE_TYPE_GRAPH

  uint32_t type;
  int32_t reserved[3];
  void* graph;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace collector::cupti
