// What must hold of everything that the converters write, whatever they were given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector::fuzz {

// Ends the program with a message that says what does not hold, so that the fuzzer keeps the input.
void require(bool holds, const char* what);

// One JSON value as RFC 8259 has it, in UTF-8, without halves of surrogate pairs and without a key that comes twice in
// one object.
void check_json(std::string_view text);

// JSON without the white space between its words.
std::string compacted(std::string_view json);

// A Perfetto trace as far as it can be checked without Perfetto: whole packets, texts in UTF-8, interned numbers and
// tracks introduced before they are meant, times in order on each track, every slice that begins also ended.
// `piece_ends` are offsets at which the file was handed on: between packets. Returns the number of slices.
uint64_t check_perfetto(std::string_view file, const std::vector<size_t>& piece_ends);

// Whether it is valid UTF-8, decided by its own table rather than the converters' code.
bool is_utf8(std::string_view text);

}  // namespace collector::fuzz
