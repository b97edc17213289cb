// Annotations reach the journal in portions of bounded size, each once, its begin before its end.
#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "capture/annotations.h"
#include "capture/retold_rows.h"

namespace collector::capture {
namespace {

struct Program {
  AnnotationLog log;
  PathCache cache;

  OpenAnnotation open(int64_t start_ns) {
    OpenAnnotation entry;
    log.open(entry, Place{"op"}, cache, start_ns, 1, 0, 0);
    return entry;
  }
};

constexpr size_t kMost = AnnotationLog::kMostRowsAtOnce;

}  // namespace

TEST_CASE("Changes come in portions, with each annotation once") {
  for (const bool forget : {false, true}) {
    Program program;
    program.log.begin(true, forget);
    CHECK(!program.log.has_changes());
    for (size_t i = 0; i < 2 * kMost + 5; ++i)
      program.log.close(program.open(static_cast<int64_t>(i + 1)).id, 1'000'000);
    CHECK(program.log.has_changes());
    std::set<uint64_t> ids;
    std::vector<size_t> sizes;
    for (bool has_more = true; has_more;) {
      const AnnotationChanges changes = program.log.changes();
      for (const store::AnnotationRow& row : changes.opened) {
        ids.insert(row.external_id);
        CHECK(row.end_ns == 1'000'000);
      }
      CHECK(changes.paths.size() == (sizes.empty() ? 1 : 0));
      sizes.push_back(changes.opened.size());
      has_more = changes.has_more;
    }
    CHECK(sizes == std::vector<size_t>{kMost, kMost, 5});
    CHECK(ids.size() == 2 * kMost + 5);
    CHECK(!program.log.has_changes());
    std::vector<std::string> paths;
    CHECK(program.log.take(2'000'000, paths).size() == (forget ? 0 : 2 * kMost + 5));
    CHECK(paths == std::vector<std::string>{"op"});
  }
}

TEST_CASE("An annotation that ends while earlier ones are told has its end told after its begin") {
  for (const bool forget : {false, true}) {
    Program program;
    program.log.begin(true, forget);
    std::vector<OpenAnnotation> open;
    for (size_t i = 0; i < kMost + 2; ++i) open.push_back(program.open(static_cast<int64_t>(i + 1)));
    const AnnotationChanges first = program.log.changes();
    CHECK(first.has_more);
    program.log.close(open.front().id, 70);
    program.log.close(open.back().id, 80);
    const OpenAnnotation later = program.open(90);
    std::set<uint64_t> told;
    for (const store::AnnotationRow& row : first.opened) told.insert(row.external_id);
    int64_t last_end_ns = 0;
    while (program.log.has_changes()) {
      const AnnotationChanges changes = program.log.changes();
      for (const auto& [row, end_ns] : changes.closed) {
        CHECK(row < told.size());
        if (row == kMost + 1) last_end_ns = end_ns;
      }
      for (const store::AnnotationRow& row : changes.opened) {
        told.insert(row.external_id);
        if (row.external_id == open.back().id) last_end_ns = row.end_ns;
      }
    }
    CHECK(told.size() == kMost + 3);
    CHECK(told.count(later.id) == 1);
    CHECK(last_end_ns == 80);
    if (forget) CHECK(program.log.told().open.size() == kMost + 1);
  }
}

TEST_CASE("A ring without decoded rows tells a bounded number of ended annotations again") {
  RetoldRows rows;
  store::AnnotationRow ended{};
  ended.end_ns = 1;
  for (uint64_t round = 0; round < 20; ++round) {
    rows.notice(std::vector<store::AnnotationRow>(10'000, ended));
    rows.forget_annotations(0);
  }
  CHECK(rows.ended.size() == RetoldRows::kMostEnded);
}

}  // namespace collector::capture
