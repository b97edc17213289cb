// The rows that a new segment of a journal repeats.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "capture/graph_node_ids.h"
#include "capture/repeated_rows.h"

namespace collector::capture {
namespace {

using cupti::GraphChange;

store::GraphChangeRow change(GraphChange kind, uint32_t graph, uint64_t node = 0, uint32_t original = 0,
                             uint64_t annotation = 0) {
  store::GraphChangeRow row{};
  row.graph_change = static_cast<uint8_t>(kind);
  row.graph_id = graph;
  row.graph_node_id = node;
  row.original_graph_id = original;
  row.external_id = annotation;
  return row;
}

void destroy(LiveGraphs& graphs, uint32_t graph) {
  graphs.add(change(GraphChange::kDestroyed, graph));
  graphs.forget_destroyed(1);
}

std::vector<uint32_t> graphs_of(const LiveGraphs& graphs) {
  std::vector<uint32_t> found;
  graphs.each_change([&](const store::GraphChangeRow& row) { found.push_back(row.graph_id); });
  return found;
}

store::GraphChangeRow copied(uint64_t node, uint64_t original) {
  store::GraphChangeRow row = change(GraphChange::kNodeCopied, graph_of(node), node, graph_of(original));
  row.original_node_id = original;
  return row;
}

// Node -> the node that it is a copy of, or 0.
std::map<uint64_t, uint64_t> originals_of(const LiveGraphs& graphs) {
  std::map<uint64_t, uint64_t> found;
  graphs.each_change([&](const store::GraphChangeRow& row) {
    if (row.graph_node_id != 0) found[row.graph_node_id] = row.original_node_id;
  });
  return found;
}

std::vector<uint64_t> annotations_of(const LiveGraphs& graphs) {
  std::vector<uint64_t> found;
  graphs.each_annotation([&](const store::AnnotationRow& row) { found.push_back(row.external_id); });
  return found;
}

store::AnnotationRow annotation(uint64_t id, int64_t end_ns = 0) {
  store::AnnotationRow row{};
  row.external_id = id;
  row.end_ns = end_ns;
  return row;
}

}  // namespace

TEST_CASE("A graph is repeated while a graph made from it exists") {
  LiveGraphs graphs;
  graphs.add(change(GraphChange::kNodeCreated, 1, 11, 0, 77));
  graphs.notice(annotation(77));
  graphs.notice(annotation(78));
  graphs.add(change(GraphChange::kNodeCopied, 2, 21, 1));
  graphs.add(change(GraphChange::kInstantiated, 2, 0, 1));
  destroy(graphs, 1);
  CHECK(graphs_of(graphs) == std::vector<uint32_t>{1, 2, 2});
  CHECK(annotations_of(graphs) == std::vector<uint64_t>{77});
  destroy(graphs, 2);
  CHECK(graphs_of(graphs).empty());
  CHECK(annotations_of(graphs).empty());
}

TEST_CASE("A graph that is replaced by its copy in every step does not grow") {
  LiveGraphs graphs;
  graphs.add(change(GraphChange::kNodeCreated, 1, node_at(1, 0), 0, 77));
  graphs.notice(annotation(77));
  const uint32_t last = 100'000;
  for (uint32_t graph = 2; graph <= last; ++graph) {
    graphs.add(copied(node_at(graph, 0), node_at(graph - 1, 0)));
    destroy(graphs, graph - 1);
  }
  // The graph that was captured, the present one, and the copy of which it is a copy.
  CHECK(originals_of(graphs) == std::map<uint64_t, uint64_t>{{node_at(1, 0), 0},
                                                             {node_at(last - 1, 0), node_at(1, 0)},
                                                             {node_at(last, 0), node_at(last - 1, 0)}});
  CHECK(annotations_of(graphs) == std::vector<uint64_t>{77});
  destroy(graphs, last);
  CHECK(graphs_of(graphs).empty());
  CHECK(annotations_of(graphs).empty());
}

TEST_CASE("A copy that is destroyed keeps the nodes of the graphs of which it is a copy") {
  LiveGraphs graphs;
  graphs.add(change(GraphChange::kNodeCreated, 1, node_at(1, 0)));
  graphs.add(change(GraphChange::kNodeCreated, 1, node_at(1, 1)));
  for (uint32_t place : {0U, 1U}) graphs.add(copied(node_at(2, place), node_at(1, place)));
  graphs.add(change(GraphChange::kNodeCreated, 2, node_at(2, 2)));  // it is the copy's own
  for (uint32_t place : {0U, 1U, 2U}) graphs.add(copied(node_at(3, place), node_at(2, place)));
  for (uint32_t place : {0U, 1U, 2U}) graphs.add(copied(node_at(4, place), node_at(3, place)));
  graphs.add(change(GraphChange::kInstantiated, 4, 0, 3));
  for (uint32_t graph : {3U, 1U, 2U}) destroy(graphs, graph);
  CHECK(originals_of(graphs) == std::map<uint64_t, uint64_t>{{node_at(1, 0), 0},
                                                             {node_at(1, 1), 0},
                                                             {node_at(2, 0), node_at(1, 0)},
                                                             {node_at(2, 1), node_at(1, 1)},
                                                             {node_at(2, 2), 0},
                                                             {node_at(3, 0), node_at(1, 0)},
                                                             {node_at(3, 1), node_at(1, 1)},
                                                             {node_at(3, 2), node_at(2, 2)},
                                                             {node_at(4, 0), node_at(3, 0)},
                                                             {node_at(4, 1), node_at(3, 1)},
                                                             {node_at(4, 2), node_at(3, 2)}});
  destroy(graphs, 4);
  CHECK(graphs_of(graphs).empty());
}

TEST_CASE("Nodes that are said to be copies of each other are forgotten as any others") {
  LiveGraphs graphs;
  graphs.add(copied(node_at(5, 0), node_at(6, 0)));
  graphs.add(copied(node_at(6, 0), node_at(5, 0)));
  graphs.add(copied(node_at(6, 1), node_at(6, 0)));
  destroy(graphs, 6);
  CHECK(originals_of(graphs)[node_at(5, 0)] == node_at(6, 0));
  destroy(graphs, 5);
  CHECK(graphs_of(graphs).empty());
}

TEST_CASE("Nodes that are said to be copies of each other, in another graph, are not followed for ever") {
  LiveGraphs graphs;
  for (const auto& [node, original] : {std::pair{5U, 6U}, std::pair{6U, 5U}}) {
    store::GraphChangeRow row = copied(node_at(node, 0), node_at(original, 0));
    row.original_graph_id = 1;
    graphs.add(row);
  }
  graphs.add(copied(node_at(7, 0), node_at(6, 0)));
  destroy(graphs, 6);
  CHECK(originals_of(graphs)[node_at(7, 0)] == node_at(6, 0));
}

TEST_CASE("A graph that is updated in every step does not grow") {
  LiveGraphs graphs;
  graphs.add(change(GraphChange::kNodeCopied, 1, 11, 0));
  for (uint32_t step = 2; step < 1000; ++step) {
    graphs.add(change(GraphChange::kNodeCreated, step, step * 10, 0, step));
    graphs.notice(annotation(step));
    graphs.add(change(GraphChange::kNodeUpdated, 1, 11, step));
    graphs.add(change(GraphChange::kGraphUpdated, 1, 0, step));
    graphs.add(change(GraphChange::kParametersSet, 1, 11));
    destroy(graphs, step);
  }
  // The copy, the update of the graph and that of the node, and that its parameters were set.
  CHECK(graphs_of(graphs) == std::vector<uint32_t>{1, 1, 1, 1, 999});
  CHECK(annotations_of(graphs) == std::vector<uint64_t>{999});
}

TEST_CASE("A graph is repeated while launches from before it was destroyed may be decoded") {
  RepeatedRows rows;
  rows.graphs.add(change(GraphChange::kNodeCreated, 1, node_at(1, 0)));
  rows.graphs.add(copied(node_at(2, 0), node_at(1, 0)));
  rows.graphs.add(change(GraphChange::kInstantiated, 2, 0, 1));
  store::GraphChangeRow destroyed = change(GraphChange::kDestroyed, 2);
  destroyed.start_ns = 100;
  rows.graphs.add(destroyed);
  rows.graphs.add(change(GraphChange::kDestroyed, 1));
  rows.forget_ended(100 + RepeatedRows::kLatenessNs);
  CHECK(graphs_of(rows.graphs) == std::vector<uint32_t>{1, 2, 2});
  rows.forget_ended(101 + RepeatedRows::kLatenessNs);
  CHECK(graphs_of(rows.graphs).empty());
}

TEST_CASE("Graphs that are destroyed while nothing is decoded do not grow") {
  LiveGraphs graphs;
  for (uint32_t graph = 1; graph <= LiveGraphs::kMostOfDestroyed; ++graph) {
    for (uint32_t place : {0U, 1U}) graphs.add(change(GraphChange::kNodeCreated, graph, node_at(graph, place)));
    graphs.add(change(GraphChange::kDestroyed, graph));
  }
  CHECK(graphs_of(graphs).size() == LiveGraphs::kMostOfDestroyed);
  CHECK(graphs_of(graphs).back() == LiveGraphs::kMostOfDestroyed);
}

TEST_CASE("A graph whose row comes after its annotation has ended has the annotation") {
  RepeatedRows rows;
  store::Store store;
  rows.notice(store);
  rows.notice({annotation(76, 4), annotation(77, 5)});  // it was captured in 77 after the rows of graphs had been moved
  store.append<store::GraphChangeRow>() = change(GraphChange::kNodeCreated, 1, 11, 0, 77);
  store.append<store::GraphChangeRow>() = change(GraphChange::kNodeCreated, 1, 12, 0, 78);
  rows.notice(store);
  rows.notice({annotation(78)});
  rows.forget_ended(RepeatedRows::kLatenessNs + 100);
  CHECK(rows.ended.empty());
  CHECK(annotations_of(rows.graphs) == std::vector<uint64_t>{77, 78});
}

TEST_CASE("Annotations that launches to come may be in are repeated") {
  RepeatedRows rows;
  rows.notice(std::vector<store::AnnotationRow>{annotation(1, 5), annotation(2, 2'000'000'000), annotation(3)});
  rows.forget_ended(1'500'000'000);
  REQUIRE(rows.ended.size() == 1);
  CHECK(rows.ended.front().external_id == 2);
}

}  // namespace collector::capture
