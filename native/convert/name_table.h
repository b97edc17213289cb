// Names numbered in the order in which they first come.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace collector::convert {

// Open addressing over hashes; the names themselves stay where they are and must outlive the table.
class NameTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The number of `name`, and whether it is new.
  struct Entry {
    uint32_t number;
    bool is_new;
  };
  Entry Insert(std::string_view name) {
    if (2 * (names_.size() + 1) > slots_.size()) Grow();
    const uint64_t hash = Hash(name);
    size_t at = Find(name, hash);
    if (slots_[at].number != kNone) return {slots_[at].number, false};
    const auto number = static_cast<uint32_t>(names_.size());
    slots_[at] = {hash, number};
    names_.push_back(name);
    return {number, true};
  }

  uint32_t Find(std::string_view name) const { return slots_.empty() ? kNone : slots_[Find(name, Hash(name))].number; }

  std::string_view operator[](uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }

 private:
  struct Slot {
    uint64_t hash;
    uint32_t number;
  };

  static uint64_t Hash(std::string_view name) {
    constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
    const char* at = name.data();
    size_t left = name.size();
    uint64_t hash = left * kMultiplier;
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      hash = (hash ^ word) * kMultiplier;
      hash ^= hash >> 29;
    }
    uint64_t word = 0;
    if (left > 0) std::memcpy(&word, at, left);  // an empty name may have no address
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
    return hash * kMultiplier;
  }

  size_t Find(std::string_view name, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (hash ^ hash >> 32) & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || names_[slots_[at].number] != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size(), Slot{0, kNone});
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      size_t at = (slot.hash ^ slot.hash >> 32) & mask;
      while (slots_[at].number != kNone) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<std::string_view> names_;
};

}  // namespace collector::convert
