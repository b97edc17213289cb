// The rows of earlier segments of a journal that later rows refer to: they are repeated in each segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "kinds/generated/kinds.h"
#include "store/store.h"

namespace collector::capture {

// The changes of graphs that rows can still refer to, with the annotations at their capture: those of graphs that
// exist, and of graphs that were destroyed while a graph made from them exists. Of the updates of one node, or graph,
// the latest of each kind is kept, so that a graph that is updated in every step does not grow.
class LiveGraphs {
 public:
  // Returns whether the row refers to an annotation that no other row refers to. It may have been noticed already, and
  // is to be noticed again then.
  bool add(const store::GraphChangeRow& row);
  // Keeps the annotation if a graph refers to it. Called for annotations that are open, and again when they end.
  void notice(const store::AnnotationRow& annotation);

  template <typename Visit>
  void each_change(const Visit& visit) const {
    for (const auto& [id, graph] : graphs_) {
      for (const auto& [key, row] : graph.changes) visit(row);
    }
  }
  template <typename Visit>
  void each_annotation(const Visit& visit) const {
    for (const auto& [id, captured] : annotations_) {
      if (captured.is_known) visit(captured.row);
    }
  }

 private:
  // The node's id, which is 0 for the graph itself; of an update, its kind and the node of the replaced child graph.
  using Key = std::tuple<uint64_t, uint8_t, uint64_t>;

  struct Graph {
    std::map<Key, store::GraphChangeRow> changes;
    size_t references = 0;  // from rows of other graphs
    bool is_destroyed = false;
  };
  struct CapturedUnder {
    store::AnnotationRow row;
    bool is_known = false;
    size_t references = 0;
  };

  static uint32_t original_of(const store::GraphChangeRow& row) {
    return row.original_graph_id == row.graph_id ? 0 : row.original_graph_id;
  }
  static Key key_of(const store::GraphChangeRow& row);
  bool refer(const store::GraphChangeRow& row);
  // Drops the references of a row that is no longer kept.
  void release(const store::GraphChangeRow& row);
  void remove_if_unreachable(uint32_t id);

  std::map<uint32_t, Graph> graphs_;
  std::map<uint64_t, CapturedUnder> annotations_;
};

class RepeatedRows {
 public:
  // The maximum number of objects of a table that are repeated: the latest ones.
  static constexpr size_t kMostObjects = 4096;

  // Launches may be decoded this long after later ones.
  static constexpr int64_t kLatenessNs = 1'000'000'000;
  // The annotations that have ended: the latest ones, as nothing may be decoded for hours.
  static constexpr size_t kMostEnded = size_t{1} << 16;

  // Notes the rows that have been added to a store.
  void notice(const store::Store& store);
  // Notes annotations that have begun, and those that have ended.
  void notice(const std::vector<store::AnnotationRow>& annotations);
  // Forgets annotations that ended before the launches that are still to be decoded, when those up to `decoded_ns` are.
  void forget_annotations(int64_t decoded_ns);

  LiveGraphs graphs;
  std::deque<store::AnnotationRow> ended;  // annotations that launches to come may be in
  std::deque<store::ContextRow> contexts;
  std::deque<store::StreamObjectRow> streams;
  std::deque<store::DeviceRow> devices;
};

}  // namespace collector::capture
