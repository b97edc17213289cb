// The simulated program's calls about CUDA graphs, and CUPTI's callbacks about them.
#include "simulator/graphs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cupti/graph_update_calls.h"
#include "simulator/simulator.h"

namespace collector::simulator {

// CU_GRAPH_NODE_TYPE_…
constexpr uint32_t kChildGraphNode = 4;
constexpr uint32_t kEmptyNode = 5;
constexpr uint32_t kConditionalNode = 13;

using cupti::GraphData;
using cupti::ResourceCallback;

namespace {

// Whether two nodes have the same parameters. The duration stands for the arguments of a kernel.
bool is_same_work(const GraphNode& a, const GraphNode& b) {
  const auto work = [](const GraphNode& node) {
    const SimActivity& activity = node.activity;
    return std::tuple(activity.type, activity.name, activity.grid_x, activity.grid_y, activity.grid_z, activity.block_x,
                      activity.block_y, activity.block_z, activity.num_bytes, activity.copy_kind, activity.value,
                      node.duration_ns);
  };
  return work(a) == work(b);
}

void take_over_work(GraphNode& node, const GraphNode& other) {
  node.activity = other.activity;
  node.duration_ns = other.duration_ns;
}

// For each node of `graph` the one of `other` that stands where it stands: the driver follows the edges, whatever the
// order in which the nodes were added. Here each stream is a chain. nullptr: there is none of the same type.
std::vector<GraphNode*> paired_nodes(const Graph& graph, const Graph& other) {
  std::vector<GraphNode*> pairs;
  const auto rank = [](const Graph& in, const GraphNode& node) {
    size_t before = 0;
    for (const std::unique_ptr<GraphNode>& each : in.nodes) {
      if (each.get() == &node) break;
      if (each->activity.stream_id == node.activity.stream_id) ++before;
    }
    return std::tuple(node.activity.stream_id, before, node.activity.type, node.is_empty);
  };
  for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
    const auto found = std::find_if(other.nodes.begin(), other.nodes.end(),
                                    [&](const auto& each) { return rank(graph, *node) == rank(other, *each); });
    pairs.push_back(found == other.nodes.end() ? nullptr : found->get());
  }
  return pairs;
}

}  // namespace

uint32_t Graphs::new_id() {
  const threads::MutexLock lock(mutex_);
  return ++last_id_;
}

Graph* Graphs::add() {
  const threads::MutexLock lock(mutex_);
  Graph* const graph = graphs_.take();
  graph->id = ++last_id_;
  graph->num_places = 0;
  return graph;
}

ExecutableGraph* Graphs::add_executable() {
  const threads::MutexLock lock(mutex_);
  ExecutableGraph* const executable = executables_.take();
  *executable = {};
  return executable;
}

