#include "draw/node_links.h"

#include <algorithm>
#include <cstdint>

#include "draw/backward_passes.h"
#include "draw/event_waits.h"
#include "draw/launches.h"
#include "draw/selection.h"
#include "draw/waits.h"

namespace collector::draw {

using stepstats::Group;
using stepstats::StepStats;

namespace {

NodePlace place_of(const StepStats& step, const std::vector<Group>& groups, uint64_t ordinal) {
  const auto after = std::upper_bound(groups.begin(), groups.end(), ordinal,
                                      [](uint64_t wanted, const Group& group) { return wanted < group.first_ordinal; });
  auto node = static_cast<size_t>(ordinal - (after - 1)->first_ordinal);
  auto part = (after - 1)->parts.begin();
  for (; node >= (*part)->num_nodes; ++part) node -= (*part)->num_nodes;
  return {static_cast<size_t>(*part - step.devices().data()), node};
}

}  // namespace

std::vector<NodeLink> node_links(const StepStats& step, const std::vector<EventRecord>& event_records) {
  const EventRecords records(event_records);
  Launches launches;
  Waits waits(records);
  EventWaits event_waits(records);
  BackwardPasses backward_passes;
  Selection::Links links{launches, waits, event_waits, backward_passes};
  const DrawingOptions options;
  const Selection selection(step, options, &links);
  uint64_t next_id = 1;
  waits.link(next_id);
  event_waits.link(next_id);
  backward_passes.link(next_id);
  std::vector<NodeLink> found;
  for (const Arrows* arrows : {&waits.arrows(), &event_waits.arrows(), &backward_passes.arrows()}) {
    for (const Arrows::Arrow& arrow : arrows->all()) {
      found.push_back(
          {place_of(step, selection.groups(), arrow.source), place_of(step, selection.groups(), arrow.target)});
    }
  }
  return found;
}

}  // namespace collector::draw
