// Which NVTX ranges a session records.
#pragma once

#include <string>
#include <vector>

namespace collector::capture {

struct RangeSelection {
  bool all = true;                   // all domains
  std::vector<std::string> domains;  // else these; "" is the default domain
};

// Puts a selection in the place of the present one, which it returns.
using SelectRanges = RangeSelection (*)(RangeSelection selection);

}  // namespace collector::capture
