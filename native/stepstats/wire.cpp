#include "stepstats/wire.h"

namespace collector::convert {

WireReader::Varint WireReader::SlowVarint(const char* start, const char* end, const char* origin) {
  const char* next = start;
  uint64_t value = 0;
  for (int shift = 0; shift < 7 * kLongestVarint; shift += 7) {
    if (next == end) Fail("a number cut off by the end of its message", start, origin);
    const auto byte = static_cast<unsigned char>(*next++);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return {value, next};
  }
  Fail("a number longer than 10 bytes", start, origin);
}

WireReader WireReader::BehindValue(WireReader reader, uint32_t tag, int depth) {
  const char* const start = reader.next_;
  switch (tag & 7) {
    case kVarint:
      reader.ReadVarint();
      break;
    case kBytes:
      reader.ReadBytes();
      break;
    case kFixed64:
    case kFixed32: {
      const ptrdiff_t width = (tag & 7) == kFixed64 ? 8 : 4;
      if (reader.end_ - reader.next_ < width) Fail("a number cut off by the end of its message", start, reader.origin_);
      reader.next_ += width;
      break;
    }
    case kGroupStart:
      if (depth == 0) Fail("groups nested too deeply", start, reader.origin_);
      for (;;) {
        if (reader.AtEnd()) Fail("a group without an end", start, reader.origin_);
        const uint32_t inner = reader.ReadTag();
        if (inner == Tag(tag >> 3, kGroupEnd)) break;
        reader = BehindValue(reader, inner, depth - 1);
      }
      break;
    default:
      Fail("a wire type that cannot be here", start, reader.origin_);
  }
  return reader;
}

void WireReader::Fail(const char* what, const char* at, const char* origin) {
  throw WireError(what, static_cast<size_t>(at - origin));
}

}  // namespace collector::convert
