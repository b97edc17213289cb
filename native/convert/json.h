// Text as JSON strings, in ASCII alone: what every reader agrees on.
#pragma once

#include <string_view>

#include "convert/output.h"

namespace collector::convert {

// What to do with bytes that are not UTF-8.
enum class BadText { kReplace, kRefuse };

// Appends `text` as a JSON string with its quotes; control characters, DEL and everything beyond ASCII as \uXXXX in
// small letters, as Python's json module does. Each byte that is not UTF-8 becomes U+FFFD, or nothing is promised about
// the output and the address of the first such byte is returned. Otherwise returns null.
const char* AppendJsonString(Output& output, std::string_view text, BadText bad_text = BadText::kReplace);

// The same without the quotes.
const char* AppendJsonText(Output& output, std::string_view text, BadText bad_text);

}  // namespace collector::convert
