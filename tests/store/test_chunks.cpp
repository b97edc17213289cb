// Lists of rows: growth from a small piece to blocks, removal, and memory that is released on the way.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <vector>

#include "store/chunks.h"

using collector::store::Blocks;
using collector::store::Chunks;

namespace {

struct Row {
  uint64_t number;
  uint64_t other;
};
using Rows = Chunks<Row>;

void fill(Rows& rows, size_t count) {
  for (size_t i = 0; i < count; ++i) rows.append() = {i, i * i};
}

std::vector<uint64_t> numbers(const Rows& rows) {
  std::vector<uint64_t> found;
  for (size_t first = 0, count = 0; first < rows.size(); first += count) {
    const Row* const run = rows.run(first, count);
    for (size_t i = 0; i < count; ++i) found.push_back(run[i].number);
  }
  return found;
}

}  // namespace

TEST_CASE("rows stay in order across the sizes at which a list grows") {
  Blocks blocks;
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{64}, size_t{65}, Rows::kRows, Rows::kRows + 1, 2 * Rows::kRows + 5}) {
    CAPTURE(count);
    Rows rows(blocks);
    fill(rows, count);
    CHECK(rows.size() == count);
    CHECK(rows.empty() == (count == 0));
    bool same = true;
    for (size_t i = 0; i < count; ++i) same = same && rows[i].number == i && rows[i].other == i * i;
    CHECK(same);
    CHECK(numbers(rows).size() == count);
  }
}

TEST_CASE("a row that could not be filled does not appear, at any size at which a list grows") {
  Blocks blocks;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{64}, Rows::kRows, 2 * Rows::kRows}) {
    CAPTURE(count);
    Rows rows(blocks);
    fill(rows, count);
    const auto fail = [](Row& row) {
      row.number = 77;
      throw std::bad_alloc();
    };
    CHECK_THROWS_AS(rows.add(fail), std::bad_alloc);
    CHECK(rows.size() == count);
    CHECK(numbers(rows).size() == count);
    rows.add([&](Row& row) { row = {count, 0}; });
    CHECK(rows.size() == count + 1);
    CHECK(rows[count].number == count);
  }
}

TEST_CASE("removal keeps the order of the other rows, and the list goes on growing") {
  Blocks blocks;
  for (const size_t count : {size_t{10}, size_t{64}, Rows::kRows, 2 * Rows::kRows + 5}) {
    CAPTURE(count);
    Rows rows(blocks);
    fill(rows, count);
    rows.remove_if([](const Row& row) { return row.number % 3 != 0; });
    std::vector<uint64_t> expected;
    for (uint64_t i = 0; i < count; i += 3) expected.push_back(i);
    CHECK(numbers(rows) == expected);
    fill(rows, 100);
    for (uint64_t i = 0; i < 100; ++i) expected.push_back(i);
    CHECK(numbers(rows) == expected);
    rows.remove_if([](const Row&) { return true; });
    CHECK(rows.empty());
  }
}

TEST_CASE("the rows that stay may be those of whole blocks") {
  Blocks blocks;
  for (const size_t whole : {size_t{1}, size_t{2}}) {
    Rows rows(blocks);
    fill(rows, 2 * Rows::kRows + 5);
    const size_t kept = whole * Rows::kRows;
    rows.remove_if([kept](const Row& row) { return row.number >= kept; });
    REQUIRE(rows.size() == kept);
    CHECK(numbers(rows).back() == kept - 1);
    fill(rows, 2);
    CHECK(rows.size() == kept + 2);
    CHECK(numbers(rows).back() == 1);
  }
}

TEST_CASE("taking all rows gives each once and leaves an empty list") {
  Blocks blocks;
  Rows rows(blocks);
  fill(rows, Rows::kRows + 7);
  uint64_t next = 0;
  bool in_order = true;
  rows.take_all([&](const Row* run, size_t count) {
    for (size_t i = 0; i < count; ++i) in_order = in_order && run[i].number == next++;
  });
  CHECK(in_order);
  CHECK(next == Rows::kRows + 7);
  CHECK(rows.empty());
  fill(rows, 3);
  CHECK(numbers(rows) == std::vector<uint64_t>{0, 1, 2});
}

TEST_CASE("blocks beyond the stock go back to the system") {
  Blocks blocks(Blocks::kBlockBytes);
  void* const first = blocks.take();
  void* const second = blocks.take();
  const auto is_mapped = [](void* block) {
    std::vector<unsigned char> pages(Blocks::kBlockBytes / static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
    return ::mincore(block, Blocks::kBlockBytes, pages.data()) == 0;
  };
  blocks.give(first);
  blocks.give(second);
  CHECK(is_mapped(first));
  CHECK(!is_mapped(second));
}

TEST_CASE("a block that was given back is used again") {
  Blocks blocks(Blocks::kBlockBytes);
  void* const block = blocks.take();
  blocks.give(block);
  void* const again = blocks.take();
  CHECK(again == block);
  blocks.give(again);
}
