// Kinds by name: the order of enabling for any order of the names, and unknown names.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "cupti/activity_kinds.h"

using collector::cupti::ActivityKind;
using collector::cupti::kinds_named;

TEST_CASE("kinds are enabled in one order, whatever the order of their names") {
  const auto kinds = kinds_named({"kernels", "memcpys", "peer_copies", "memsets"});
  REQUIRE(kinds.size() == 4);
  CHECK(kinds_named({"memsets", "peer_copies", "memcpys", "kernels"}) == kinds);
  CHECK(std::count(kinds.begin(), kinds.end(), ActivityKind::kConcurrentKernel) == 1);
  CHECK(kinds_named({}).empty());
}

TEST_CASE("copies between GPUs are enabled only where they are named") {
  CHECK(kinds_named({"memcpys"}) == std::vector{ActivityKind::kMemcpy});
  CHECK(kinds_named({"peer_copies"}) == std::vector{ActivityKind::kMemcpy2});
}

TEST_CASE("a name that no kind has is refused, and named") {
  CHECK_THROWS_WITH_AS(kinds_named({"kernels", "kernel"}), "unknown activity kind: kernel", std::invalid_argument);
}