GraphNode* Graphs::add_node(Graph& graph) {
  const threads::MutexLock lock(mutex_);
  if (free_nodes_.empty()) free_nodes_.push_back(std::make_unique<GraphNode>());
  std::unique_ptr<GraphNode> node = std::move(free_nodes_.back());
  free_nodes_.pop_back();
  *node = {};
  node->id = uint64_t{graph.id} << 32 | graph.num_places++;
  nodes_.insert(node.get());
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

void Graphs::move_nodes(Graph& from, Graph& into) {
  const threads::MutexLock lock(mutex_);
  for (std::unique_ptr<GraphNode>& node : from.nodes) {
    node->id = uint64_t{into.id} << 32 | into.num_places++;
    into.nodes.push_back(std::move(node));
  }
  from.nodes.clear();
}

Graph* Graphs::graph(const void* handle) {
  const threads::MutexLock lock(mutex_);
  return graphs_.find(handle);
}

ExecutableGraph* Graphs::executable(const void* handle) {
  const threads::MutexLock lock(mutex_);
  return executables_.find(handle);
}

GraphNode* Graphs::node(const void* handle) {
  const threads::MutexLock lock(mutex_);
  return nodes_.count(handle) == 0 ? nullptr : const_cast<GraphNode*>(static_cast<const GraphNode*>(handle));
}

GraphNode* Graphs::node_of_id(uint64_t id) {
  const threads::MutexLock lock(mutex_);
  for (const void* const handle : nodes_) {
    auto* const node = const_cast<GraphNode*>(static_cast<const GraphNode*>(handle));
    if (node->id == id) return node;
  }
  return nullptr;
}

// NOLINTNEXTLINE(misc-no-recursion): a graph in a graph
void Graphs::remove(Graph* graph) {
  for (const std::unique_ptr<GraphNode>& node : graph->nodes) {
    if (node->content != nullptr) remove(node->content);
  }
  const threads::MutexLock lock(mutex_);
  for (std::unique_ptr<GraphNode>& node : graph->nodes) {
    nodes_.erase(node.get());
    free_nodes_.push_back(std::move(node));
  }
  graph->nodes.clear();
  graphs_.give_back(graph);
}

void Graphs::remove(ExecutableGraph* executable) {
  const threads::MutexLock lock(mutex_);
  executables_.give_back(executable);
}

// ---------------------------------------------------------------------------------------------------------------------

void Simulator::notify_graph(ResourceCallback callback_id, const GraphData& graph, Context* context) const {
  const auto id = static_cast<uint32_t>(callback_id);
  subscribers.notify(cupti::kResourceDomain, id, [&](SubscriberCallback callback, void* userdata) {
    GraphData own = graph;
    const cupti::ResourceData data{context, nullptr, &own};
    callback(userdata, cupti::kResourceDomain, id, &data);
  });
}

uint32_t Simulator::node_type(const GraphNode& node) {
  if (node.content != nullptr) return node.is_conditional ? kConditionalNode : kChildGraphNode;
  return node.is_empty ? kEmptyNode : node.activity.type;
}

GraphNode* Simulator::add_node(Graph& graph, const GraphNode& content, const GraphNode* dependency,
                               GraphNode* original) {
  GraphData data{};
  data.graph = &graph;
  data.nodeType = node_type(content);
  notify_graph(ResourceCallback::kGraphNodeCreateStarting, data);
  if (content.is_empty) data.nodeType = 0;  // later callbacks call it a kernel
  // The driver keeps a copy of the child graph, or a body of its own.
  Graph* const own = content.content == nullptr ? nullptr : copy_graph(*content.content);
  GraphNode* const node = graphs.add_node(graph);
  const uint64_t id = node->id;
  *node = content;
  node->id = id;
  node->content = own;
  node->source_id = original == nullptr ? id : original->id;
  node->dependency = dependency;
  data.node = node;
  const auto notify_dependency = [&] {
    if (dependency == nullptr) return;
    GraphData edge = data;
    edge.dependency = const_cast<GraphNode*>(dependency);
    notify_graph(ResourceCallback::kGraphNodeDependencyCreated, edge);
  };
  // A captured node is connected before it is reported, a copied one afterwards.
  if (original == nullptr) notify_dependency();
  notify_graph(ResourceCallback::kGraphNodeCreated, data);
  if (original != nullptr) {
    data.originalNode = original;
    notify_graph(ResourceCallback::kGraphNodeCloned, data);
    notify_dependency();
  }
  return node;
}

Graph* Simulator::new_graph() {
  Graph* const graph = graphs.add();
  GraphData data{};
  data.graph = graph;
  notify_graph(ResourceCallback::kGraphCreated, data);
  return graph;
}

// NOLINTNEXTLINE(misc-no-recursion): a graph in a graph
Graph* Simulator::copy_graph(const Graph& original) {
  Graph* const copy = new_graph();
  for (const std::unique_ptr<GraphNode>& node : original.nodes) {
    const auto before = std::find_if(original.nodes.begin(), original.nodes.end(),
                                     [&](const auto& each) { return each.get() == node->dependency; });
    const GraphNode* const dependency = before == original.nodes.end()
                                            ? nullptr
                                            : copy->nodes[static_cast<size_t>(before - original.nodes.begin())].get();
    add_node(*copy, *node, dependency, node.get());
  }
  return copy;
}

// The graph that the device runs. Its nodes are created in silence, except those that stand for graphs.
// NOLINTNEXTLINE(misc-no-recursion): a graph in a graph
Graph* Simulator::lower_graph(const Graph& graph) {
  Graph* const lowered = new_graph();
  GraphData data{};
  data.graph = lowered;
  for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
    data.nodeType = node_type(*node);
    notify_graph(ResourceCallback::kGraphNodeCreateStarting, data);
    Graph* const content = node->content == nullptr ? nullptr : lower_graph(*node->content);
    GraphNode* const own = graphs.add_node(*lowered);
    own->content = content;
    own->is_dropped = node->is_empty;
    if (content == nullptr) continue;
    GraphData created{};
    created.graph = lowered;
    created.node = own;
    notify_graph(ResourceCallback::kGraphNodeCreated, created);
  }
  data.nodeType = 0;
  for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
    if (node->dependency != nullptr) notify_graph(ResourceCallback::kGraphNodeDependencyCreated, data);
  }
  return lowered;
}

