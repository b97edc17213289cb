#include "capture/repeated_rows.h"

#include <utility>

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
    found->second.is_destroyed = true;
    remove_if_unreachable(row.graph_id);
    return false;
  }
  const bool is_first = refer(row);  // before the old row is released, which may have the same original
  const auto [place, is_new] = graphs_[row.graph_id].changes.try_emplace(key_of(row), row);
  if (is_new) return is_first;
  const store::GraphChangeRow replaced = std::exchange(place->second, row);
  release(replaced);
  return is_first;
}

LiveGraphs::Key LiveGraphs::key_of(const store::GraphChangeRow& row) {
  switch (static_cast<GraphChange>(row.graph_change)) {
    case GraphChange::kNodeUpdated:
    case GraphChange::kParametersSet:
      return {row.graph_node_id, row.graph_change, 0};
    case GraphChange::kGraphUpdated:
      return {row.graph_node_id, row.graph_change, row.original_node_id};
    default:  // how the node or the graph was made
      return {row.graph_node_id, 0, 0};
  }
}

bool LiveGraphs::refer(const store::GraphChangeRow& row) {
  if (const uint32_t original = original_of(row); original != 0) ++graphs_[original].references;
  return row.external_id != 0 && ++annotations_[row.external_id].references == 1;
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

void RepeatedRows::forget_annotations(int64_t decoded_ns) {
  while (!ended.empty() && ended.front().end_ns < decoded_ns - kLatenessNs) ended.pop_front();
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
