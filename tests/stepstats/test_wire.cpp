// Protocol buffer bytes, read in place: numbers of every length, at the end of the bytes too, and damage.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stepstats/wire.h"

using namespace collector::stepstats;

namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

WireReader reader_of(const std::string& bytes) { return {bytes, bytes}; }

}  // namespace

TEST_CASE("a varint of every length is read, with and without bytes behind it") {
  std::vector<uint64_t> values{0, 1, UINT64_MAX};
  for (int bits = 1; bits < 64; ++bits) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}}) values.push_back((uint64_t{1} << bits) - offset);
  }
  for (const uint64_t value : values) {
    CAPTURE(value);
    for (const size_t behind : {0, 1, 9, 20}) {
      const std::string bytes = varint(value) + std::string(behind, '\x7F');
      WireReader reader(std::string_view(bytes).substr(0, bytes.size() - behind), bytes);
      REQUIRE(reader.read_varint() == value);
      REQUIRE(reader.at_end());
    }
  }
}

TEST_CASE("bits beyond 64 are dropped, and an eleventh byte is refused") {
  const std::string ten = std::string(9, '\xFF') + '\x7F';
  WireReader reader = reader_of(ten);
  CHECK(reader.read_varint() == UINT64_MAX);
  for (const size_t behind : {0, 10}) {
    const std::string eleven = std::string(10, '\xFF') + '\x01' + std::string(behind, '\0');
    WireReader damaged = reader_of(eleven);
    CHECK_THROWS_AS(damaged.read_varint(), WireError);
  }
}

TEST_CASE("what reaches beyond the end of its message is refused, whatever follows there") {
  const std::string bytes = "\xFF\xFF\x01" + std::string(20, '\0');
  for (const size_t length : {0, 1, 2}) {
    WireReader reader(std::string_view(bytes).substr(0, length), bytes);
    CHECK_THROWS_AS(reader.read_varint(), WireError);
  }
  const std::string text =
      "\x05"
      "abcde";
  WireReader whole = reader_of(text);
  CHECK(whole.read_bytes() == "abcde");
  WireReader cut(std::string_view(text).substr(0, 5), text);
  CHECK_THROWS_AS(cut.read_bytes(), WireError);
}

TEST_CASE("tags are read and taken, and a field 0 is refused") {
  constexpr uint32_t kActivity = make_tag(100002, kBytes);
  const std::string bytes = varint(make_tag(3, kVarint)) + varint(kActivity);
  WireReader reader = reader_of(bytes);
  CHECK_FALSE(reader.take_tag<kActivity>());
  CHECK(reader.take_tag<make_tag(3, kVarint)>());
  WireReader copy = reader;
  CHECK(reader.read_tag() == kActivity);
  CHECK(copy.take_tag<kActivity>());
  CHECK(copy.at_end());
  const std::string zero("\0", 1);
  WireReader damaged = reader_of(zero);
  CHECK_THROWS_AS(damaged.read_tag(), WireError);
}

TEST_CASE("fields of every type are passed over, groups inside groups too") {
  const std::string group = varint(make_tag(1, kGroupStart)) + varint(make_tag(2, kGroupStart)) +
                            varint(make_tag(3, kVarint)) + varint(300) + varint(make_tag(2, kGroupEnd)) +
                            varint(make_tag(1, kGroupEnd));
  const std::string bytes = varint(make_tag(4, kFixed64)) + std::string(8, 'x') + varint(make_tag(5, kFixed32)) +
                            std::string(4, 'x') + varint(make_tag(6, kBytes)) +
                            "\x02"
                            "xy" +
                            group + varint(make_tag(7, kVarint)) + varint(1);
  WireReader reader = reader_of(bytes);
  for (const uint32_t field : {4u, 5u, 6u, 1u}) {
    const uint32_t tag = reader.read_tag();
    CHECK((tag >> 3) == field);
    reader.skip(tag);
  }
  CHECK(reader.read_tag() == make_tag(7, kVarint));
  CHECK(reader.read_varint() == 1);
  CHECK(reader.at_end());
}
