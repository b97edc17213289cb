// Texts by number: one number per text, and addresses whose text changes.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

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
