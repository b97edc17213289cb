// Names numbered in the order of their first use.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stepstats/name_table.h"

using collector::stepstats::NameTable;

TEST_CASE("a name has one number") {
  NameTable table;
  CHECK(table.find("a") == NameTable::kNone);
  CHECK(table.insert("a").is_new);
  const auto again = table.insert("a");
  CHECK(again.number == 0);
  CHECK_FALSE(again.is_new);
  CHECK(table.insert("").number == 1);
  CHECK(table.insert(std::string_view()).number == 1);
  CHECK(table.find("a") == 0);
  CHECK(table.size() == 2);
}

TEST_CASE("names that differ in one byte, at any length, are told apart") {
  std::vector<std::string> names;
  for (size_t length = 1; length < 40; ++length) {
    for (size_t at = 0; at < length; ++at) {
      names.emplace_back(length, 'x');
      names.back()[at] = '\0';
    }
  }
  NameTable table;
  for (uint32_t i = 0; i < names.size(); ++i) REQUIRE(table.insert(names[i]).number == i);
  for (uint32_t i = 0; i < names.size(); ++i) {
    REQUIRE(table.find(names[i]) == i);
    REQUIRE(table[i] == names[i]);
  }
}

TEST_CASE("equal hashes are no equal names") {
  NameTable table;
  constexpr uint32_t kHash = 5;
  CHECK(table.insert("a", kHash).number == 0);
  CHECK(table.insert("b", kHash).number == 1);
  CHECK(table.find("b", kHash) == 1);
  CHECK(table.find("c", kHash) == NameTable::kNone);
}
