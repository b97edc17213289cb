// What a program states of an NVTX range or mark.
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

  bool is_name_alone() const { return color == 0 && domain.empty() && category.empty() && payload.empty(); }
};

}  // namespace collector::capture
