// The beginnings of texts that are too long: whole characters, and as many of them as there is room for.
#include <doctest/doctest.h>

#include <string>

#include "store/long_names.h"

using collector::store::beginning_of;
using collector::store::cut_name;
using collector::store::kLongestName;

TEST_CASE("a text is cut between two characters, whatever their lengths") {
  for (const std::string character : {"a", "\u00e9", "\u2603", "\U0001F600"}) {
    CAPTURE(character);
    std::string text;
    while (text.size() < 40) text += character;
    for (size_t most = 4; most < 36; ++most) CHECK(beginning_of(text, most).size() == most - most % character.size());
    CHECK(beginning_of(text, text.size()) == text);
  }
}

TEST_CASE("bytes that are no characters are cut three bytes earlier at most") {
  const std::string text(40, '\x80');
  CHECK(beginning_of(text, 20).size() == 17);
}

TEST_CASE("a name that was cut says so, and is not too long") {
  const std::string name = cut_name(std::string(kLongestName + 1, 'a'));
  CHECK(name.size() == kLongestName);
  CHECK(name.substr(kLongestName - 4) == "a\u2026");
}
