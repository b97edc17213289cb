// Texts of programs as names of ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cwchar>
#include <map>
#include <string>
#include <string_view>

#include "store/long_names.h"

namespace collector::nvtx {

// No more is read of a text. Whatever keeps a text sees that a longer one is too long, cuts it, and counts it.
constexpr size_t kLongestRead = store::kLongestName + 4;

// A text, or the beginning of one that is too long.
inline std::string_view beginning_of(std::string_view text) { return store::beginning_of(text, kLongestRead); }

// The same of a C string; null is the empty text.
std::string_view text_at(const char* text);

// Cuts the names that are too long, and returns their number. Names of objects are kept as they were read.
template <typename Key>
uint64_t cut_names(std::map<Key, std::string>& names) {
  uint64_t cut = 0;
  for (auto& [key, name] : names) {
    if (name.size() <= store::kLongestName) continue;
    name = store::cut_name(name);
    ++cut;
  }
  return cut;
}

// The name in a text: its beginning if it is too long, without the numbers that torch.autograd.profiler.emit_nvtx
// appends to the name of every op (`aten::add, seq = 1, op_id = 5, sizes = [[4]]`), which would make all names
// different.
std::string_view name_in(std::string_view text);

// The name in the title of one of XLA's ranges: the op of `Thunk:#name=jit(step)/dot,hlo_op=dot.3,unique_hlo_op_id=3#`,
// which has none if the program gave it none, and the module of `XlaModule:#hlo_module=jit_step,program_id=7#`. Of
// every other text all of it.
std::string_view name_in_title(std::string_view text);

// The same of a C string; null is the empty text. Reads no further than necessary.
std::string_view name_in(const char* text);

// A text of torch.autograd.profiler.emit_nvtx: `aten::add, seq = 1, op_id = 5, sizes = [[4]]`. Any other text is a name
// alone.
struct OpText {
  std::string_view name;
  uint64_t sequence = 0;    // seq plus 1; 0: none, or more than 63 bits
  std::string_view shapes;  // `[[4]]`, or the beginning of a list that is too long; empty: none
};
OpText op_in(const char* text);

// The same of a wide text, as UTF-8, which is valid until this thread reads the next one. Values that are no characters
// become U+FFFD.
std::string_view name_in(const wchar_t* text);

}  // namespace collector::nvtx
