// The nodes that an instantiation moves from child graphs, and from the bodies of conditional nodes, into the
// executable graph. Records name them by their places there, which no callback reports.
//
// What CUPTI 13.0.85 reports of an instantiation on an H100 (9 = graph created, 13 = node created, 20 = node copied,
// 17 = executable graph starting, 14 = node destroyed, 10 = graph destroyed, 18 = executable graph created; 4:1 is the
// second node of graph 4, and the graph that was instantiated has a kernel and a child graph of two):
//
//     9(4) 20(4:0) 9(5) 20(5:0) 20(5:1) 20(4:1) ... 17 14(4:1) 10(5) 18(4)    records: 4:0, 4:2, 4:3
//
// A child graph is copied before the node that stands for it, which is its container. Behind 17 that node is destroyed,
// then the child graph, whose nodes have taken the next places of the container's graph, in their order. The body of a
// conditional node is moved likewise; its container stays, and nodes of the driver follow: 10(5) 13(4:3) 13(4:4).
//
// Whatever contradicts this makes the places uncertain, and they are not reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace collector::capture {

// Of one thread, which makes all of an instantiation's callbacks. Ids of nodes: see graph_log.h.
class InlinedGraphs {
 public:
  // A node of the executable graph, and the one that it is a copy of.
  struct Node {
    uint64_t id;
    uint64_t original_id;
  };

  // The copies that a thread can note between two instantiations; further ones make the next one uncertain.
  static constexpr size_t kMostNodes = size_t{1} << 18;

  void node_copied(uint64_t node, uint64_t original);
  void instantiation_starting();
  // The following have no effect outside an instantiation.
  void node_created(uint64_t node);
  void node_destroyed(uint64_t node);
  void graph_destroyed(uint32_t graph);
  // Returns the nodes that were moved, as far as they are certain, and forgets all graphs.
  std::vector<Node> instantiated(uint32_t graph);

  bool is_instantiating() const { return is_instantiating_; }

 private:
  struct Graph {
    uint32_t id = 0;
    std::vector<uint64_t> originals;  // by place: of the copied nodes
    std::vector<uint64_t> nodes;      // during an instantiation: those that were there or were moved here, in order
    uint32_t num_places = 0;          // that were taken
    uint64_t container = 0;           // the node that stands for the graph; 0: none is known
    bool is_moved = false;
    bool is_certain = true;
  };

  Graph* find(uint32_t id);
  // The present id of a node that was copied.
  uint64_t present(uint64_t node) const;
  void move(Graph& graph, Graph& into);

  std::vector<Graph> graphs_;
  std::unordered_map<uint32_t, size_t> places_;  // in graphs_, by id
  std::vector<uint32_t> open_;                   // graphs whose container is not known yet, from outer to inner ones
  size_t num_nodes_ = 0;
  bool is_too_large_ = false;
  bool is_instantiating_ = false;
  bool is_certain_ = true;
  uint64_t destroyed_ = 0;              // the node of the last callback, if it was destroyed
  std::map<uint64_t, uint64_t> moved_;  // node -> its present id
  std::unordered_set<uint64_t> gone_;   // present ids of nodes that were destroyed
  size_t num_unconfirmed_ = 0;          // bodies that were moved since the driver added a node
};

}  // namespace collector::capture
