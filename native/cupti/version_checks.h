// Whether a driver and a libcupti can be used together, judged by their versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupti/failure.h"

namespace collector::cupti {

// The newest CUDA version whose layouts this project has checked.
inline constexpr int kNewestKnownCuda = 13050;

// Whether CUPTI of a CUDA version calls back for an update of an executable graph. Readers of recordings ask it as
// well.
constexpr bool calls_back_for_graph_updates(int64_t cuda_version) { return cuda_version >= 13000; }

// The CUDA version (12040 means 12.4) of a CUPTI API version.
int cuda_version_of(uint32_t api_version);

// Checks the answer of cuDriverGetVersion in the libcuda at `path`. The toolkit's stub returns an error from every
// call.
std::optional<Failure> check_driver(const std::string& path, int result, int driver_version);

// Whether a libcupti may crash on its first call, so that another process has to try it: 13.2 does with some drivers
// that are older than itself.
bool needs_trial(bool is_cuda_13_2, int driver_version);

// Judges the libcupti at `path` by the outcome of its trial (see try_in_child).
std::optional<Failure> check_trial(const std::string& path, const std::string& outcome);

// Checks the version of the libcupti at `path`. `allow_untested` permits versions above kNewestKnownCuda.
std::optional<Failure> check_cupti(const std::string& path, uint32_t api_version, bool allow_untested);

}  // namespace collector::cupti
