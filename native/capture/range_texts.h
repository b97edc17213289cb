// The texts and numbers that a program states for an NVTX range or mark.
#pragma once

#include <cstdint>
#include <string_view>

namespace collector::capture {

struct RangeTexts {
  std::string_view name;
  std::string_view domain;    // empty: the default domain
  std::string_view category;  // empty: none
  std::string_view payload;   // likewise
  uint32_t color = 0;         // 0xAARRGGBB; 0: none
  uint64_t op_sequence = 0;   // number of PyTorch's autograd, plus 1; 0: none
  std::string_view shapes;    // of the inputs of PyTorch's op, as it writes them; empty: none
  bool is_shared = false;     // whether a text stands for many or is missing, as there were too many in the process

  bool is_name_alone() const {
    return !is_shared && color == 0 && domain.empty() && category.empty() && payload.empty() && op_sequence == 0 &&
           shapes.empty();
  }
};

}  // namespace collector::capture
