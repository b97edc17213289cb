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
// the latest of each kind is kept, so that a graph that is updated in every step does not grow. The nodes of a copy
// that is destroyed are kept as copies of the captured nodes, so that a graph that is replaced by its copy in every
// step does not grow either.
class LiveGraphs {
 public:
  // The maximum number of changes of destroyed graphs that are kept until `forget_destroyed` forgets them.
  static constexpr size_t kMostOfDestroyed = 1024;

  // Returns whether the row refers to an annotation that no other row refers to. It may have been noticed already, and
  // is to be noticed again then.
  bool add(const store::GraphChangeRow& row);
  // Forgets the graphs that were destroyed before a time of CUPTI's clock: until then their launches may be decoded.
  void forget_destroyed(int64_t before_ns);
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
  struct Destroyed {
    int64_t at_ns;
    uint32_t graph_id;
    size_t num_changes;
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
  // The key of the row that says how a node was made or, with 0, an executable graph.
  static Key key_of_making(uint64_t node) { return {node, 0, 0}; }
  bool refer(const store::GraphChangeRow& row);
  // How the node was made, if it is a copy; else null.
  const store::GraphChangeRow* copy_of(uint64_t node) const;
  // Lets a graph that is not executable refer to the captured nodes instead of the copies between.
  void skip_copies(Graph& graph);
  // Drops the references of a row that is no longer kept.
  void release(const store::GraphChangeRow& row);
  void forget_first_destroyed();
  void remove_if_unreachable(uint32_t id);

  std::map<uint32_t, Graph> graphs_;
  std::deque<Destroyed> destroyed_;
  size_t num_of_destroyed_ = 0;  // changes
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
  // Forgets annotations that ended, and graphs that were destroyed, before the launches that are still to be decoded,
  // when those up to `decoded_ns` are.
  void forget_ended(int64_t decoded_ns);

  LiveGraphs graphs;
  std::deque<store::AnnotationRow> ended;  // annotations that launches to come may be in
  std::deque<store::ContextRow> contexts;
  std::deque<store::StreamObjectRow> streams;
  std::deque<store::DeviceRow> devices;
};

}  // namespace collector::capture
