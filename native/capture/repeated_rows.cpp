#include "capture/repeated_rows.h"

#include <utility>

#include "capture/graph_node_ids.h"
#include "cupti/abi.h"

namespace collector::capture {
namespace {

using cupti::GraphChange;

template <typename Row>
void keep_latest(const store::Chunks<Row>& rows, std::deque<Row>& kept) {
  for (size_t i = 0; i < rows.size(); ++i) {
    kept.push_back(rows[i]);
    if (kept.size() > RepeatedRows::kMostObjects) kept.pop_front();
  }
}

}  // namespace

bool LiveGraphs::add(const store::GraphChangeRow& row) {
  if (static_cast<GraphChange>(row.graph_change) == GraphChange::kDestroyed) {
    const auto found = graphs_.find(row.graph_id);
    if (found == graphs_.end()) return false;
    destroyed_.push_back({row.start_ns, row.graph_id, found->second.changes.size()});
    num_of_destroyed_ += destroyed_.back().num_changes;
    while (num_of_destroyed_ > kMostOfDestroyed) forget_first_destroyed();
    return false;
  }
  const bool is_first = refer(row);  // before the old row is released, which may have the same original
  const auto [place, is_new] = graphs_[row.graph_id].changes.try_emplace(key_of(row), row);
  if (is_new) return is_first;
  const store::GraphChangeRow replaced = std::exchange(place->second, row);
  release(replaced);
  return is_first;
}

void LiveGraphs::forget_destroyed(int64_t before_ns) {
  while (!destroyed_.empty() && destroyed_.front().at_ns < before_ns) forget_first_destroyed();
}

void LiveGraphs::forget_first_destroyed() {
  const Destroyed first = destroyed_.front();
  destroyed_.pop_front();
  num_of_destroyed_ -= first.num_changes;
  const auto found = graphs_.find(first.graph_id);
  if (found == graphs_.end()) return;
  Graph& graph = found->second;
  graph.is_destroyed = true;
  if (graph.references > 0) {
    ++graph.references;  // keeps it meanwhile: with ids that contradict each other, it may be what it is a copy of
    skip_copies(graph);
    --graph.references;
  }
  remove_if_unreachable(first.graph_id);
}

LiveGraphs::Key LiveGraphs::key_of(const store::GraphChangeRow& row) {
  switch (static_cast<GraphChange>(row.graph_change)) {
    case GraphChange::kNodeUpdated:
    case GraphChange::kParametersSet:
      return {row.graph_node_id, row.graph_change, 0};
    case GraphChange::kGraphUpdated:
      return {row.graph_node_id, row.graph_change, row.original_node_id};
    default:
      return key_of_making(row.graph_node_id);
  }
}

bool LiveGraphs::refer(const store::GraphChangeRow& row) {
  if (const uint32_t original = original_of(row); original != 0) ++graphs_[original].references;
  return row.external_id != 0 && ++annotations_[row.external_id].references == 1;
}

const store::GraphChangeRow* LiveGraphs::copy_of(uint64_t node) const {
  const auto graph = graphs_.find(graph_of(node));
  if (node == 0 || graph == graphs_.end()) return nullptr;
  const auto made = graph->second.changes.find(key_of_making(node));
  if (made == graph->second.changes.end()) return nullptr;
  const store::GraphChangeRow& row = made->second;
  if (static_cast<GraphChange>(row.graph_change) != GraphChange::kNodeCopied) return nullptr;
  // A copy has a greater id than its original: with ids that contradict this, copies could be those of each other.
  return graph_of(row.original_node_id) < graph_of(node) ? &row : nullptr;
}

void LiveGraphs::skip_copies(Graph& graph) {
  // The nodes of an executable graph have the places of those that were instantiated.
  if (graph.changes.count(key_of_making(0)) != 0) return;
  for (auto& [key, row] : graph.changes) {
    if (static_cast<GraphChange>(row.graph_change) != GraphChange::kNodeCopied) continue;
    const store::GraphChangeRow former = row;
    while (const store::GraphChangeRow* const original = copy_of(row.original_node_id)) {
      row.original_graph_id = original->original_graph_id;
      row.original_node_id = original->original_node_id;
    }
    if (row.original_node_id == former.original_node_id) continue;
    refer(row);
    release(former);
  }
}

void LiveGraphs::release(const store::GraphChangeRow& row) {
  const auto captured = annotations_.find(row.external_id);
  if (captured != annotations_.end() && --captured->second.references == 0) annotations_.erase(captured);
  const auto original = graphs_.find(original_of(row));
  if (original == graphs_.end()) return;
  --original->second.references;
  remove_if_unreachable(original->first);
}

// NOLINTNEXTLINE(misc-no-recursion): a graph is a copy of a copy at most a few times
void LiveGraphs::remove_if_unreachable(uint32_t id) {
  const auto found = graphs_.find(id);
  if (found == graphs_.end() || !found->second.is_destroyed || found->second.references > 0) return;
  const Graph removed = std::move(found->second);
  graphs_.erase(found);
  for (const auto& [key, row] : removed.changes) release(row);
}

void LiveGraphs::notice(const store::AnnotationRow& annotation) {
  const auto captured = annotations_.find(annotation.external_id);
  if (captured == annotations_.end()) return;
  captured->second.row = annotation;
  captured->second.is_known = true;
}

void RepeatedRows::notice(const std::vector<store::AnnotationRow>& annotations) {
  for (const store::AnnotationRow& row : annotations) {
    graphs.notice(row);
    if (row.end_ns == 0) continue;
    ended.push_back(row);
    if (ended.size() > kMostEnded) ended.pop_front();
  }
}

void RepeatedRows::forget_ended(int64_t decoded_ns) {
  const int64_t before_ns = decoded_ns - kLatenessNs;
  while (!ended.empty() && ended.front().end_ns < before_ns) ended.pop_front();
  graphs.forget_destroyed(before_ns);
}

void RepeatedRows::notice(const store::Store& store) {
  const auto& changes = store.rows.of<store::GraphChangeRow>();
  bool has_first = false;
  for (size_t i = 0; i < changes.size(); ++i) has_first = graphs.add(changes[i]) || has_first;
  // A node may be captured after the rows of graphs were moved to the store, and its annotation may end before the ends
  // of annotations are noticed. The row of the node comes with the next rows then.
  if (has_first) {
    for (const store::AnnotationRow& row : ended) graphs.notice(row);
  }
  keep_latest(store.rows.of<store::ContextRow>(), contexts);
  keep_latest(store.rows.of<store::StreamObjectRow>(), streams);
  keep_latest(store.rows.of<store::DeviceRow>(), devices);
}

}  // namespace collector::capture
