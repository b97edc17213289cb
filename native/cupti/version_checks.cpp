#include "cupti/version_checks.h"

namespace collector::cupti {
namespace {

constexpr int kStubDriver = 34;  // CUDA_ERROR_STUB_LIBRARY
constexpr int kOldestCuda = 12000;

std::string version_text(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

}  // namespace

// The API versions of 12.x count up from 18; those of 13.x contain the CUDA version. 12.0 and 12.1 share 18: the kinds
// that we read have the same layout in both.
int cuda_version_of(uint32_t api_version) {
  struct Row {
    uint32_t api_version;
    int cuda_version;
  };
  constexpr Row kRows[] = {{18, 12000}, {20, 12020}, {21, 12030}, {22, 12040}, {23, 12050},
                           {24, 12060}, {26, 12080}, {27, 12090}, {28, 12090}};
  for (const Row& row : kRows) {
    if (row.api_version == api_version) return row.cuda_version;
  }
  if (api_version < 18) return 11000;
  if (api_version < 100000) return 12090;
  return static_cast<int>(api_version / 10000 * 1000 + api_version % 10000 / 100 * 10);
}

std::optional<Failure> check_driver(const std::string& path, int result, int driver_version) {
  if (result == kStubDriver) {
    return Failure{FailureKind::kDriverNotFound, path + " is the CUDA toolkit's stub, not a driver",
                   "Take the .../stubs folder off LD_LIBRARY_PATH"};
  }
  if (result != 0 || driver_version == 0) {
    return Failure{FailureKind::kDriverNotFound,
                   path + " answers error " + std::to_string(result) + " to cuDriverGetVersion",
                   "Check that nvidia-smi works"};
  }
  return std::nullopt;
}

bool needs_trial(bool is_cuda_13_2, int driver_version) { return is_cuda_13_2 && driver_version < 13020; }

std::optional<Failure> check_trial(const std::string& path, const std::string& outcome) {
  if (outcome.empty()) return std::nullopt;
  return Failure{
      FailureKind::kCuptiUnusable,
      path + " is of CUDA 13.2, newer than the driver, and a process that called it " + outcome,
      "Install a driver for CUDA 13.2; or name another libcupti in COLLECTOR_LIBCUPTI, in a program that does "
      "not load this one itself"};
}

std::optional<Failure> check_cupti(const std::string& path, uint32_t api_version, bool allow_untested) {
  const int cuda_version = cuda_version_of(api_version);
  if (cuda_version < kOldestCuda) {
    return Failure{FailureKind::kCuptiUnusable,
                   path + " is older than CUDA 12.0 (CUPTI API " + std::to_string(api_version) + ")",
                   "Install a newer one: pip install nvidia-cuda-cupti-cu12"};
  }
  if (cuda_version > kNewestKnownCuda && !allow_untested) {
    return Failure{FailureKind::kCuptiUnusable,
                   path + " is of CUDA " + version_text(cuda_version) + ", newer than this collector knows (" +
                       version_text(kNewestKnownCuda) + ")",
                   "Update cupti-collector, or set COLLECTOR_ALLOW_UNTESTED_CUPTI=1 to try it"};
  }
  return std::nullopt;
}

}  // namespace collector::cupti
