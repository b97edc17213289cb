// A tree of messages, each of which holds those below it, written from columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector::profile {

// Rows are messages in depth-first order. What is 0 or empty is left out, as proto3 does.
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
  const int64_t* depths = nullptr;  // 0 of the first row, at least 1 of all others, and at most 1 below the row before
  uint32_t children_field = 0;      // holds the messages below a message
  std::vector<Numbers> numbers;
  std::vector<Texts> texts;
  std::vector<std::string_view> encoded;  // further fields of each row, as they are on the wire
};

// Whether the depths are those of a tree.
bool is_tree(const MessageTree& tree);

// The bytes of the first message, in which all others are; for a tree.
std::string encode_message_tree(const MessageTree& tree);

}  // namespace collector::profile
