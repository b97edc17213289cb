// A log of the program's CUDA graphs: their nodes, with the annotation around each node's capture, and the graphs that
// are instantiated, updated and destroyed. CUPTI calls back when a graph is built, never when it is launched.
//
// Ids (torch/cuda/_graph_annotations.py relies on the same rules): every graph, capture, clone and executable graph
// takes the next number; the id of a node is the number of its graph in the upper 32 bits and its place there in the
// lower ones. The records of a launch have the ids of the executable graph, whose nodes are copies of the captured
// ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/inlined_graphs.h"
#include "cupti/graph_update_calls.h"
#include "cupti/library.h"
#include "kinds/generated/kinds.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// Thread-safe. The lock is never held around a CUPTI call.
class GraphLog {
 public:
  // The rows that a session can keep; further ones are counted.
  static constexpr size_t kMostRows = size_t{1} << 22;

  // Begins a new session. `forget`: rows are kept no longer than until they are moved to the store.
  void begin(bool forget = false);

  // A callback of CUPTI about a graph. `annotation`: the id of the innermost annotation of this thread, or 0.
  // `inlined`: of this thread.
  void notice(const cupti::Library& library, uint32_t callback_id, const cupti::GraphData& graph,
              InlinedGraphs& inlined, uint64_t annotation, uint32_t thread_id) noexcept;

  // The beginning and the end of a call that gives an executable graph other parameters. CUPTI reports only the nodes
  // that an update changes (13.0.85): of the others this call is the only sign.
  void notice_call(const cupti::Library& library, const cupti::GraphUpdateCall& call, const cupti::ApiCallData& data,
                   uint32_t thread_id) noexcept;

  // The executable graph that this thread instantiated last, once; 0: none since the last call. `notice` saw it.
  static uint32_t take_instantiated() noexcept;

  // Moves the rows that were added since the last call into the store, and returns their number.
  size_t move_to(store::Store& store);

  // The changes that could not be kept.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // Keeps the nodes that an instantiation moved into the executable graph, and follows other callbacks.
  void follow(const cupti::Library& library, InlinedGraphs& inlined, cupti::ResourceCallback callback,
              const store::GraphChangeRow& row);
  void keep(const cupti::Library& library, store::GraphChangeRow& row) noexcept;
  void add(const store::GraphChangeRow& row);

  threads::Mutex mutex_;
  std::vector<store::GraphChangeRow> rows_ GUARDED_BY(mutex_);
  size_t num_rows_ GUARDED_BY(mutex_) = 0;  // of the session
  bool forget_ GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> lost_{0};
};

}  // namespace collector::capture
