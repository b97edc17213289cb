// The places of nodes of child graphs and of bodies of conditional nodes in an executable graph.
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <map>

#include "capture/inlined_graphs.h"

namespace collector::capture {
namespace {

constexpr uint64_t node(uint32_t graph, uint32_t place) { return uint64_t{graph} << 32 | place; }

// Node -> the one that it is a copy of.
std::map<uint64_t, uint64_t> instantiated(InlinedGraphs& graphs, uint32_t id) {
  std::map<uint64_t, uint64_t> found;
  for (const InlinedGraphs::Node& each : graphs.instantiated(id)) found[each.id] = each.original_id;
  return found;
}

// The first nodes of `graph` are copies of those of `original`.
void copy_nodes(InlinedGraphs& graphs, uint32_t graph, uint32_t original, uint32_t from, uint32_t to) {
  for (uint32_t place = from; place < to; ++place) graphs.node_copied(node(graph, place), node(original, place));
}

using Nodes = std::map<uint64_t, uint64_t>;

}  // namespace

TEST_CASE("Nodes of a child graph follow those of the executable graph") {
  // As the H100 reported it: a kernel, then a child graph of two.
  InlinedGraphs graphs;
  copy_nodes(graphs, 3, 1, 0, 2);  // the child graph is added to its parent
  copy_nodes(graphs, 4, 2, 0, 1);
  copy_nodes(graphs, 5, 3, 0, 2);
  copy_nodes(graphs, 4, 2, 1, 2);
  graphs.instantiation_starting();
  graphs.node_destroyed(node(4, 1));
  graphs.graph_destroyed(5);
  CHECK(instantiated(graphs, 4) == Nodes{{node(4, 2), node(3, 0)}, {node(4, 3), node(3, 1)}});
}

TEST_CASE("The body of a conditional node is followed by nodes of the driver") {
  // As the H100 reported it: a kernel, then a conditional node with a body of one kernel.
  InlinedGraphs graphs;
  copy_nodes(graphs, 3, 1, 0, 1);
  copy_nodes(graphs, 4, 2, 0, 1);
  copy_nodes(graphs, 3, 1, 1, 2);
  graphs.instantiation_starting();
  graphs.graph_destroyed(4);
  graphs.node_created(node(3, 3));
  graphs.node_created(node(3, 4));
  CHECK(instantiated(graphs, 3) == Nodes{{node(3, 2), node(2, 0)}});
}

TEST_CASE("Several child graphs follow one after another") {
  // The child graphs are the first nodes of their parent: they have nodes before it has.
  InlinedGraphs graphs;
  copy_nodes(graphs, 11, 8, 0, 2);
  copy_nodes(graphs, 10, 7, 0, 1);
  copy_nodes(graphs, 12, 9, 0, 1);
  copy_nodes(graphs, 10, 7, 1, 2);
  graphs.instantiation_starting();
  graphs.node_destroyed(node(10, 0));
  graphs.graph_destroyed(11);
  graphs.node_destroyed(node(10, 1));
  graphs.graph_destroyed(12);
  CHECK(instantiated(graphs, 10) ==
        Nodes{{node(10, 2), node(8, 0)}, {node(10, 3), node(8, 1)}, {node(10, 4), node(9, 0)}});
}

TEST_CASE("Inner child graphs are moved before or after their parent, as their containers are destroyed") {
  for (const bool inner_first : {false, true}) {
    // 10: kernel, child graph 11; 11: kernel, child graph 12, kernel; 12: two kernels.
    InlinedGraphs graphs;
    copy_nodes(graphs, 10, 5, 0, 1);
    copy_nodes(graphs, 11, 6, 0, 1);
    copy_nodes(graphs, 12, 7, 0, 2);
    copy_nodes(graphs, 11, 6, 1, 3);
    copy_nodes(graphs, 10, 5, 1, 2);
    graphs.instantiation_starting();
    if (inner_first) {
      graphs.node_destroyed(node(11, 1));
      graphs.graph_destroyed(12);  // to 11:3 and 11:4
      graphs.node_destroyed(node(10, 1));
      graphs.graph_destroyed(11);
      CHECK(instantiated(graphs, 10) == Nodes{{node(10, 2), node(6, 0)},
                                              {node(10, 3), node(6, 2)},
                                              {node(10, 4), node(7, 0)},
                                              {node(10, 5), node(7, 1)}});
    } else {
      graphs.node_destroyed(node(10, 1));
      graphs.graph_destroyed(11);  // to 10:2, 10:3 and 10:4
      graphs.node_destroyed(node(10, 3));
      graphs.graph_destroyed(12);
      CHECK(instantiated(graphs, 10) == Nodes{{node(10, 2), node(6, 0)},
                                              {node(10, 3), node(6, 1)},
                                              {node(10, 4), node(6, 2)},
                                              {node(10, 5), node(7, 0)},
                                              {node(10, 6), node(7, 1)}});
    }
  }
}

TEST_CASE("A node that is destroyed takes no place, unless it was moved before") {
  for (const bool is_moved : {false, true}) {
    InlinedGraphs graphs;
    copy_nodes(graphs, 11, 8, 0, 3);
    copy_nodes(graphs, 10, 7, 0, 1);
    graphs.instantiation_starting();
    if (!is_moved) graphs.node_destroyed(node(11, 1));
    graphs.node_destroyed(node(10, 0));
    graphs.graph_destroyed(11);
    if (is_moved) graphs.node_destroyed(node(10, 2));
    Nodes expected{{node(10, 1), node(8, 0)}, {node(10, is_moved ? 3 : 2), node(8, 2)}};
    if (is_moved) expected[node(10, 2)] = node(8, 1);
    CHECK(instantiated(graphs, 10) == expected);
  }
}

TEST_CASE("Nothing is reported where a callback contradicts the places") {
  const auto begin = [](InlinedGraphs& graphs) {
    copy_nodes(graphs, 10, 7, 0, 1);
    copy_nodes(graphs, 11, 8, 0, 2);
    copy_nodes(graphs, 12, 9, 0, 2);
    copy_nodes(graphs, 10, 7, 1, 2);  // the container of two bodies
    graphs.instantiation_starting();
  };
  InlinedGraphs graphs;
  begin(graphs);
  SUBCASE("a node is created elsewhere") {
    graphs.graph_destroyed(11);
    graphs.node_created(node(10, 7));
  }
  SUBCASE("two bodies are moved, and their order is not confirmed") {
    graphs.graph_destroyed(11);
    graphs.graph_destroyed(12);
    graphs.node_created(node(10, 6));
  }
  SUBCASE("two bodies are moved, and no node is created") {
    graphs.graph_destroyed(11);
    graphs.graph_destroyed(12);
  }
  SUBCASE("a graph is destroyed twice") {
    graphs.graph_destroyed(11);
    graphs.graph_destroyed(11);
  }
  CHECK(instantiated(graphs, 10).empty());
}

TEST_CASE("Bodies whose order is confirmed by nodes of the driver have their places") {
  InlinedGraphs graphs;
  copy_nodes(graphs, 11, 8, 0, 1);
  copy_nodes(graphs, 12, 9, 0, 1);
  copy_nodes(graphs, 10, 7, 0, 1);
  graphs.instantiation_starting();
  graphs.graph_destroyed(11);
  graphs.node_created(node(10, 2));
  graphs.graph_destroyed(12);
  graphs.node_created(node(10, 4));
  CHECK(instantiated(graphs, 10) == Nodes{{node(10, 1), node(8, 0)}, {node(10, 3), node(9, 0)}});
}

TEST_CASE("Callbacks outside an instantiation, and those of an earlier one, have no effect") {
  InlinedGraphs graphs;
  copy_nodes(graphs, 3, 1, 0, 2);  // a clone
  graphs.node_destroyed(node(3, 1));
  graphs.graph_destroyed(3);
  copy_nodes(graphs, 10, 7, 0, 1);
  graphs.instantiation_starting();  // it fails
  copy_nodes(graphs, 12, 8, 0, 1);
  copy_nodes(graphs, 11, 7, 0, 1);
  graphs.instantiation_starting();
  graphs.node_destroyed(node(11, 0));
  graphs.graph_destroyed(12);
  CHECK(instantiated(graphs, 11) == Nodes{{node(11, 1), node(8, 0)}});
  CHECK(!graphs.is_instantiating());
  CHECK(instantiated(graphs, 11).empty());
}

TEST_CASE("The time grows with the number of child graphs, not with its square") {
  constexpr uint32_t kChildren = 60'000;  // whose square takes minutes
  constexpr uint32_t kParent = 1;
  InlinedGraphs graphs;
  graphs.node_copied(node(kParent, 0), node(2, 0));  // a kernel
  for (uint32_t child = 1; child <= kChildren; ++child) {
    copy_nodes(graphs, 10 + child, 5, 0, 1);
    graphs.node_copied(node(kParent, child), node(2, child));
  }
  graphs.instantiation_starting();
  for (uint32_t child = 1; child <= kChildren; ++child) {
    graphs.node_destroyed(node(kParent, child));
    graphs.graph_destroyed(10 + child);
  }
  const Nodes found = instantiated(graphs, kParent);
  CHECK(found.size() == kChildren);
  CHECK(found.at(node(kParent, 2 * kChildren)) == node(5, 0));
}

TEST_CASE("Copies are noted up to a limit") {
  InlinedGraphs graphs;
  for (uint32_t graph = 1; graph <= InlinedGraphs::kMostNodes; ++graph) graphs.node_copied(node(1, graph), 0);
  copy_nodes(graphs, 12, 8, 0, 1);
  copy_nodes(graphs, 11, 7, 0, 1);
  graphs.instantiation_starting();
  graphs.node_destroyed(node(11, 0));
  graphs.graph_destroyed(12);
  CHECK(instantiated(graphs, 11).empty());
}

}  // namespace collector::capture
