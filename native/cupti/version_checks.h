// Whether a driver and a libcupti can be used together, judged by their versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupti/failure.h"

namespace collector::cupti {

// The newest CUDA version whose layouts this project has checked.
inline constexpr int kNewestKnownCuda = 13050;

// The CUDA version (12040 means 12.4) of a CUPTI API version.
int cuda_version_of(uint32_t api_version);

// Checks the answer of cuDriverGetVersion in the libcuda at `path`. The toolkit's stub returns an error from every
// call.
std::optional<Failure> check_driver(const std::string& path, int result, int driver_version);

// Checks the libcupti at `path`, of which not even the version may be asked for: libcupti 13.2 crashes on any call when
// the driver is older.
std::optional<Failure> check_before_first_call(const std::string& path, bool is_cuda_13_2, int driver_version);

// Checks the version of the libcupti at `path`. `allow_untested` permits versions above kNewestKnownCuda.
std::optional<Failure> check_cupti(const std::string& path, uint32_t api_version, bool allow_untested);

}  // namespace collector::cupti
