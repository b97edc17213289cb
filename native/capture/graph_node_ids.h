// The parts of the id that CUPTI gives to a node of a CUDA graph: the number of its graph, and its place there.
#pragma once

#include <cstdint>

namespace collector::capture {

inline constexpr int kPlaceBits = 32;

constexpr uint32_t graph_of(uint64_t node) { return static_cast<uint32_t>(node >> kPlaceBits); }
constexpr uint32_t place_of(uint64_t node) { return static_cast<uint32_t>(node); }
constexpr uint64_t node_at(uint32_t graph, uint32_t place) { return uint64_t{graph} << kPlaceBits | place; }

}  // namespace collector::capture
