#include "capture/inlined_graphs.h"

#include <utility>

#include "capture/graph_node_ids.h"

namespace collector::capture {

InlinedGraphs::Graph* InlinedGraphs::find(uint32_t id) {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : &graphs_[found->second];
}

uint64_t InlinedGraphs::present(uint64_t node) const {
  const auto found = moved_.find(node);
  return found == moved_.end() ? node : found->second;
}

void InlinedGraphs::node_copied(uint64_t node, uint64_t original) {
  if (is_too_large_) return;
  if (++num_nodes_ > kMostNodes) {
    *this = {};
    is_too_large_ = true;
    return;
  }
  const uint32_t id = graph_of(node);
  // Graphs that were created after this one, and filled since its last node, are those of the present node.
  for (; !open_.empty() && open_.back() > id; open_.pop_back()) find(open_.back())->container = node;
  Graph* graph = find(id);
  const bool is_new = graph == nullptr;
  if (is_new) {
    places_.emplace(id, graphs_.size());
    graphs_.emplace_back().id = id;
    graph = &graphs_.back();
  }
  if (open_.empty() || open_.back() != id) {
    graph->is_certain = graph->is_certain && is_new;
    open_.push_back(id);
  }
  if (place_of(node) != graph->num_places) graph->is_certain = false;
  graph->originals.push_back(original);
  ++graph->num_places;
}

void InlinedGraphs::instantiation_starting() {
  is_instantiating_ = true;
  is_certain_ = true;
  destroyed_ = 0;
  moved_.clear();
  gone_.clear();
  num_unconfirmed_ = 0;
  for (Graph& graph : graphs_) {
    graph.nodes.clear();
    graph.num_places = static_cast<uint32_t>(graph.originals.size());
    for (uint32_t place = 0; place < graph.num_places; ++place) graph.nodes.push_back(node_at(graph.id, place));
    graph.is_moved = false;
  }
}

void InlinedGraphs::node_created(uint64_t node) {
  if (!is_instantiating_) return;
  destroyed_ = 0;
  Graph* const graph = find(graph_of(node));
  if (graph == nullptr) return;
  if (place_of(node) != graph->num_places++) is_certain_ = false;
  // The place confirms how many nodes were moved, but not the order of several bodies.
  if (num_unconfirmed_ > 1) is_certain_ = false;
  num_unconfirmed_ = 0;
}

void InlinedGraphs::node_destroyed(uint64_t node) {
  if (!is_instantiating_) return;
  destroyed_ = node;
  gone_.insert(node);
}

void InlinedGraphs::graph_destroyed(uint32_t id) {
  if (!is_instantiating_) return;
  const uint64_t destroyed = std::exchange(destroyed_, 0);
  Graph* const graph = find(id);
  if (graph == nullptr) return;  // it had no nodes
  const uint64_t container = present(graph->container);
  Graph* const into = find(graph_of(container));
  if (graph->container == 0 || into == nullptr || graph->is_moved || !graph->is_certain) {
    is_certain_ = false;
    return;
  }
  if (destroyed != container) ++num_unconfirmed_;
  move(*graph, *into);
}

void InlinedGraphs::move(Graph& graph, Graph& into) {
  for (const uint64_t node : graph.nodes) {
    if (gone_.count(present(node)) != 0) continue;
    moved_[node] = node_at(into.id, into.num_places++);
    into.nodes.push_back(node);
  }
  graph.nodes.clear();
  graph.is_moved = true;
}

std::vector<InlinedGraphs::Node> InlinedGraphs::instantiated(uint32_t id) {
  std::vector<Node> nodes;
  const Graph* const executable = find(id);
  const bool is_certain =
      is_instantiating_ && is_certain_ && num_unconfirmed_ <= 1 && executable != nullptr && executable->is_certain;
  for (const auto& [node, moved] : moved_) {
    if (!is_certain || graph_of(moved) != id) continue;
    nodes.push_back({moved, find(graph_of(node))->originals[place_of(node)]});
  }
  *this = {};
  return nodes;
}

}  // namespace collector::capture