Graph* Simulator::begin_capture(uint32_t stream, Graph* into) {
  ThreadState& here = thread();
  if (here.captured != nullptr) return nullptr;
  const ApiCall call = begin_call(callback_id("cudaStreamBeginCapture_v10000"), callback_id("cuStreamBeginCapture_v2"));
  here.captured = into == nullptr ? new_graph() : into;
  here.captured_stream = stream;
  end_call(call);
  return here.captured;
}

bool Simulator::end_capture() {
  ThreadState& here = thread();
  if (here.captured == nullptr) return false;
  const ApiCall call = begin_call(callback_id("cudaStreamEndCapture_v10000"), callback_id("cuStreamEndCapture"));
  here.captured = nullptr;
  end_call(call);
  return true;
}

void Simulator::capture(const SimActivity& activity, int64_t duration_ns) {
  ThreadState& here = thread();
  GraphNode content;
  content.activity = activity;
  content.duration_ns = duration_ns;
  content.keeps_stream = activity.stream_id != here.captured_stream;
  // Work on one stream runs in its order.
  const GraphNode* dependency = nullptr;
  for (const std::unique_ptr<GraphNode>& node : here.captured->nodes) {
    if (node->activity.stream_id == activity.stream_id) dependency = node.get();
  }
  add_node(*here.captured, content, dependency, nullptr);
}

// The node depends on no other, and none on it.
void Simulator::add_empty_node(Graph* graph) {
  const ApiCall call = begin_call(callback_id("cudaGraphAddEmptyNode_v10000"), callback_id("cuGraphAddEmptyNode"));
  GraphNode content;
  content.is_empty = true;
  add_node(*graph, content, nullptr, nullptr);
  end_call(call);
}

void Simulator::add_child_graph(Graph* graph, Graph* child) {
  const ApiCall call = begin_call(0, callback_id("cuGraphAddChildGraphNode"));
  GraphNode content;
  content.content = child;
  add_node(*graph, content, nullptr, nullptr);
  end_call(call);
}

Graph* Simulator::add_conditional(Graph* graph, bool runs) {
  const ApiCall call = begin_call(0, callback_id("cuGraphAddNode_v2"));
  GraphNode content;
  Graph no_nodes;
  content.content = &no_nodes;
  content.is_conditional = true;
  content.is_left_out = !runs;
  const GraphNode* const node = add_node(*graph, content, nullptr, nullptr);
  end_call(call);
  return node->content;
}

ExecutableGraph* Simulator::instantiate(Graph* graph) {
  const ApiCall call =
      begin_call(callback_id("cudaGraphInstantiate_v12000"), callback_id("cuGraphInstantiateWithFlags"));
  ExecutableGraph* const executable = graphs.add_executable();
  executable->copy = copy_graph(*graph);
  executable->id = executable->copy->id;
  executable->lowered = lower_graph(*graph);
  executable->is_known = attached();
  executable->is_whole = records_whole_graphs();
  GraphData data{};
  data.graph = graph;
  Context* const context = primary_context(0);
  notify_graph(ResourceCallback::kGraphExecCreateStarting, data, context);
  inline_graphs(*executable->copy);
  data.graphExec = executable;
  notify_graph(ResourceCallback::kGraphExecCreated, data, context);
  end_call(call);
  return executable;
}

