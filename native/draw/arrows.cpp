#include "draw/arrows.h"

#include <algorithm>
#include <numeric>

namespace collector::draw {

void Arrows::number(uint64_t& next_id) {
  std::stable_sort(arrows_.begin(), arrows_.end(), [](const Arrow& a, const Arrow& b) { return a.source < b.source; });
  for (Arrow& arrow : arrows_) arrow.id = next_id++;
  by_target_.resize(arrows_.size());
  std::iota(by_target_.begin(), by_target_.end(), size_t{0});
  std::sort(by_target_.begin(), by_target_.end(),
            [this](size_t a, size_t b) { return arrows_[a].target < arrows_[b].target; });
}

Arrows::Ids Arrows::from(uint64_t ordinal) const {
  Ids ids;
  const auto first = std::lower_bound(arrows_.begin(), arrows_.end(), ordinal,
                                      [](const Arrow& arrow, uint64_t wanted) { return arrow.source < wanted; });
  for (auto at = first; at != arrows_.end() && at->source == ordinal; ++at) ++ids.number;
  if (ids.number > 0) ids.first = first->id;
  return ids;
}

uint64_t Arrows::to(uint64_t ordinal) const {
  const auto found = std::lower_bound(by_target_.begin(), by_target_.end(), ordinal,
                                      [this](size_t place, uint64_t wanted) { return arrows_[place].target < wanted; });
  return found == by_target_.end() || arrows_[*found].target != ordinal ? 0 : arrows_[*found].id;
}

}  // namespace collector::draw
