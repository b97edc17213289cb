#include "convert/json.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "convert/utf8.h"

namespace collector::convert {
namespace {

constexpr size_t kLongestEscape = 6;  // \uXXXX for one byte
constexpr char kHex[] = "0123456789abcdef";

// The letter after the backslash; 'u' for \uXXXX; 0 for bytes that stand for themselves; 1 for those beyond ASCII.
constexpr std::array<char, 256> MakeEscapes() {
  std::array<char, 256> escapes{};
  for (size_t i = 0; i < 0x20; ++i) escapes[i] = 'u';
  escapes[0x7F] = 'u';
  for (size_t i = 0x80; i < 256; ++i) escapes[i] = 1;
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  escapes['\b'] = 'b';
  escapes['\f'] = 'f';
  return escapes;
}
constexpr std::array<char, 256> kEscapes = MakeEscapes();

// Whether one of eight bytes does not stand for itself. May also say yes when a byte above such a one does.
bool AnyEscape(uint64_t eight) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  constexpr uint64_t kHigh = 0x8080808080808080u;
  const auto below = [](uint64_t bytes, uint64_t limit) { return (bytes - kOnes * limit) & ~bytes; };
  return ((eight | below(eight, 0x20) | below(eight ^ (kOnes * '"'), 1) | below(eight ^ (kOnes * '\\'), 1) |
           below(eight ^ (kOnes * 0x7F), 1)) &
          kHigh) != 0;
}

char* PutCodeUnit(char* to, uint32_t unit) {
  *to++ = '\\';
  *to++ = 'u';
  for (int shift = 12; shift >= 0; shift -= 4) *to++ = kHex[unit >> shift & 0xF];
  return to;
}

}  // namespace

const char* AppendJsonText(Output& output, std::string_view text, BadText bad_text) {
  char* to = output.Reserve(kLongestEscape * text.size());
  const char* from = text.data();
  const char* const end = from + text.size();
  while (from != end) {
    while (end - from >= 8) {
      uint64_t eight;
      std::memcpy(&eight, from, 8);
      if (AnyEscape(eight)) break;
      std::memcpy(to, from, 8);
      from += 8;
      to += 8;
    }
    const char* const stop = end - from > 8 ? from + 8 : end;
    while (from < stop) {
      const auto byte = static_cast<unsigned char>(*from);
      const char escape = kEscapes[byte];
      if (escape == 0) {
        *to++ = *from++;
      } else if (escape == 1) {
        uint32_t code_point = 0;
        size_t length =
            DecodeUtf8(reinterpret_cast<const unsigned char*>(from), static_cast<size_t>(end - from), code_point);
        if (length == 0) {
          if (bad_text == BadText::kRefuse) return from;
          code_point = 0xFFFD;
          length = 1;
        }
        if (code_point >= 0x10000) {
          to = PutCodeUnit(to, 0xD800 + ((code_point - 0x10000) >> 10));
          code_point = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
        }
        to = PutCodeUnit(to, code_point);
        from += length;
      } else if (escape == 'u') {
        to = PutCodeUnit(to, byte);
        ++from;
      } else {
        *to++ = '\\';
        *to++ = escape;
        ++from;
      }
    }
  }
  output.Commit(to);
  return nullptr;
}

const char* AppendJsonString(Output& output, std::string_view text, BadText bad_text) {
  output.Append('"');
  const char* const bad = AppendJsonText(output, text, bad_text);
  output.Append('"');
  return bad;
}

}  // namespace collector::convert