// Executable graphs have neither empty nodes nor child graphs: the nodes of these take the next places. Those of the
// bodies of conditional nodes do, too, followed by two nodes of the driver. The places of other nodes stay.
void Simulator::inline_graphs(Graph& graph) {
  const auto drop = [&](GraphNode& node) {
    GraphData dropped{};
    dropped.graph = &graph;
    dropped.node = &node;
    notify_graph(ResourceCallback::kGraphNodeDestroyStarting, dropped);
    node.is_dropped = true;
  };
  for (size_t place = 0; place < graph.nodes.size(); ++place) {  // the moved nodes are among them
    GraphNode& node = *graph.nodes[place];
    if (node.is_empty) drop(node);
    Graph* const content = std::exchange(node.content, nullptr);
    if (content == nullptr) continue;
    node.is_empty = true;  // it has no record
    if (!node.is_conditional) drop(node);
    for (size_t inner = 0; inner < content->nodes.size(); ++inner) {
      content->nodes[inner]->is_left_out |= node.is_left_out;
      content->nodes[inner]->container = &node;
      content->nodes[inner]->place_in_child = inner;
    }
    graphs.move_nodes(*content, graph);
    GraphData data{};
    data.graph = content;
    notify_graph(ResourceCallback::kGraphDestroyStarting, data);
    graphs.remove(content);
    data.graph = &graph;
    for (int added = 0; node.is_conditional && added < 2; ++added) {
      notify_graph(ResourceCallback::kGraphNodeCreateStarting, data);
      GraphNode* const own = graphs.add_node(graph);
      own->is_internal = true;
      data.node = own;
      notify_graph(ResourceCallback::kGraphNodeCreated, data);
      data.node = nullptr;
      notify_graph(ResourceCallback::kGraphNodeDependencyCreated, data);
    }
  }
}

Graph* Simulator::clone_graph(Graph* graph) {
  const ApiCall call = begin_call(callback_id("cudaGraphClone_v10000"), callback_id("cuGraphClone"));
  Graph* const copy = copy_graph(*graph);
  GraphData data{};
  data.graph = copy;
  data.originalGraph = graph;
  notify_graph(ResourceCallback::kGraphCloned, data);
  end_call(call);
  return copy;
}

bool Simulator::update(ExecutableGraph* executable, Graph* graph) {
  const cupti::GraphUpdateParams params{executable, graph, nullptr};
  ApiCall call = begin_call(callback_id("cudaGraphExecUpdate_v10020"), callback_id("cuGraphExecUpdate_v2"), &params);
  const std::vector<GraphNode*> pairs = paired_nodes(*executable->copy, *graph);
  constexpr uint32_t kUpdateFailure = 910;  // cudaErrorGraphExecUpdateFailure
  const bool same = graph->nodes.size() == executable->copy->nodes.size() &&
                    std::find(pairs.begin(), pairs.end(), nullptr) == pairs.end();
  if (!same) call.return_value = kUpdateFailure;
  for (size_t place = 0; same && place < pairs.size(); ++place) {
    GraphNode& node = *executable->copy->nodes[place];
    if (is_same_work(node, *pairs[place])) continue;  // nothing is reported
    take_over_work(node, *pairs[place]);
    if (release.cuda < 13000) continue;  // older versions do not report updates
    GraphData data{};
    data.node = pairs[place];
    data.originalNode = &node;
    data.graphExec = executable;
    notify_graph(ResourceCallback::kGraphNodeUpdated, data);
    notify_parameters_set(*executable, node);
  }
  end_call(call);
  return same;
}

// The second node is the one that was instantiated, also after an update.
void Simulator::notify_parameters_set(const ExecutableGraph& executable, GraphNode& node) {
  GraphData data{};
  data.node = &node;
  data.originalNode = graphs.node_of_id(node.source_id);
  data.graphExec = const_cast<ExecutableGraph*>(&executable);
  notify_graph(ResourceCallback::kGraphNodeSetParams, data);
}

bool Simulator::set_kernel(ExecutableGraph* executable, Graph* graph, uint32_t place, const char* name,
                           int64_t duration_ns) {
  if (place >= graph->nodes.size() || place >= executable->copy->nodes.size()) return false;
  GraphNode& node = *executable->copy->nodes[place];
  if (node.is_empty || node.activity.type != kSimKernel) return false;
  const ApiCall call = begin_call(callback_id("cudaGraphExecKernelNodeSetParams_v10010"),
                                  callback_id("cuGraphExecKernelNodeSetParams_v2"));
  node.activity.name = names.address(name);
  node.duration_ns = duration_ns;
  if (release.cuda >= 13000) notify_parameters_set(*executable, node);  // older versions do not report it
  end_call(call);
  return true;
}

