#include "write/json.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "stepstats/utf8.h"

namespace collector::write {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// The letter after the backslash; 'u' for \uXXXX; 0 for bytes that are written unchanged; 1 for bytes beyond ASCII.
constexpr std::array<char, 256> make_escapes() {
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
constexpr std::array<char, 256> kEscapes = make_escapes();

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr uint64_t kOnes = 0x0101010101010101u;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight bytes are read as one number below");

// Whether any of eight bytes needs an escape. May also return true for a byte above one that needs an escape.
bool any_escape(uint64_t eight) {
  constexpr uint64_t kHigh = 0x8080808080808080u;
  const auto below = [](uint64_t bytes, uint64_t limit) { return (bytes - kOnes * limit) & ~bytes; };
  return ((eight | below(eight, 0x20) | below(eight ^ (kOnes * '"'), 1) | below(eight ^ (kOnes * '\\'), 1) |
           below(eight ^ (kOnes * 0x7F), 1)) &
          kHigh) != 0;
}

char* put_code_unit(char* to, uint32_t unit) {
  *to++ = '\\';
  *to++ = 'u';
  for (int shift = 12; shift >= 0; shift -= 4) *to++ = kHex[unit >> shift & 0xF];
  return to;
}

}  // namespace

char* put_escaped_text(char* to, std::string_view text, BadText bad_text) {
  const char* from = text.data();
  const char* const end = from + text.size();
  while (from != end) {
    while (end - from >= 8) {
      uint64_t eight;
      std::memcpy(&eight, from, 8);
      if (any_escape(eight)) break;
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
        const auto* bytes = reinterpret_cast<const unsigned char*>(from);
        uint32_t code_point = 0;
        const size_t length = stepstats::decode_utf8(bytes, static_cast<size_t>(end - from), code_point);
        if (bad_text == BadText::kReplace) {
          const std::string_view shown = length == 0 ? kReplacement : std::string_view(from, length);
          std::memcpy(to, shown.data(), shown.size());
          to += shown.size();
          from += length == 0 ? stepstats::broken_utf8_length(bytes, static_cast<size_t>(end - from)) : length;
          continue;
        }
        if (length == 0) return nullptr;
        if (code_point >= 0x10000) {
          to = put_code_unit(to, 0xD800 + ((code_point - 0x10000) >> 10));
          code_point = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
        }
        to = put_code_unit(to, code_point);
        from += length;
      } else if (escape == 'u') {
        to = put_code_unit(to, byte);
        ++from;
      } else {
        *to++ = '\\';
        *to++ = escape;
        ++from;
      }
    }
  }
  return to;
}

const char* find_bad_text(std::string_view text) {
  const char* from = text.data();
  const char* const end = from + text.size();
  while (from != end) {
    uint32_t code_point = 0;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
    const size_t length =
        *bytes < 0x80 ? 1 : stepstats::decode_utf8(bytes, static_cast<size_t>(end - from), code_point);
    if (length == 0) return from;
    from += length;
  }
  return nullptr;
}

const char* append_json_string(Output& output, std::string_view text, BadText bad_text) {
  char* to = output.reserve(json_room(text) + 2);
  *to++ = '"';
  to = put_json_text(to, text, bad_text);
  if (to == nullptr) return find_bad_text(text);
  *to++ = '"';
  output.commit(to);
  return nullptr;
}

}  // namespace collector::write
