// Texts of programs as names of ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cwchar>
#include <string_view>

namespace collector::nvtx {

// Longer texts are cut to this many bytes, at most: a name is for people.
constexpr size_t kLongestName = 1024;

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
  std::string_view shapes;  // `[[4]]`; empty: none, or the text was cut inside
};
OpText op_in(const char* text);

// The same of a wide text, as UTF-8, which is valid until this thread reads the next one. Values that are no characters
// become U+FFFD.
std::string_view name_in(const wchar_t* text);

}  // namespace collector::nvtx
