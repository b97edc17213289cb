// Protocol buffer wire bytes, read in place: no copies, no allocation, every length checked against what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace collector::convert {

// The bytes are not the message they should be.
class WireError : public std::runtime_error {
 public:
  WireError(const std::string& what, size_t position) : std::runtime_error(what), position_(position) {}
  // Bytes before the offending one.
  size_t position() const { return position_; }

 private:
  size_t position_;
};

// Field number and wire type in one: what precedes a field on the wire.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupStart = 3, kGroupEnd = 4, kFixed32 = 5 };
constexpr uint32_t Tag(uint32_t field, WireType type) { return field << 3 | type; }

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight bytes are read as one number below");

class WireReader {
 public:
  // `whole` is what the message lies in: positions in errors count from its first byte, and numbers near the end of the
  // message are read together with what follows it there.
  WireReader(std::string_view message, std::string_view whole)
      : next_(message.data()),
        end_(message.data() + message.size()),
        origin_(whole.data()),
        limit_(whole.data() + whole.size()) {}

  bool AtEnd() const { return next_ == end_; }

  uint32_t ReadTag() {
    const char* const start = next_;
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) {  // fields 1 to 15
      const uint32_t tag = static_cast<unsigned char>(*next_++);
      if (tag >> 3 == 0) Fail("a field number that cannot be", start);
      return tag;
    }
    if (end_ - next_ >= 2 && (start[1] & 0x80) == 0) {  // fields 16 to 2047
      next_ += 2;
      const uint32_t tag = static_cast<uint32_t>(start[0] & 0x7F) | static_cast<uint32_t>(start[1]) << 7;
      if (tag >> 3 == 0) Fail("a field number that cannot be", start);
      return tag;
    }
    const uint64_t tag = ReadVarint();
    if (tag >> 3 == 0 || tag > UINT32_MAX) Fail("a field number that cannot be", start);
    return static_cast<uint32_t>(tag);
  }

  uint64_t ReadVarint() {
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) return static_cast<unsigned char>(*next_++);
    if (limit_ - next_ >= kLongestVarint) return ReadVarintInside();
    return ReadVarintAtEnd();
  }

  int64_t ReadInt64() { return static_cast<int64_t>(ReadVarint()); }

  std::string_view ReadBytes() {
    const char* const start = next_;
    const uint64_t length = ReadVarint();
    if (length > static_cast<uint64_t>(end_ - next_)) Fail("a field that reaches beyond the end of its message", start);
    const std::string_view bytes(next_, static_cast<size_t>(length));
    next_ += length;
    return bytes;
  }

  // Passes over the value of a field that is not of interest.
  void Skip(uint32_t tag) { SkipValue(tag, kMaxGroupDepth); }

 private:
  static constexpr int kMaxGroupDepth = 100;
  static constexpr int kLongestVarint = 10;

  // A varint behind which there are more bytes, if only of what follows the message: its first eight bytes at once.
  // Each brings seven bits, which three steps move together.
  uint64_t ReadVarintInside() {
    uint64_t eight;
    std::memcpy(&eight, next_, 8);
    const uint64_t ends = ~eight & 0x8080808080808080u;
    const int num_bytes = ends == 0 ? 8 : __builtin_ctzll(ends) / 8 + 1;
    if (num_bytes > end_ - next_) return ReadVarintAtEnd();
    uint64_t value = eight & 0x7F7F7F7F7F7F7F7Fu & (~uint64_t{0} >> (64 - 8 * num_bytes));
    value = (value & 0x007F007F007F007Fu) | (value & 0x7F007F007F007F00u) >> 1;
    value = (value & 0x00003FFF00003FFFu) | (value & 0x3FFF00003FFF0000u) >> 2;
    value = (value & 0x000000000FFFFFFFu) | (value & 0x0FFFFFFF00000000u) >> 4;
    if (ends != 0) {
      next_ += num_bytes;
      return value;
    }
    if (end_ - next_ < kLongestVarint) return ReadVarintAtEnd();
    const auto ninth = static_cast<unsigned char>(next_[8]);
    const auto tenth = static_cast<unsigned char>(next_[9]);
    value |= static_cast<uint64_t>(ninth & 0x7F) << 56;
    if (ninth < 0x80) {
      next_ += 9;
      return value;
    }
    if (tenth >= 0x80) Fail("a number longer than 10 bytes", next_);
    next_ += 10;
    return value | static_cast<uint64_t>(tenth) << 63;  // bits beyond 64 are dropped, as protobuf drops them
  }
  uint64_t ReadVarintAtEnd();
  void SkipValue(uint32_t tag, int depth);
  [[noreturn]] void Fail(const char* what, const char* at) const;

  const char* next_;
  const char* end_;
  const char* origin_;
  const char* limit_;
};

}  // namespace collector::convert
