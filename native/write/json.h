// Text as JSON strings.
#pragma once

#include <string_view>

#include "write/output.h"

namespace collector::convert {

// What to do with bytes that are not UTF-8. kReplace, which is for viewers, also writes what is beyond ASCII as it is:
// Perfetto (v52) shows \u00fc in a name letter by letter, and refuses a whole file for one surrogate pair.
enum class BadText { kReplace, kRefuse };

// Appends `text` as a JSON string with its quotes; control characters, DEL and, with kRefuse, everything beyond ASCII
// as
// \uXXXX in small letters, as Python's json module does. Each byte that is not UTF-8 becomes U+FFFD, or nothing is
// promised about the output and the address of the first such byte is returned. Otherwise returns null.
const char* AppendJsonString(Output& output, std::string_view text, BadText bad_text = BadText::kReplace);

// The same without the quotes.
const char* AppendJsonText(Output& output, std::string_view text, BadText bad_text);

}  // namespace collector::convert
