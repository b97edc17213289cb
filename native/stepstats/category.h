// The categories of nodes in timelines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::stepstats {

enum class Category : uint8_t { kKernel, kMemcpy, kMemset, kOp, kApi, kSync, kOverhead, kOther };
inline constexpr size_t kCategories = 8;

// The name in files: "kernel", "memcpy", ...
constexpr std::string_view category_name(Category category) {
  constexpr std::string_view kNames[kCategories] = {"kernel", "memcpy", "memset",   "op",
                                                    "api",    "sync",   "overhead", "other"};
  return kNames[static_cast<size_t>(category)];
}

}  // namespace collector::stepstats
