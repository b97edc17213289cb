// Drivers and libcupti that are refused by their versions, with cause and remedy.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "cupti/version_checks.h"

using collector::cupti::check_cupti;
using collector::cupti::check_driver;
using collector::cupti::check_trial;
using collector::cupti::cuda_version_of;
using collector::cupti::Failure;
using collector::cupti::FailureKind;
using collector::cupti::kNewestKnownCuda;
using collector::cupti::needs_trial;

namespace {

constexpr int kDriverOf124 = 12040;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a driver that answers with its version is used") {
  CHECK_FALSE(check_driver("/usr/lib/libcuda.so.1", 0, kDriverOf124).has_value());
}

TEST_CASE("the toolkit's stub is named, whatever version it gives") {
  for (const int version : {0, kDriverOf124}) {
    const std::optional<Failure> failure = check_driver("/cuda/lib64/stubs/libcuda.so.1", 34, version);
    REQUIRE(failure.has_value());
    CHECK(failure->kind == FailureKind::kDriverNotFound);
    CHECK(failure->cause == "/cuda/lib64/stubs/libcuda.so.1 is the CUDA toolkit's stub, not a driver");
    CHECK(contains(failure->remedy, "LD_LIBRARY_PATH"));
  }
}

TEST_CASE("a driver that fails, or succeeds without a version, is refused with its result") {
  for (const auto& [result, version] : {std::pair{100, 0}, std::pair{999, kDriverOf124}, std::pair{0, 0}}) {
    const std::optional<Failure> failure = check_driver("libcuda.so.1", result, version);
    REQUIRE(failure.has_value());
    CHECK(failure->kind == FailureKind::kDriverNotFound);
    CHECK(failure->cause == "libcuda.so.1 answers error " + std::to_string(result) + " to cuDriverGetVersion");
    CHECK(contains(failure->remedy, "nvidia-smi"));
  }
}

TEST_CASE("libcupti 13.2 is tried in another process unless the driver is of its version or a later one") {
  CHECK(needs_trial(true, 13000));
  CHECK_FALSE(needs_trial(true, 13020));
  CHECK_FALSE(needs_trial(false, 13000));
  CHECK_FALSE(check_trial("libcupti.so.13", "").has_value());
  const std::optional<Failure> failure = check_trial("libcupti.so.13", "was killed by signal 11");
  REQUIRE(failure.has_value());
  CHECK(failure->kind == FailureKind::kCuptiUnusable);
  CHECK(contains(failure->cause, "was killed by signal 11"));
}

TEST_CASE("API versions have CUDA versions, and unknown ones that of the version before") {
  CHECK(cuda_version_of(17) == 11000);
  CHECK(cuda_version_of(18) == 12000);
  CHECK(cuda_version_of(22) == 12040);
  CHECK(cuda_version_of(28) == 12090);
  CHECK(cuda_version_of(29) == 12090);
  CHECK(cuda_version_of(130000) == 13000);
  CHECK(cuda_version_of(130201) == 13020);
}

TEST_CASE("a libcupti before 12.0 is refused, and a newer one than known unless permitted") {
  CHECK_FALSE(check_cupti("libcupti.so.12", 18, false).has_value());
  CHECK(contains(check_cupti("libcupti.so.11", 17, true).value().cause, "older than CUDA 12.0 (CUPTI API 17)"));
  constexpr uint32_t kNewestApi = kNewestKnownCuda / 1000 * 10000 + kNewestKnownCuda % 1000 * 10;
  CHECK_FALSE(check_cupti("libcupti.so.13", kNewestApi, false).has_value());
  constexpr uint32_t kNext = kNewestApi + 100;
  CHECK(contains(check_cupti("libcupti.so.13", kNext, false).value().remedy, "COLLECTOR_ALLOW_UNTESTED_CUPTI=1"));
  CHECK_FALSE(check_cupti("libcupti.so.13", kNext, true).has_value());
}
