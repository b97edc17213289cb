// Writes text as JSON strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "write/output.h"

namespace collector::write {

// The treatment of bytes that are not UTF-8. kReplace, which is for viewers, also writes characters beyond ASCII
// unchanged: Perfetto (v52) shows \u00fc in a name letter by letter, and refuses a whole file because of one surrogate
// pair.
enum class BadText { kReplace, kRefuse };

// The number of bytes that put_json_text may write.
constexpr size_t json_room(std::string_view text) {
  constexpr size_t kLongestEscape = 6;  // \uXXXX for one byte
  constexpr size_t kBeyond = 8;         // writes of eight bytes may end beyond the text
  return kLongestEscape * text.size() + kBeyond;
}

// Writes `text` as a JSON string without quotes and returns its end. Control characters, DEL and, with kRefuse, all
// characters beyond ASCII are written as \uXXXX in lower case, as Python's json module does. Each byte that is not
// UTF-8 becomes U+FFFD; with kRefuse, null is returned instead and the output is undefined.
char* put_escaped_text(char* to, std::string_view text, BadText bad_text);

// The first byte of a text that is not UTF-8; null if there is none.
const char* find_bad_text(std::string_view text);

// Sixteen bytes of text that are tested together.
class TextBlock {
 public:
  explicit TextBlock(const char* from) { std::memcpy(&bytes_, from, sizeof(bytes_)); }
  TextBlock(uint64_t first, uint64_t second) {
    const uint64_t halves[] = {first, second};
    std::memcpy(&bytes_, halves, sizeof(bytes_));
  }

  void copy_to(char* to) const { std::memcpy(to, &bytes_, sizeof(bytes_)); }

  // The bytes that need an escape in a JSON string.
  class Escapes {
   public:
    Escapes& operator|=(Escapes other) {
      marks_ |= other.marks_;
      return *this;
    }
    bool any() const {
      uint64_t halves[2];
      std::memcpy(halves, &marks_, sizeof(halves));
      return (halves[0] | halves[1]) != 0;
    }

   private:
    friend class TextBlock;
    signed char marks_ __attribute__((vector_size(16))) = {};
  };
  Escapes find_escapes() const {
    Escapes escapes;  // bytes beyond ASCII are negative and therefore below a space
    escapes.marks_ = (bytes_ < ' ') | (bytes_ == '"') | (bytes_ == '\\') | (bytes_ == 0x7F);
    return escapes;
  }

 private:
  signed char bytes_ __attribute__((vector_size(16)));
};

// put_escaped_text for texts that usually need no escapes: they are copied while they are tested. No block reaches
// beyond the text; the last block overlaps the one before.
inline char* put_json_text(char* to, std::string_view text, BadText bad_text) {
  const char* const from = text.data();
  const size_t size = text.size();
  TextBlock::Escapes escapes;
  if (size >= sizeof(TextBlock)) {
    const size_t last = size - sizeof(TextBlock);
    for (size_t at = 0; at < last; at += sizeof(TextBlock)) {
      const TextBlock block(from + at);
      escapes |= block.find_escapes();
      block.copy_to(to + at);
    }
    const TextBlock block(from + last);
    escapes |= block.find_escapes();
    block.copy_to(to + last);
  } else if (size >= 8) {
    uint64_t first;
    uint64_t second;
    std::memcpy(&first, from, 8);
    std::memcpy(&second, from + size - 8, 8);
    escapes = TextBlock(first, second).find_escapes();
    std::memcpy(to, &first, 8);
    std::memcpy(to + size - 8, &second, 8);
  } else if (size >= 4) {
    uint32_t first;
    uint32_t second;
    std::memcpy(&first, from, 4);
    std::memcpy(&second, from + size - 4, 4);
    const uint64_t both = first | uint64_t{second} << 32;
    escapes = TextBlock(both, both).find_escapes();
    std::memcpy(to, &first, 4);
    std::memcpy(to + size - 4, &second, 4);
  } else {
    return put_escaped_text(to, text, bad_text);
  }
  if (__builtin_expect(escapes.any(), 0)) return put_escaped_text(to, text, bad_text);
  return to + size;
}

// Appends `text` in the form of put_escaped_text, with quotes. With kRefuse, returns the address of the first byte that
// is not UTF-8, in which case the output is undefined; otherwise null.
const char* append_json_string(Output& output, std::string_view text, BadText bad_text = BadText::kReplace);

}  // namespace collector::write
