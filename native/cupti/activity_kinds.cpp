#include "cupti/activity_kinds.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace collector::cupti {

std::vector<ActivityKind> kinds_named(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_known = std::any_of(std::begin(kKindOptions), std::end(kKindOptions),
                                      [&name](const KindOption& entry) { return entry.option == name; });
    if (!is_known) throw std::invalid_argument("unknown activity kind: " + name);
  }
  std::vector<ActivityKind> kinds;
  for (const KindOption& entry : kKindOptions) {
    for (const std::string& name : names) {
      if (entry.option == name) kinds.push_back(entry.kind);
    }
  }
  return kinds;
}

}  // namespace collector::cupti
