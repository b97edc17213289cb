// Annotations reach the journal in portions of bounded size, each once, its begin before its end.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/annotations.h"
#include "capture/repeated_rows.h"
#include "failing_allocations.h"
#include "store/long_names.h"

namespace collector::capture {
namespace {

struct Program {
  AnnotationLog log;
  PathCache cache;

  OpenAnnotation open(int64_t start_ns) { return open(Place{"op"}, start_ns); }
  OpenAnnotation open(const Place& place, int64_t start_ns = 1) {
    OpenAnnotation entry;
    log.open(entry, place, cache, start_ns, 1, 0, 0);
    return entry;
  }
  OpenAnnotation open_in(const OpenAnnotation& outer, std::string_view name) {
    return open(Place{name, outer.id, outer.path_id});
  }

  // The texts that all changes have.
  std::map<uint32_t, std::string> changed_texts() {
    std::map<uint32_t, std::string> found;
    for (bool has_more = true; has_more;) {
      const AnnotationChanges changes = log.changes();
      for (const NumberedText& each : changes.paths) CHECK(found.emplace(each.number, each.text).second);
      noted.notice(changes.opened);
      noted.notice(changes.left);
      has_more = changes.has_more;
    }
    return found;
  }
  // The rows that are repeated at the begin of a part, and the texts before it.
  std::map<uint32_t, std::string> begin_part(size_t most_bytes = SIZE_MAX) {
    log.begin_part();
    written = changed_texts();
    const RepeatedAnnotations repeated = log.to_repeat(noted, most_bytes);
    std::map<uint32_t, std::string> found;
    for (const NumberedText& each : repeated.paths) found.emplace(each.number, each.text);
    for (const store::AnnotationRow& row : repeated.rows) CHECK(found.count(row.name_id) == 1);
    return found;
  }

  RepeatedRows noted;
  std::map<uint32_t, std::string> written;
};

std::set<std::string> texts_of(const std::map<uint32_t, std::string>& numbered) {
  std::set<std::string> found;
  for (const auto& [number, text] : numbered) found.insert(text);
  return found;
}

constexpr size_t kMost = AnnotationLog::kMostRowsAtOnce;

}  // namespace

TEST_CASE("the numbers of sessions begin again behind the last one, and rows keep their ends and paths") {
  AnnotationLog log(AnnotationLog::kMostSessions - 1);
  PathCache cache;
  std::set<uint64_t> ids;
  for (int session = 0; session < 3; ++session) {
    log.begin(false);
    OpenAnnotation outer;
    OpenAnnotation inner;
    log.open(outer, Place{"outer"}, cache, 1, 1, 0, 0);
    log.open(inner, Place{"inner", outer.id, outer.path_id}, cache, 2, 1, 1, 0);
    log.close(inner.id, 3);
    log.close(outer.id, 4);
    std::vector<std::string> paths;
    const std::vector<store::AnnotationRow> rows = log.take(9, paths);
    REQUIRE(rows.size() == 2);
    CHECK(paths[rows[1].name_id] == "outer/inner");
    CHECK(rows[0].end_ns == 4);
    CHECK(rows[1].end_ns == 3);
    for (const store::AnnotationRow& row : rows) CHECK(ids.insert(row.external_id).second);
  }
}

TEST_CASE("without memory the end of an annotation whose row has left is counted") {
  AnnotationLog log;
  for (const bool has_left : {true, false}) {
    log.begin(true, true);
    PathCache cache;
    OpenAnnotation entry;
    log.open(entry, Place{"open"}, cache, 1, 1, 0, 0);
    if (has_left) CHECK(log.changes().opened.size() == 1);
    {
      const testing::NoMemory from(1);
      log.close(entry.id, 3);
    }
    CHECK(log.ends_lost() == (has_left ? 1 : 0));
    if (!has_left) CHECK(log.changes().opened.at(0).end_ns == 3);
  }
}

TEST_CASE("without memory a range gets no name, and later ones of the thread get their own") {
  AnnotationLog log;
  log.begin(false);
  std::vector<std::string> names;
  const auto open = [&log](PathCache& cache, const std::string& name, const std::string& payload) {
    OpenAnnotation entry;
    entry.owner = 1;
    RangeTexts texts;
    texts.payload = payload;
    log.open(entry, Place{name}, cache, 1, 1, 0, 0, &texts);
  };
  // Those with equal ends have one line of the cache.
  const auto payload_of = [](const std::string& name) { return "payload: " + name + ", and its end"; };
  const std::string known = "the name of a range";
  bool has_failed = true;
  for (size_t number = 1; has_failed; ++number) {
    const std::string name = "the name " + std::string(50 * number, 'x') + " of a range";
    const std::string payload = payload_of(name);
    PathCache cache;
    open(cache, known, payload_of(known));
    names.push_back(known);
    bool is_open = false;
    {
      const testing::NoMemory from(number);
      try {
        open(cache, name, payload);
        is_open = true;
      } catch (const std::bad_alloc&) {
        is_open = false;
      }
      has_failed = testing::NoMemory::has_failed();
    }
    CHECK(is_open != has_failed);
    if (is_open) names.push_back(name);
    for (const std::string& each : {known, name}) {
      open(cache, each, payload_of(each));
      names.push_back(each);
    }
  }
  CHECK(names.size() > 10);
  std::vector<std::string> paths;
  const std::vector<store::AnnotationRow> rows = log.take(9, paths);
  REQUIRE(rows.size() == names.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    CHECK(paths[rows[row].name_id] == names[row]);
    CHECK(paths[rows[row].payload_text_id - 1] == payload_of(names[row]));
  }
}

TEST_CASE("paths of ranges are kept up to their bytes, and each range without its own is counted") {
  AnnotationLog log;
  log.begin(false);
  PathCache cache;
  constexpr size_t kMostPaths = AnnotationLog::kMostRangeBytes / store::kLongestName;
  for (size_t number = 0; number < kMostPaths + 3; ++number) {
    std::string name = std::to_string(number);
    name.resize(store::kLongestName, '.');
    OpenAnnotation entry;
    entry.owner = 1;
    log.open(entry, Place{name}, cache, 1, 1, 0, 0);
  }
  CHECK(log.ranges_without_name() == 3);
  std::vector<std::string> paths;
  const std::vector<store::AnnotationRow> rows = log.take(9, paths);
  CHECK(paths.size() == kMostPaths + 1);
  CHECK(paths[rows.back().name_id] == AnnotationLog::kManyNames);
}

TEST_CASE("each range of a domain whose name is too long is counted") {
  AnnotationLog log;
  log.begin(false);
  PathCache cache;
  const std::string domain(store::kLongestName + 1, 'd');
  RangeTexts texts;
  texts.domain = domain;
  for (int i = 0; i < 3; ++i) {
    OpenAnnotation entry;
    entry.owner = 1;
    log.open(entry, Place{"range"}, cache, 1, 1, 0, 0, &texts);
  }
  CHECK(log.names_cut() == 3);
}

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

TEST_CASE("An annotation that ends while earlier ones are reported has its end reported after its begin") {
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
    std::set<uint64_t> reported;
    for (const store::AnnotationRow& row : first.opened) reported.insert(row.external_id);
    int64_t last_end_ns = 0;
    while (program.log.has_changes()) {
      const AnnotationChanges changes = program.log.changes();
      for (const auto& [row, end_ns] : changes.closed) {
        CHECK(row < reported.size());
        if (row == kMost + 1) last_end_ns = end_ns;
      }
      for (const store::AnnotationRow& row : changes.opened) {
        reported.insert(row.external_id);
        if (row.external_id == open.back().id) last_end_ns = row.end_ns;
      }
    }
    CHECK(reported.size() == kMost + 3);
    CHECK(reported.count(later.id) == 1);
    CHECK(last_end_ns == 80);
    if (forget) CHECK(program.log.to_repeat({}, 0).rows.size() == kMost + 1);
  }
}

