// Activity kinds by the names of the user's options.
#pragma once

#include <string>
#include <vector>

#include "kinds/generated/kinds.h"

namespace collector::cupti {

// The activity kinds of these options, in the order in which they must be enabled. Throws std::invalid_argument for an
// unknown name.
std::vector<ActivityKind> kinds_named(const std::vector<std::string>& names);

}  // namespace collector::cupti
