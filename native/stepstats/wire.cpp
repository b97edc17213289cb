#include "stepstats/wire.h"

namespace collector::stepstats {

WireReader::Varint WireReader::slow_varint(const char* start, const char* end, const char* origin) {
  const char* next = start;
  uint64_t value = 0;
  for (int shift = 0; shift < 7 * kLongestVarint; shift += 7) {
    if (next == end) fail("a number cut off by the end of its message", start, origin);
    const auto byte = static_cast<unsigned char>(*next++);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return {value, next};
  }
  fail("a number longer than 10 bytes", start, origin);
}

WireReader WireReader::behind_value(WireReader reader, uint32_t tag, int depth) {
  const char* const start = reader.next_;
  switch (tag & 7) {
    case kVarint:
      reader.read_varint();
      break;
    case kBytes:
      reader.read_bytes();
      break;
    case kFixed64:
    case kFixed32: {
      const ptrdiff_t width = (tag & 7) == kFixed64 ? 8 : 4;
      if (reader.end_ - reader.next_ < width) fail("a number cut off by the end of its message", start, reader.origin_);
      reader.next_ += width;
      break;
    }
    case kGroupStart:
      if (depth == 0) fail("groups nested too deeply", start, reader.origin_);
      for (;;) {
        if (reader.at_end()) fail("a group without an end", start, reader.origin_);
        const uint32_t inner = reader.read_tag();
        if (inner == make_tag(tag >> 3, kGroupEnd)) break;
        reader = behind_value(reader, inner, depth - 1);
      }
      break;
    default:
      fail("a wire type that cannot be here", start, reader.origin_);
  }
  return reader;
}

void WireReader::fail(const char* what, const char* at, const char* origin) {
  throw WireError(what, static_cast<size_t>(at - origin));
}

}  // namespace collector::stepstats