// Nothing else is reported: whether the real library reports the nodes is not known.
bool Simulator::set_child_graph(ExecutableGraph* executable, Graph* graph, uint32_t place, Graph* child) {
  if (place >= graph->nodes.size() || graph->nodes[place]->content == nullptr) return false;
  const GraphNode* const container = executable->copy->nodes[place].get();
  const std::vector<std::unique_ptr<GraphNode>>& nodes = executable->copy->nodes;
  const auto is_inside = [&](const std::unique_ptr<GraphNode>& node) { return node->container == container; };
  if (std::count_if(nodes.begin(), nodes.end(), is_inside) != static_cast<std::ptrdiff_t>(child->nodes.size())) {
    return false;
  }
  const cupti::GraphUpdateParams params{executable, graph->nodes[place].get(), child};
  const ApiCall call = begin_call(callback_id("cudaGraphExecChildGraphNodeSetParams_v11010"),
                                  callback_id("cuGraphExecChildGraphNodeSetParams"), &params);
  for (const std::unique_ptr<GraphNode>& node : nodes) {
    if (is_inside(node)) take_over_work(*node, *child->nodes[node->place_in_child]);
  }
  end_call(call);
  return true;
}

void Simulator::destroy(Graph* graph) {
  const ApiCall call = begin_call(callback_id("cudaGraphDestroy_v10000"), callback_id("cuGraphDestroy"));
  notify_destroyed({graph});
  end_call(call);
}

void Simulator::destroy(ExecutableGraph* executable) {
  const ApiCall call = begin_call(callback_id("cudaGraphExecDestroy_v10000"), callback_id("cuGraphExecDestroy"));
  GraphData data{};
  data.graphExec = executable;
  notify_graph(ResourceCallback::kGraphExecDestroyStarting, data);
  notify_destroyed({executable->copy, executable->lowered});
  graphs.remove(executable);
  end_call(call);
}

void Simulator::notify_destroyed(std::initializer_list<Graph*> destroyed) {
  GraphData data{};
  for (Graph* const graph : destroyed) {
    data.graph = graph;
    notify_graph(ResourceCallback::kGraphDestroyStarting, data);
  }
  // The nodes of the graph that was made last are the first.
  for (const auto* each = destroyed.end(); each != destroyed.begin();) {
    Graph* const graph = *--each;
    data.graph = graph;
    for (const std::unique_ptr<GraphNode>& node : graph->nodes) {
      data.node = node.get();
      if (!node->is_dropped) notify_graph(ResourceCallback::kGraphNodeDestroyStarting, data);
    }
    graphs.remove(graph);
  }
}

uint32_t Simulator::launch(const ExecutableGraph& executable, uint32_t stream) {
  std::vector<SimActivity> nodes;
  std::vector<int64_t> durations;
  for (const std::unique_ptr<GraphNode>& node : executable.copy->nodes) {
    if (node->is_empty || node->is_internal || node->is_left_out) continue;
    SimActivity activity = node->activity;
    if (!node->keeps_stream) activity.stream_id = stream;
    activity.graph_node_id = node->id;
    activity.source_graph_node_id = node->source_id;
    nodes.push_back(activity);
    durations.push_back(node->duration_ns);
  }
  return launch_graph(nodes.data(), durations.data(), nodes.size(), executable.id, &executable);
}

void Simulator::write_graph_trace(uint32_t graph_id, uint32_t correlation_id, const std::vector<SimActivity>& nodes) {
  store::GraphLaunchRow row{};
  row.graph_id = graph_id;
  row.correlation_id = correlation_id;
  row.start_ns = nodes.front().start_ns;
  for (const SimActivity& node : nodes) {
    row.start_ns = std::min(row.start_ns, node.start_ns);
    row.end_ns = std::max(row.end_ns, node.end_ns);
  }
  row.device_id = nodes.front().device_id;
  row.context_id = nodes.front().context_id;
  row.stream_id = nodes.front().stream_id;
  row.end_device_id = nodes.back().device_id;
  auto record = record_of<cupti::GraphTrace>(row);
  if (release.cuda >= 12030) record.endContextId = nodes.back().context_id;
  write(record, buffer_of(thread()));
}

}  // namespace collector::simulator
