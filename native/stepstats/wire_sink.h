// Writes fields in protobuf's wire format, or counts their bytes with the same code: `WireWriter` writes, `Measure`
// counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "stepstats/wire.h"

namespace collector::stepstats {

constexpr size_t varint_bytes(uint64_t value) {
  const int bits = 64 - __builtin_clzll(value | 1);
  return static_cast<size_t>(bits * 9 + 64) / 64;  // bits / 7 rounded up, without a division
}

inline char* write_varint(uint64_t value, char* to) {
  if (value >> 49 != 0) {  // at least eight bytes, as for times since the epoch: the first eight are written at once
    uint64_t eight = value & 0x00FFFFFFFFFFFFFFu;
    eight = (eight & 0x000000000FFFFFFFu) | (eight & 0x00FFFFFFF0000000u) << 4;
    eight = (eight & 0x00003FFF00003FFFu) | (eight & 0x0FFFC0000FFFC000u) << 2;
    eight = (eight & 0x007F007F007F007Fu) | (eight & 0x3F803F803F803F80u) << 1;
    value >>= 56;
    eight |= value != 0 ? 0x8080808080808080u : 0x0080808080808080u;
    std::memcpy(to, &eight, 8);
    to += 8;
    if (value == 0) return to;
  }
  for (; value > 0x7F; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

constexpr size_t decimal_digits(uint64_t value) {
  size_t digits = 1;
  for (; value >= 10000; value /= 10000) digits += 4;
  return digits + (value >= 1000 ? 3 : value >= 100 ? 2 : value >= 10 ? 1 : 0);
}

// Counts the bytes that a WireWriter would write.
class Measure {
 public:
  void put_raw(std::string_view bytes) { num_bytes_ += bytes.size(); }
  void put_char(char) { ++num_bytes_; }
  void put_unsigned(uint64_t value) { num_bytes_ += decimal_digits(value); }
  void put_decimal(int64_t value) {
    num_bytes_ += value < 0 ? 1 + decimal_digits(uint64_t{0} - static_cast<uint64_t>(value))
                            : decimal_digits(static_cast<uint64_t>(value));
  }
  void put_varint(uint64_t value) { num_bytes_ += varint_bytes(value); }

  size_t num_bytes() const { return num_bytes_; }

 private:
  size_t num_bytes_ = 0;
};

// Writes to memory, which must have room for all bytes.
class WireWriter {
 public:
  explicit WireWriter(char* to) : to_(to) {}

  void put_raw(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(to_, bytes.data(), bytes.size());
    to_ += bytes.size();
  }
  void put_char(char letter) { *to_++ = letter; }
  void put_unsigned(uint64_t value) {
    to_ += decimal_digits(value);
    char* digit = to_;
    do {
      *--digit = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
  }
  void put_decimal(int64_t value) {
    if (value < 0) *to_++ = '-';
    put_unsigned(value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  }
  void put_varint(uint64_t value) { to_ = write_varint(value, to_); }

  char* to() const { return to_; }

 private:
  char* to_;
};

// A number that is 0 and an empty text are left out, as in proto3. Always inline, so that the sink stays in registers
// between fields.
template <typename Sink>
[[gnu::always_inline]] inline void put_number(Sink& sink, uint32_t field, int64_t value) {
  if (value == 0) return;
  sink.put_varint(make_tag(field, kVarint));
  sink.put_varint(static_cast<uint64_t>(value));
}

template <typename Sink>
void put_text(Sink& sink, uint32_t field, std::string_view text) {
  if (text.empty()) return;
  sink.put_varint(make_tag(field, kBytes));
  sink.put_varint(text.size());
  sink.put_raw(text);
}

// A field with the content that `put(sink)` writes; it is written even if it is empty.
template <typename Sink, typename Put>
void put_message(Sink& sink, uint32_t field, const Put& put) {
  Measure content;
  put(content);
  sink.put_varint(make_tag(field, kBytes));
  sink.put_varint(content.num_bytes());
  put(sink);
}

}  // namespace collector::stepstats
