// Ranges that end anywhere, and marks: the limits of their texts.
#include <doctest/doctest.h>

#include <string>

#include "capture/annotations.h"
#include "capture/range_log.h"
#include "store/long_names.h"
#include "store/store.h"

namespace collector::capture {
namespace {

// A text of the longest kind that is kept as it is.
std::string long_text(size_t number) {
  std::string text = std::to_string(number);
  text.resize(store::kLongestName, '.');
  return text;
}

constexpr size_t kMost = RangeLog::kMostTextBytes / store::kLongestName;

size_t num_texts(const store::Store& store) { return store.strings.texts().size(); }

}  // namespace

TEST_CASE("long texts of marks are kept up to their bytes, and each mark without its own is counted") {
  RangeLog log;
  for (int session = 0; session < 2; ++session) {
    log.begin();
    store::Store store;
    for (size_t number = 0; number < kMost + 3; ++number) {
      const std::string name = long_text(number);
      RangeTexts texts;
      texts.name = name;
      log.mark(texts, 1, 1);
    }
    CHECK(log.without_texts() == 3);
    CHECK(log.move_to(store, 9) == kMost + 3);
    const auto& rows = store.rows.of<store::NvtxRangeRow>();
    CHECK(store.strings[rows[kMost - 1].name_id] == long_text(kMost - 1));
    CHECK(store.strings[rows[kMost + 2].name_id] == AnnotationLog::kManyNames);
    CHECK(num_texts(store) == kMost + 2);  // and the empty one
  }
}

TEST_CASE("texts that the store has forgotten make room for others, those of open ranges stay") {
  RangeLog log;
  log.begin(true, true);
  store::Store store;
  const std::string open = "open";
  RangeTexts texts;
  texts.name = open;
  const uint64_t id = log.start(texts, 1, 1);
  for (int part = 0; part < 3; ++part) {
    for (size_t number = 0; number < kMost - 1; ++number) {
      const std::string name = long_text(number);
      texts.name = name;
      log.mark(texts, 2, 1);
    }
    log.move_to(store, 0);
    store.clear_rows();
    store.strings.forget();
    log.move_to(store, 0);
  }
  CHECK(log.without_texts() == 0);
  CHECK(log.end(id, 3, 1));
  CHECK(log.move_to(store, 0) == 1);
  CHECK(store.strings[store.rows.of<store::NvtxRangeRow>()[0].name_id] == "open");
}

TEST_CASE("rows that were moved make room for others in a session that keeps none") {
  RangeLog log;
  log.begin(false, true);
  store::Store store;
  RangeTexts texts;
  texts.name = "mark";
  constexpr size_t kAtOnce = size_t{1} << 18;
  size_t moved = 0;
  for (size_t count = 0; count <= RangeLog::kMostRows; count += kAtOnce) {
    for (size_t i = 0; i < kAtOnce; ++i) log.mark(texts, 1, 1);
    moved += log.move_to(store, 0);
    store.clear_rows();
  }
  CHECK(log.lost() == 0);
  CHECK(moved == RangeLog::kMostRows + kAtOnce);
}

TEST_CASE("the latest of many open ranges are stated again") {
  RangeLog log;
  log.begin(true, true);
  store::Store store;
  RangeTexts texts;
  texts.name = "open";
  constexpr size_t kOpen = RangeLog::kMostStatedAgain + 3;
  uint64_t last = 0;
  for (size_t i = 0; i < kOpen; ++i) last = log.start(texts, 1, 1);
  CHECK(log.move_to(store, 0) == kOpen);
  CHECK(log.take_open_changes().opened.size() == kOpen);
  log.move_to(store, 0);
  CHECK(log.take_open_changes().opened.empty());
  log.state_open_again();
  log.move_to(store, 0);
  const OpenRangeChanges changes = log.take_open_changes();
  REQUIRE(changes.opened_ids.size() == RangeLog::kMostStatedAgain);
  CHECK(changes.opened.size() == RangeLog::kMostStatedAgain);
  for (const uint64_t id : changes.opened_ids) CHECK(id > last - RangeLog::kMostStatedAgain);
}

}  // namespace collector::capture
