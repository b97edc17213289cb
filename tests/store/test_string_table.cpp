// Texts by number: one number per text, and addresses whose text changes.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "failing_allocations.h"
#include "store/string_table.h"

using collector::store::StringTable;

TEST_CASE("a text has one number, in the order of first use") {
  StringTable table;
  CHECK(table.intern("") == 0);
  CHECK(table.intern("b") == 1);
  CHECK(table.intern("a") == 2);
  CHECK(table.intern("b") == 1);
  CHECK(table.intern(std::string_view("a\0b", 3)) == 3);
  REQUIRE(table.texts().size() == 4);
  CHECK(table.texts()[1] == "b");
  CHECK(table.texts()[3] == std::string("a\0b", 3));
}

TEST_CASE("numbers hold while thousands of texts are added") {
  StringTable table;
  for (uint32_t i = 0; i < 10'000; ++i) REQUIRE(table.intern("kernel" + std::to_string(i)) == i + 1);
  for (uint32_t i = 0; i < 10'000; ++i) REQUIRE(table.intern("kernel" + std::to_string(i)) == i + 1);
}

TEST_CASE("an address is read again in the next buffer, because its text may have changed") {
  StringTable table;
  char text[8] = "old";
  const uint32_t old_id = table.intern_address(text);
  CHECK(table.intern_address(text) == old_id);
  std::strcpy(text, "new");
  CHECK(table.intern_address(text) == old_id);  // one buffer: one text
  table.next_buffer();
  const uint32_t new_id = table.intern_address(text);
  CHECK(new_id != old_id);
  CHECK(table.texts()[new_id] == "new");
}

TEST_CASE("no address is the empty text, and a cleared table begins anew") {
  StringTable table;
  const char text[] = "kernel";
  table.intern_address(text);
  CHECK(table.texts()[table.intern_address(nullptr)].empty());
  table.clear();
  CHECK(table.texts().size() == 1);
  CHECK(table.intern_address(nullptr) == 0);
  CHECK(table.intern("other") == 1);
  CHECK(table.intern_address(text) == 2);
}

TEST_CASE("a table is cleared without memory") {
  StringTable table;
  for (int i = 0; i < 1000; ++i) table.intern("text" + std::to_string(i));
  {
    const collector::testing::NoMemory none(1);
    table.clear();
    CHECK(!collector::testing::NoMemory::has_failed());
  }
  CHECK(table.texts().size() == 1);
  CHECK(table.intern("") == 0);
  CHECK(table.intern("text7") == 1);
}

TEST_CASE("a text that was forgotten gets another number, and the empty text keeps 0") {
  StringTable table;
  const char kernel[] = "kernel";
  const uint32_t before = table.intern_address(kernel);
  table.intern("mark");
  table.forget();
  CHECK(table.first() == 3);
  const uint32_t after = table.intern_address(kernel);
  CHECK(after > table.first());
  CHECK(after != before);
  CHECK(table[after] == "kernel");
  CHECK(table.texts()[after - table.first()] == "kernel");
  CHECK(table.intern_address(kernel) == after);
  CHECK(table.intern("") == 0);
  CHECK(table.intern_address(nullptr) == 0);
  CHECK(table[0].empty());
  table.clear();
  CHECK(table.intern("kernel") == 1);
}

TEST_CASE("the memory of texts ends when they are forgotten") {
  StringTable table;
  const size_t none = table.num_bytes();
  table.intern(std::string(1000, 'a'));
  CHECK(table.num_bytes() >= none + 1000);
  table.forget();
  CHECK(table.num_bytes() == none);
}
