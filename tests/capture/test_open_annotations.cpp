// The annotations that a thread has open: each owner finds its innermost one, whatever is removed and moved.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "capture/open_annotations.h"

namespace collector::capture {
namespace {

const std::vector<Owner> kOwners{kProgram, kRecordedProgram, 1, 2, 7, 1024};

void check_lists(OpenAnnotations& open) {
  for (const Owner owner : kOwners) {
    size_t count = 0;
    size_t innermost = open.size();
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].owner != owner) continue;
      ++count;
      innermost = i;
    }
    REQUIRE(open.count_of(owner) == count);
    REQUIRE(open.innermost_of(owner) == innermost);
  }
}

TEST_CASE("the lists of owners follow every change") {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same changes in every run
  OpenAnnotations open;
  uint64_t id = 0;
  for (int change = 0; change < 20'000; ++change) {
    const Owner owner = kOwners[random() % kOwners.size()];
    const bool grows = random() % 100 < (open.size() < 40 ? 60 : 40);
    if (grows) {
      OpenAnnotation& entry = open.add(owner);
      entry.id = ++id;
      if (owner == kProgram) {
        entry.block = 1 + random() % 3;
        open.resume_in_last();
      }
    } else if (const size_t index = open.innermost_of(owner); index < open.size()) {
      if (owner == kProgram) open.suspend_within(open[index].id, index + 1);
      open.remove(index);
    } else if (open.size() > 0) {
      open.remove(random() % open.size());
    }
    check_lists(open);
  }
  while (open.size() > 0) open.remove(0);
  check_lists(open);
  CHECK(open.num_ranges() == 0);
}

TEST_CASE("suspended ranges go on with their block, also after others were removed") {
  OpenAnnotations open;
  open.add(kProgram).id = 1;
  open[0].block = 5;
  open.add(1).id = 2;
  open.add(2).id = 3;
  REQUIRE(open.suspend_within(1, 1) == 2);
  open.remove(0);                     // another task goes on
  open.remove(open.innermost_of(2));  // and ends one of the ranges
  open.add(kProgram).id = 4;
  open[open.size() - 1].block = 6;
  CHECK(open.resume_in_last() == 0);
  open.remove(open.size() - 1);
  open.add(kProgram).id = 5;
  open[open.size() - 1].block = 5;
  CHECK(open.resume_in_last() == 1);
  CHECK(open.naming()->owner == 1);
  CHECK(open.innermost_of(1) == 1);
}

}  // namespace
}  // namespace collector::capture