TEST_CASE("A part of a session has the texts of its rows, and those of open annotations stay") {
  using Texts = std::set<std::string>;
  Program program;
  program.log.begin(true, true);
  const OpenAnnotation outer = program.open(Place{"outer"});
  const OpenAnnotation inner = program.open_in(outer, "inner");
  program.log.close(program.open(Place{"over"}).id, 5);
  CHECK(texts_of(program.begin_part()) == Texts{"outer", "outer/inner", "over"});
  CHECK(texts_of(program.written) == Texts{"outer", "outer/inner", "over"});
  program.noted.forget_ended(5 + RepeatedRows::kLatenessNs + 1);

  // Nothing was added since: the same names have other numbers in this part.
  const OpenAnnotation again = program.open_in(outer, "inner");
  CHECK(again.path_id > inner.path_id);
  const OpenAnnotation deeper = program.open_in(inner, "deeper");
  program.log.close(program.open_in(outer, "inner").id, 6);
  CHECK(program.changed_texts() ==
        std::map<uint32_t, std::string>{{again.path_id, "outer/inner"}, {deeper.path_id, "outer/inner/deeper"}});
  program.noted.forget_ended(6 + RepeatedRows::kLatenessNs + 1);

  // The texts of open annotations are repeated in each part, and those of others no more.
  for (const OpenAnnotation* ended : {&again, &deeper}) program.log.close(ended->id, 7);
  for (int part = 0; part < 3; ++part) {
    program.begin_part();
    program.noted.forget_ended(7 + RepeatedRows::kLatenessNs + 1);
  }
  CHECK(program.begin_part() ==
        std::map<uint32_t, std::string>{{outer.path_id, "outer"}, {inner.path_id, "outer/inner"}});
  CHECK(program.written.empty());
}

TEST_CASE("Of ended annotations the latest are repeated, as many as there is room for") {
  Program program;
  program.log.begin(true, true);
  for (int number = 0; number < 1000; ++number) {
    program.log.close(program.open(Place{"step " + std::to_string(number)}).id, 5);
  }
  const OpenAnnotation open = program.open(Place{"open"});
  const auto repeated = program.begin_part(2000);
  CHECK(repeated.size() > 50);
  CHECK(repeated.size() < 150);
  CHECK(repeated.count(open.path_id) == 1);
  CHECK(texts_of(repeated).count("step 999") == 1);
  CHECK(texts_of(repeated).count("step 0") == 0);
  CHECK(program.begin_part().size() == 1001);  // where there is room, they are all known
}

TEST_CASE("A session whose texts take much memory is to begin a part") {
  Program program;
  for (const bool forget : {false, true}) {
    program.log.begin(true, forget);
    CHECK(!program.log.has_long_part());
    const std::string name(1000, 'x');
    for (size_t number = 0; number <= AnnotationLog::kMostPartBytes / name.size(); ++number) {
      program.log.close(program.open(Place{name + std::to_string(number)}).id, 5);
    }
    CHECK(program.log.has_long_part() == forget);
    if (!forget) continue;
    program.begin_part();
    CHECK(!program.log.has_long_part());
  }
}

TEST_CASE("A ring without decoded rows tells a bounded number of ended annotations again") {
  RepeatedRows rows;
  store::AnnotationRow ended{};
  ended.end_ns = 1;
  for (uint64_t round = 0; round < 20; ++round) {
    rows.notice(std::vector<store::AnnotationRow>(10'000, ended));
    rows.forget_ended(0);
  }
  CHECK(rows.ended.size() == RepeatedRows::kMostEnded);
}

}  // namespace collector::capture
