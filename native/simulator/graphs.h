// The CUDA graphs of the simulated program. Ids and the order of callbacks are those that NVIDIA's libcupti prints for
// CUDA 13.0 on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "simulator/control.h"
#include "threads/mutex.h"

namespace collector::simulator {

struct Graph;

struct GraphNode {
  uint64_t id = 0;  // the graph's id << 32 | the node's place
  uint64_t source_id = 0;
  SimActivity activity{};
  int64_t duration_ns = 0;
  bool keeps_stream = false;              // others run on the stream into which the graph is launched
  bool is_empty = false;                  // it orders others and does nothing
  bool is_dropped = false;                // by the instantiation
  bool is_internal = false;               // the driver's own: it has no record
  const GraphNode* dependency = nullptr;  // the node that runs before
  // Of a node that stands for a graph: a child graph, or the body of a conditional node.
  Graph* content = nullptr;
  bool is_conditional = false;
  bool is_left_out = false;  // the condition of the body is false: it does not run
  // Of a node of an executable graph that came from a child graph.
  const GraphNode* container = nullptr;
  size_t place_in_child = 0;
};

struct Graph {
  uint32_t id = 0;
  uint32_t num_places = 0;  // that were given to nodes, also to those of lowered graphs, which do not exist
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

// The driver keeps two further graphs for it: the copy, whose ids records have, and a lowered one.
struct ExecutableGraph {
  uint32_t id = 0;
  Graph* copy = nullptr;
  Graph* lowered = nullptr;
  bool is_known = false;  // whether CUPTI was attached when it was made
  bool is_whole = false;  // whether CUPTI then recorded whole graphs
};

// Owns the graphs. Handles are addresses: those of destroyed graphs come back, ids do not. Thread-safe; a graph is
// changed by one thread at a time.
class Graphs {
 public:
  uint32_t new_id();
  Graph* add();
  ExecutableGraph* add_executable();
  GraphNode* add_node(Graph& graph);
  // Moves all nodes of `from` to the next places of `into`.
  void move_nodes(Graph& from, Graph& into);
  // Return nullptr for an address that is no handle.
  Graph* graph(const void* handle);
  ExecutableGraph* executable(const void* handle);
  GraphNode* node(const void* handle);
  GraphNode* node_of_id(uint64_t id);
  void remove(Graph* graph);
  void remove(ExecutableGraph* executable);

 private:
  template <typename Object>
  struct Pool {
    std::vector<std::unique_ptr<Object>> all;
    std::vector<Object*> free;
    std::unordered_set<const void*> used;

    Object* take() {
      if (free.empty()) {
        all.push_back(std::make_unique<Object>());
        free.push_back(all.back().get());
      }
      Object* const object = free.back();
      free.pop_back();
      used.insert(object);
      return object;
    }
    Object* find(const void* handle) {
      return used.count(handle) == 0 ? nullptr : const_cast<Object*>(static_cast<const Object*>(handle));
    }
    void give_back(Object* object) {
      used.erase(object);
      free.push_back(object);
    }
  };

  threads::Mutex mutex_;
  uint32_t last_id_ GUARDED_BY(mutex_) = 0;
  Pool<Graph> graphs_ GUARDED_BY(mutex_);
  Pool<ExecutableGraph> executables_ GUARDED_BY(mutex_);
  std::unordered_set<const void*> nodes_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GraphNode>> free_nodes_ GUARDED_BY(mutex_);
};

}  // namespace collector::simulator
