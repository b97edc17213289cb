#include "nvtx/texts.h"

#include <cstdint>
#include <cstring>

namespace collector::nvtx {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

void append_utf8(std::string& to, uint32_t character) {
  const bool is_surrogate = character >= 0xD800 && character < 0xE000;
  if (character > 0x10FFFF || is_surrogate) character = 0xFFFD;
  const auto byte = [&to](uint32_t value) { to.push_back(static_cast<char>(value)); };
  const auto tail = [&](int shift) { byte(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    byte(character);
  } else if (character < 0x800) {
    byte(0xC0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    byte(0xE0 | character >> 12);
    tail(6);
    tail(0);
  } else {
    byte(0xF0 | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string_view name_in(std::string_view text) {
  if (text.size() > kLongestName) {
    size_t end = kLongestName;
    while (end > kLongestName - 4 && continues_character(text[end])) --end;
    text = text.substr(0, end);
  }
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma);
    for (const std::string_view number : {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "}) {
      if (rest.substr(0, number.size()) == number) return text.substr(0, comma);
    }
  }
  return text;
}

std::string_view name_in(const char* text) {
  if (text == nullptr) return {};
  return name_in(std::string_view(text, ::strnlen(text, kLongestName + 1)));
}

std::string_view name_in(const wchar_t* text, std::string& buffer) {
  buffer.clear();
  if (text == nullptr) return {};
  for (; *text != 0 && buffer.size() <= kLongestName; ++text) append_utf8(buffer, static_cast<uint32_t>(*text));
  return name_in(std::string_view(buffer));
}

}  // namespace collector::nvtx
