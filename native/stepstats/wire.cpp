#include "stepstats/wire.h"

namespace collector::convert {

uint64_t WireReader::ReadVarintAtEnd() {
  const char* const start = next_;
  uint64_t value = 0;
  for (int shift = 0; shift < 7 * kLongestVarint; shift += 7) {
    if (next_ == end_) Fail("a number cut off by the end of its message", start);
    const auto byte = static_cast<unsigned char>(*next_++);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  Fail("a number longer than 10 bytes", start);
}

void WireReader::SkipValue(uint32_t tag, int depth) {
  const char* const start = next_;
  switch (tag & 7) {
    case kVarint:
      ReadVarint();
      return;
    case kBytes:
      ReadBytes();
      return;
    case kFixed64:
    case kFixed32: {
      const ptrdiff_t width = (tag & 7) == kFixed64 ? 8 : 4;
      if (end_ - next_ < width) Fail("a number cut off by the end of its message", start);
      next_ += width;
      return;
    }
    case kGroupStart:
      if (depth == 0) Fail("groups nested too deeply", start);
      for (;;) {
        if (AtEnd()) Fail("a group without an end", start);
        const uint32_t inner = ReadTag();
        if (inner == Tag(tag >> 3, kGroupEnd)) return;
        SkipValue(inner, depth - 1);
      }
    default:
      Fail("a wire type that cannot be here", start);
  }
}

void WireReader::Fail(const char* what, const char* at) const {
  throw WireError(what, static_cast<size_t>(at - origin_));
}

}  // namespace collector::convert
