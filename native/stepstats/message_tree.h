// Encodes a tree of nested messages from columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector::stepstats {

// The rows are messages in depth-first order. Values that are 0 or empty are left out, as in proto3.
struct MessageTree {
  struct Numbers {
    uint32_t field;
    const int64_t* values;
  };
  struct Texts {
    uint32_t field;
    std::vector<std::string_view> values;
  };

  size_t num_rows = 0;
  const int64_t* depths = nullptr;  // 0 in the first row, else at least 1 and at most 1 more than in the row before
  uint32_t children_field = 0;      // the field that holds the child messages
  std::vector<Numbers> numbers;
  std::vector<Texts> texts;
  std::vector<std::string_view> encoded;  // further fields of each row, in wire format
};

// Whether the depths form a tree.
bool is_tree(const MessageTree& tree);

// The bytes of the first message, which contains all others. The depths must form a tree.
std::string encode_message_tree(const MessageTree& tree);

}  // namespace collector::stepstats
