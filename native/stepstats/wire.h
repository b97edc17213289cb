// Reads protocol buffer wire bytes in place: no copies, no allocation, and every length is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace collector::stepstats {

// The bytes are not a message of the expected type.
class WireError : public std::runtime_error {
 public:
  WireError(const std::string& what, size_t position) : std::runtime_error(what), position_(position) {}
  // The number of bytes before the error.
  size_t position() const { return position_; }

 private:
  size_t position_;
};

// Field number and wire type combined: the tag before a field on the wire.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupStart = 3, kGroupEnd = 4, kFixed32 = 5 };
constexpr uint32_t make_tag(uint32_t field, WireType type) { return field << 3 | type; }

// The usual encoding of a tag; an encoder may also write a tag longer than necessary.
template <uint32_t tag>
struct TagBytes {
  static constexpr size_t kSize = tag < 1u << 7 ? 1 : tag < 1u << 14 ? 2 : tag < 1u << 21 ? 3 : tag < 1u << 28 ? 4 : 5;
  static constexpr std::array<char, kSize> make() {
    std::array<char, kSize> bytes{};
    for (size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<char>((tag >> 7 * i & 0x7F) | (i + 1 < kSize ? 0x80 : 0));
    return bytes;
  }
  static constexpr std::array<char, kSize> kBytes = make();
};

// Bytes of the longest varint, seven bits each.
inline constexpr int kLongestVarint = 10;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight bytes are read as one number below");

// The state must fit into registers, because reading fields is nearly all of the work on a message. Functions that are
// not inlined therefore take values, never the reader's address.
class WireReader {
 public:
  // `whole` contains the message: positions in errors count from its first byte, and numbers near the end of the
  // message are read together with the bytes that follow.
  WireReader(std::string_view message, std::string_view whole)
      : next_(message.data()),
        end_(message.data() + message.size()),
        origin_(whole.data()),
        limit_(whole.data() + whole.size()) {}

  bool at_end() const { return next_ == end_; }
  // The position of the next read.
  const char* position() const { return next_; }

  uint32_t read_tag() {
    const char* const start = next_;
    uint64_t tag = 0;
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) {  // fields 1 to 15
      tag = static_cast<unsigned char>(*next_++);
    } else if (end_ - next_ >= 2 && (start[1] & 0x80) == 0) {  // fields 16 to 2047
      tag = static_cast<uint64_t>(start[0] & 0x7F) | static_cast<uint64_t>(start[1]) << 7;
      next_ += 2;
    } else {
      tag = read_varint();
    }
    if (tag >> 3 == 0 || tag > UINT32_MAX) fail("a field number that cannot be", start, origin_);
    return static_cast<uint32_t>(tag);
  }

  // Skips a tag if it comes next; in a message, fields usually come in the order of their numbers.
  template <uint32_t tag>
  bool take_tag() {
    using Bytes = TagBytes<tag>;
    if (end_ - next_ < static_cast<ptrdiff_t>(Bytes::kSize)) return false;
    if (std::memcmp(next_, Bytes::kBytes.data(), Bytes::kSize) != 0) return false;
    next_ += Bytes::kSize;
    return true;
  }

  uint64_t read_varint() {
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) return static_cast<unsigned char>(*next_++);
    if (limit_ - next_ < kLongestVarint) return read_varint_at_end();
    // Reads the first eight bytes at once. Each contains seven bits, which three steps join.
    uint64_t eight;
    std::memcpy(&eight, next_, 8);
    const uint64_t ends = ~eight & 0x8080808080808080u;
    uint64_t value = eight & 0x7F7F7F7F7F7F7F7Fu & (ends ^ (ends - 1));  // up to the varint's last byte
    value = (value & 0x007F007F007F007Fu) | (value & 0x7F007F007F007F00u) >> 1;
    value = (value & 0x00003FFF00003FFFu) | (value & 0x3FFF00003FFF0000u) >> 2;
    value = (value & 0x000000000FFFFFFFu) | (value & 0x0FFFFFFF00000000u) >> 4;
    ptrdiff_t num_bytes = 0;
    if (ends != 0) {
      num_bytes = __builtin_ctzll(ends) / 8 + 1;
    } else {
      const auto ninth = static_cast<unsigned char>(next_[8]);
      const auto tenth = static_cast<unsigned char>(next_[9]);
      value |= static_cast<uint64_t>(ninth & 0x7F) << 56;
      num_bytes = ninth < 0x80 ? 9 : 10;
      if (num_bytes == 10) {
        value |= static_cast<uint64_t>(tenth) << 63;  // bits beyond 64 are dropped, as protobuf drops them
        if (tenth >= 0x80) return read_varint_at_end();
      }
    }
    if (num_bytes > end_ - next_) return read_varint_at_end();
    next_ += num_bytes;
    return value;
  }

  int64_t read_int64() { return static_cast<int64_t>(read_varint()); }

  std::string_view read_bytes() {
    const char* const start = next_;
    const uint64_t length = read_varint();
    if (length > static_cast<uint64_t>(end_ - next_)) {
      fail("a field that reaches beyond the end of its message", start, origin_);
    }
    const std::string_view bytes(next_, static_cast<size_t>(length));
    next_ += length;
    return bytes;
  }

  // Skips the value of an unused field.
  void skip(uint32_t tag) {
    switch (tag & 7) {
      case kVarint:
        read_varint();
        break;
      case kBytes:
        read_bytes();
        break;
      default:
        *this = behind_value(*this, tag, kMaxGroupDepth);
    }
  }

 private:
  static constexpr int kMaxGroupDepth = 100;

  struct Varint {
    uint64_t value;
    const char* end;
  };
  // Reads byte by byte a varint that is near the end of the file or invalid.
  static Varint slow_varint(const char* start, const char* end, const char* origin);
  uint64_t read_varint_at_end() {
    const Varint varint = slow_varint(next_, end_, origin_);
    next_ = varint.end;
    return varint.value;
  }
  // The reader after the value of a field.
  static WireReader behind_value(WireReader reader, uint32_t tag, int depth);
  [[noreturn]] static void fail(const char* what, const char* at, const char* origin);

  const char* next_;
  const char* end_;
  const char* origin_;
  const char* limit_;
};

}  // namespace collector::stepstats
