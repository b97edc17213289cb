#include "write/description_text.h"

#include <string_view>

namespace collector::write {

using stepstats::Allocation;
using stepstats::Dimension;
using stepstats::TensorDescription;

std::string description_text(const TensorDescription& description,
                             const std::unordered_map<int32_t, std::string>& data_type_names) {
  std::string text;
  const auto number = [&text](const char* indent, const char* key, auto value) {
    if (value != 0) text.append(indent).append(key).append(": ").append(std::to_string(value)).append("\n");
  };
  const auto flag = [&text](const char* indent, const char* key, bool value) {
    if (value) text.append(indent).append(key).append(": true\n");
  };
  const auto string = [&text](const char* indent, const char* key, std::string_view value) {
    if (value.empty()) return;
    text.append(indent).append(key).append(": ");
    for (const char letter : value) {
      const auto byte = static_cast<unsigned char>(letter);
      switch (letter) {
        case '\n':
          text += "\\n";
          break;
        case '\r':
          text += "\\r";
          break;
        case '\t':
          text += "\\t";
          break;
        case '"':
          text += '\\';
          break;
        case '\'':
          text += "\\'";
          break;
        case '\\':
          text += "\\\\";
          break;
        default:
          if (byte < 0x20 || byte == 0x7F) {
            text += '\\';
            for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + (byte >> shift & 7));
          } else {
            text += letter;
          }
      }
    }
    text += '\n';
  };
  if (description.dtype != 0) {
    const auto found = data_type_names.find(description.dtype);
    const bool known = found != data_type_names.end();
    text.append("dtype: ").append(known ? found->second : std::to_string(description.dtype)).append("\n");
  }
  if (description.has_shape) {
    text += "shape {\n";
    for (const Dimension& dim : description.dims) {
      text += "  dim {\n";
      number("    ", "size", dim.size);
      string("    ", "name", dim.name);
      text += "  }\n";
    }
    flag("  ", "unknown_rank", description.unknown_rank);
    text += "}\n";
  }
  if (description.has_allocation) {
    const Allocation& allocation = description.allocation;
    text += "allocation_description {\n";
    number("  ", "requested_bytes", allocation.requested_bytes);
    number("  ", "allocated_bytes", allocation.allocated_bytes);
    string("  ", "allocator_name", allocation.allocator_name);
    number("  ", "allocation_id", allocation.allocation_id);
    flag("  ", "has_single_reference", allocation.has_single_reference);
    number("  ", "ptr", allocation.ptr);
    text += "}\n";
  }
  return text;
}

}  // namespace collector::write
