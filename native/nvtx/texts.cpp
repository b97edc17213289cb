#include "nvtx/texts.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "nvtx/thread_text.h"

namespace collector::nvtx {
namespace {

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

// The part of `text` after `key`; empty: the key is not in it.
std::string_view after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

// The list that the text begins with, or its beginning if it is too long; empty: the text begins with none, or the list
// does not end.
std::string_view list_in(std::string_view text) {
  size_t depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') ++depth;
    if (text[at] == ']' && --depth == 0) return text.substr(0, at + 1);
    if (depth == 0) return {};
  }
  return text.size() > store::kLongestName ? text : std::string_view();
}

}  // namespace

std::string_view text_at(const char* text) {
  if (text == nullptr) return {};
  return beginning_of(std::string_view(text, ::strnlen(text, kLongestRead + 1)));
}

std::string_view name_in(std::string_view text) {
  text = beginning_of(text);
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma);
    for (const std::string_view number : {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "}) {
      if (rest.substr(0, number.size()) == number) return text.substr(0, comma);
    }
  }
  return text;
}

std::string_view name_in_title(std::string_view text) {
  const auto starts_with = [text](std::string_view start) { return text.substr(0, start.size()) == start; };
  // The value of a key up to the next key, which may be any of `ends`, because values contain commas.
  const auto value = [text](std::string_view key, std::initializer_list<std::string_view> ends) -> std::string_view {
    const size_t found = text.find(key);
    if (found == std::string_view::npos) return {};
    const size_t begin = found + key.size();
    for (const std::string_view end : ends) {
      if (const size_t at = text.find(end, begin); at != std::string_view::npos) return text.substr(begin, at - begin);
    }
    return {};
  };
  std::string_view name;
  if (starts_with("Thunk:#")) {
    name = value("#name=", {",hlo_op="});
    if (name.empty()) name = value("hlo_op=", {",unique_hlo_op_id=", "#"});
  } else if (starts_with("XlaModule:#")) {
    name = value("hlo_module=", {",program_id=", "#"});
  }
  return name.empty() ? text : name;
}

std::string_view name_in(const char* text) { return name_in(text_at(text)); }

OpText op_in(const char* text) {
  const std::string_view whole = text_at(text);
  OpText op;
  op.name = name_in(whole);
  if (op.name.size() == whole.size()) return op;
  const std::string_view stated = text_at(text + op.name.size());
  const std::string_view sequence = after(stated, ", seq = ");
  uint64_t number = 0;
  const auto read = std::from_chars(sequence.data(), sequence.data() + sequence.size(), number);
  if (read.ec == std::errc() && number < INT64_MAX) op.sequence = number + 1;
  const std::string_view shapes = after(stated, ", sizes = ");
  if (!shapes.empty()) op.shapes = list_in(text_at(shapes.data()));
  return op;
}

std::string_view name_in(const wchar_t* text) {
  thread_local ThreadText thread_text;
  if (text == nullptr || ThreadText::are_all_gone()) return {};
  std::string& buffer = thread_text.text;
  buffer.clear();
  for (; *text != 0 && buffer.size() <= kLongestRead; ++text) append_utf8(buffer, static_cast<uint32_t>(*text));
  return name_in(std::string_view(buffer));
}

}  // namespace collector::nvtx
