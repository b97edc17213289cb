#include "write/json.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "stepstats/utf8.h"

namespace collector::convert {
namespace {

constexpr size_t kLongestEscape = 6;  // \uXXXX for one byte
// Letters are written eight at a time, also where fewer are left: that many bytes beyond the text may be written to.
constexpr size_t kBeyond = 8;

constexpr size_t RoomFor(std::string_view text) { return kLongestEscape * text.size() + kBeyond; }

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

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr uint64_t kOnes = 0x0101010101010101u;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight bytes are read as one number below");

// Whether one of eight bytes does not stand for itself. May also say yes when a byte above such a one does.
bool AnyEscape(uint64_t eight) {
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

// Writes the JSON text of [from, end) to `to`, where there is RoomFor it, and moves `to` behind it.
const char* PutText(char*& to, const char* from, const char* const end, BadText bad_text) {
  const char* const begin = from;
  while (from != end) {
    while (end - from >= 8) {
      uint64_t eight;
      std::memcpy(&eight, from, 8);
      if (AnyEscape(eight)) break;
      std::memcpy(to, from, 8);
      from += 8;
      to += 8;
    }
    if (const auto rest = end - from; rest > 0 && rest < 8 && end - begin >= 8) {
      // The last bytes, moved to where the next eight would be and filled up with letters.
      uint64_t last;
      std::memcpy(&last, end - 8, 8);
      last = last >> (64 - 8 * rest) | (kOnes * 'a') << (8 * rest);
      if (!AnyEscape(last)) {
        std::memcpy(to, &last, 8);
        to += rest;
        return nullptr;
      }
    }
    const char* const stop = end - from > 8 ? from + 8 : end;
    while (from < stop) {
      const auto byte = static_cast<unsigned char>(*from);
      const char escape = kEscapes[byte];
      if (escape == 0) {
        *to++ = *from++;
      } else if (escape == 1) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(from);
        uint32_t code_point = 0;
        const size_t length = DecodeUtf8(bytes, static_cast<size_t>(end - from), code_point);
        if (bad_text == BadText::kReplace) {
          const std::string_view shown = length == 0 ? kReplacement : std::string_view(from, length);
          std::memcpy(to, shown.data(), shown.size());
          to += shown.size();
          from += length == 0 ? BrokenUtf8Length(bytes, static_cast<size_t>(end - from)) : length;
          continue;
        }
        if (length == 0) return from;
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
  return nullptr;
}

}  // namespace

const char* AppendJsonText(Output& output, std::string_view text, BadText bad_text) {
  char* to = output.Reserve(RoomFor(text));
  const char* const bad = PutText(to, text.data(), text.data() + text.size(), bad_text);
  output.Commit(to);
  return bad;
}

const char* AppendJsonString(Output& output, std::string_view text, BadText bad_text) {
  char* to = output.Reserve(RoomFor(text) + 2);
  *to++ = '"';
  const char* const bad = PutText(to, text.data(), text.data() + text.size(), bad_text);
  *to++ = '"';
  output.Commit(to);
  return bad;
}

}  // namespace collector::convert
