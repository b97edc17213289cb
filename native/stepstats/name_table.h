// Names numbered in the order in which they first come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace collector::convert {

// Open addressing over hashes; the names themselves stay where they are and must outlive the table.
//
// A large table is slow for one reason: every look-up waits for memory. Who has many names to look up can ask for what
// the look-ups will need while it is busy with something else: hash a name, prefetch, and insert or find it later.
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
    if (left > 0) std::memcpy(&word, at, left);  // an empty name may have no address
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
    return static_cast<uint32_t>(hash * kMultiplier >> 32);
  }

  // Room for as many names, of which only what is used costs memory.
  void reserve(size_t num_names) { names_.reserve(num_names); }

  // No names, in the memory that those so far have taken.
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{0, kNone});
    names_.clear();
  }

  // Three steps, each of which reads what the one before has asked for: to be taken for many names one after the other.
  void prefetch_slot(uint32_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  void prefetch_name(uint32_t hash) const {
    if (const uint32_t number = guess(hash); number != kNone) __builtin_prefetch(&names_[number]);
  }
  void prefetch_text(uint32_t hash) const {
    if (const uint32_t number = guess(hash); number != kNone) __builtin_prefetch(names_[number].data());
  }

  // What the first slot says, which is mostly the right one.
  uint32_t guess(uint32_t hash) const {
    if (slots_.empty()) return kNone;
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    return slot.hash == hash ? slot.number : kNone;
  }

  // The number of `name`, and whether it is new.
  struct Entry {
    uint32_t number;
    bool is_new;
  };
  Entry insert(std::string_view name) { return insert(name, hash_of(name)); }
  Entry insert(std::string_view name, uint32_t hash) {
    return insert_kept(name, hash, [](std::string_view lasting) { return lasting; });
  }
  // The same for a name that goes away: `keep(name)` gives a view of it that stays, and is asked where it is new.
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

}  // namespace collector::convert
