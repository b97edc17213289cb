// Conditions that all output of the converters must meet, whatever the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector::fuzz {

// If the condition does not hold, ends the program with a message, so that the fuzzer keeps the input.
void require(bool holds, const char* what);

// Requires one JSON value by RFC 8259, in UTF-8, without unpaired surrogates and without duplicate keys in an object.
void check_json(std::string_view text);

// The JSON text without insignificant white space.
std::string compacted(std::string_view json);

// Checks a Perfetto trace as far as is possible without Perfetto: whole packets, texts in UTF-8, interned numbers and
// tracks introduced before their use, times in order on each track, an end for every begun slice. `piece_ends` are the
// offsets at which the file was passed on, which must be between packets. Returns the number of slices.
uint64_t check_perfetto(std::string_view file, const std::vector<size_t>& piece_ends);

// Whether a text is valid UTF-8, decided by a table of its own and not by the converters' code.
bool is_utf8(std::string_view text);

}  // namespace collector::fuzz
