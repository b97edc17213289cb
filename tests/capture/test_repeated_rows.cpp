// The rows that a new segment of a journal repeats.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

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

std::vector<uint32_t> graphs_of(const LiveGraphs& graphs) {
  std::vector<uint32_t> found;
  graphs.each_change([&](const store::GraphChangeRow& row) { found.push_back(row.graph_id); });
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
  graphs.add(change(GraphChange::kDestroyed, 1));
  CHECK(graphs_of(graphs) == std::vector<uint32_t>{1, 2, 2});
  CHECK(annotations_of(graphs) == std::vector<uint64_t>{77});
  graphs.add(change(GraphChange::kDestroyed, 2));
  CHECK(graphs_of(graphs).empty());
  CHECK(annotations_of(graphs).empty());
}

TEST_CASE("A chain of copies goes with its last graph") {
  LiveGraphs graphs;
  for (uint32_t graph = 1; graph <= 5; ++graph) {
    graphs.add(change(GraphChange::kNodeCopied, graph, graph * 10, graph - 1));
    graphs.add(change(GraphChange::kDestroyed, graph - 1));
  }
  CHECK(graphs_of(graphs).size() == 5);
  graphs.add(change(GraphChange::kDestroyed, 5));
  CHECK(graphs_of(graphs).empty());
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
    graphs.add(change(GraphChange::kDestroyed, step));
  }
  // The copy, the update of the graph and that of the node, and that its parameters were set.
  CHECK(graphs_of(graphs) == std::vector<uint32_t>{1, 1, 1, 1, 999});
  CHECK(annotations_of(graphs) == std::vector<uint64_t>{999});
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
  rows.forget_annotations(RepeatedRows::kLatenessNs + 100);
  CHECK(rows.ended.empty());
  CHECK(annotations_of(rows.graphs) == std::vector<uint64_t>{77, 78});
}

TEST_CASE("Annotations that launches to come may be in are repeated") {
  RepeatedRows rows;
  rows.notice(std::vector<store::AnnotationRow>{annotation(1, 5), annotation(2, 2'000'000'000), annotation(3)});
  rows.forget_annotations(1'500'000'000);
  REQUIRE(rows.ended.size() == 1);
  CHECK(rows.ended.front().external_id == 2);
}

}  // namespace collector::capture
