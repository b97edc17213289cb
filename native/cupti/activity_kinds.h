// Activity kinds by the names that users give them.
#pragma once

#include <string>
#include <vector>

#include "kinds/generated/kinds.h"

namespace collector::cupti {

// The kinds of these options, in the order in which they are to be enabled. Throws std::invalid_argument for a name
// that no kind has.
std::vector<ActivityKind> kinds_named(const std::vector<std::string>& names);

}  // namespace collector::cupti
