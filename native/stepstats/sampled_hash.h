// A fast hash of a node's name and label, for caches of recent values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace collector::stepstats {

// Hashes the lengths, the ends and a few places between. Texts that differ only elsewhere collide, which only costs
// time.
inline uint32_t sampled_hash(std::string_view name, std::string_view label) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = (name.size() << 16 ^ label.size()) * kMultiplier;
  const auto mix = [&hash](std::string_view text, size_t at) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    hash = (hash ^ hash >> 32 ^ word) * kMultiplier;
  };
  for (const std::string_view text : {name, label}) {
    if (text.size() < 8) {
      uint64_t word = 0;
      if (!text.empty()) std::memcpy(&word, text.data(), text.size());
      hash = (hash ^ hash >> 32 ^ word) * kMultiplier;
      continue;
    }
    const size_t last = text.size() - 8;
    mix(text, 0);
    mix(text, last);
    if (text.size() >= 32) {
      mix(text, last / 4);
      mix(text, last / 2);
      mix(text, last / 4 * 3);
    }
  }
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace collector::stepstats
