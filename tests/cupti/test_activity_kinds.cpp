// Kinds by name: the order of enabling for any order of the names, and unknown names.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "cupti/activity_kinds.h"

using collector::cupti::ActivityKind;
using collector::cupti::kinds_named;

TEST_CASE("kinds are enabled in one order, whatever the order of their names") {
  const auto kinds = kinds_named({"kernels", "memcpys", "memsets"});
  REQUIRE(kinds.size() == 4);  // copies between devices have a kind of their own
  CHECK(kinds_named({"memsets", "memcpys", "kernels"}) == kinds);
  CHECK(std::count(kinds.begin(), kinds.end(), ActivityKind::kConcurrentKernel) == 1);
  CHECK(kinds_named({}).empty());
}

TEST_CASE("a name that no kind has is refused, and named") {
  CHECK_THROWS_WITH_AS(kinds_named({"kernels", "kernel"}), "unknown activity kind: kernel", std::invalid_argument);
}
