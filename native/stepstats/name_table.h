// Numbers names in the order of their first use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace collector::stepstats {

// Open addressing over hashes. The names are not copied and must outlive the table.
//
// A large table is slow only because every look-up waits for memory. A caller with many names can overlap these waits
// with other work: hash a name, prefetch its slot, and insert or find it later.
class NameTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  static uint32_t hash_of(std::string_view name) {
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
    if (left > 0) std::memcpy(&word, at, left);  // the data of an empty name may be null
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
    return static_cast<uint32_t>(hash * kMultiplier >> 32);
  }

  // Reserves room for this many names; only used room costs memory.
  void reserve(size_t num_names) { names_.reserve(num_names); }

  // Removes all names but keeps the memory.
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{0, kNone});
    names_.clear();
  }

  // Three prefetches, each of which reads the memory that the one before has fetched. Run each step for many names
  // before the next.
  void prefetch_slot(uint32_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  void prefetch_name(uint32_t hash) const {
    if (const uint32_t number = guess(hash); number != kNone) __builtin_prefetch(&names_[number]);
  }
  void prefetch_text(uint32_t hash) const {
    if (const uint32_t number = guess(hash); number != kNone) __builtin_prefetch(names_[number].data());
  }

  // The number in the first slot, which usually is the right one.
  uint32_t guess(uint32_t hash) const {
    if (slots_.empty()) return kNone;
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    return slot.hash == hash ? slot.number : kNone;
  }

  // The number of `name`, and whether the name is new.
  struct Entry {
    uint32_t number;
    bool is_new;
  };
  Entry insert(std::string_view name) { return insert(name, hash_of(name)); }
  Entry insert(std::string_view name, uint32_t hash) {
    return insert_kept(name, hash, [](std::string_view lasting) { return lasting; });
  }
  // The same for a temporary name: if it is new, `keep(name)` returns a view that stays valid.
  template <typename Keep>
  Entry insert_kept(std::string_view name, uint32_t hash, const Keep& keep) {
    if (4 * (names_.size() + 1) > 3 * slots_.size()) grow();
    const size_t at = slot_of(name, hash);
    if (slots_[at].number != kNone) return {slots_[at].number, false};
    const auto number = static_cast<uint32_t>(names_.size());
    slots_[at] = {hash, number};
    names_.push_back(keep(name));
    return {number, true};
  }

  uint32_t find(std::string_view name) const { return find(name, hash_of(name)); }
  uint32_t find(std::string_view name, uint32_t hash) const {
    return slots_.empty() ? kNone : slots_[slot_of(name, hash)].number;
  }

  std::string_view operator[](uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t number;
  };

  size_t slot_of(std::string_view name, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || names_[slots_[at].number] != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size(), Slot{0, kNone});
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      size_t at = slot.hash & mask;
      while (slots_[at].number != kNone) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<std::string_view> names_;
};

}  // namespace collector::stepstats
