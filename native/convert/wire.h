// Protocol buffer wire bytes, read in place: no copies, no allocation, every length checked against what is there.
#pragma once

#include <cstddef>
#include <cstdint>
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

class WireReader {
 public:
  // `origin` is the first byte of the file, from which positions in errors count.
  WireReader(std::string_view message, const char* origin)
      : next_(message.data()), end_(message.data() + message.size()), origin_(origin) {}

  bool AtEnd() const { return next_ == end_; }

  uint32_t ReadTag() {
    const char* const start = next_;
    const uint64_t tag = ReadVarint();
    if (tag >> 3 == 0 || tag > UINT32_MAX) Fail("a field number that cannot be", start);
    return static_cast<uint32_t>(tag);
  }

  uint64_t ReadVarint() {
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) return static_cast<unsigned char>(*next_++);
    return ReadLongVarint();
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

  uint64_t ReadLongVarint();
  void SkipValue(uint32_t tag, int depth);
  [[noreturn]] void Fail(const char* what, const char* at) const;

  const char* next_;
  const char* end_;
  const char* origin_;
};

}  // namespace collector::convert
