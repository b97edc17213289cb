// The arrows of waits and of backward passes as pairs of nodes, for formats that are not drawn slice by slice.
#pragma once

#include <cstddef>
#include <vector>

#include "draw/event_records.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

// The indices of a device in its step and of a node in its device.
struct NodePlace {
  size_t device;
  size_t node;
};

struct NodeLink {
  NodePlace source;  // the awaited activity, the call that recorded the awaited event, or an op
  NodePlace target;  // the wait, or the op's backward pass
};

// All waits with a source in the step, then all backward passes; links with the same source follow each other. Throws
// WireError.
std::vector<NodeLink> node_links(const stepstats::StepStats& step, const std::vector<EventRecord>& event_records);

}  // namespace collector::draw
