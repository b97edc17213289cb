// What a node stands for, as timelines tell them apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::convert {

enum class Category : uint8_t { kKernel, kMemcpy, kMemset, kOp, kApi, kSync, kOverhead, kOther };
inline constexpr size_t kCategories = 8;

}  // namespace collector::convert
