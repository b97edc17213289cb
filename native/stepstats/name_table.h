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

  // Sixteen bytes at a time; the last bytes are read together with those before, so that no byte is read alone.
  static uint32_t hash_of(std::string_view name) {
    const char* at = name.data();
    const size_t size = name.size();
    uint64_t hash = size * kMultiplier;
    if (size >= 16) {
      const char* const last = at + size - 16;
      for (; at < last; at += 16) hash = mixed(read<uint64_t>(at) ^ hash, read<uint64_t>(at + 8));
      hash = mixed(read<uint64_t>(last) ^ hash, read<uint64_t>(last + 8));
    } else if (size >= 8) {
      hash = mixed(read<uint64_t>(at) ^ hash, read<uint64_t>(at + size - 8));
    } else if (size >= 4) {
      hash = mixed(read<uint32_t>(at) ^ hash, read<uint32_t>(at + size - 4));
    } else if (size > 0) {
      const uint64_t bytes = read<uint8_t>(at) | uint64_t{read<uint8_t>(at + size / 2)} << 8;
      hash = mixed(bytes ^ hash, read<uint8_t>(at + size - 1));
    }
    return static_cast<uint32_t>((hash ^ hash >> 32) * kMultiplier >> 32);
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
  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  static constexpr uint64_t kSecret = 0xA0761D6478BD642Fu;  // a product of texts alone would often be 0

  template <typename Number>
  static Number read(const char* from) {
    Number number;
    std::memcpy(&number, from, sizeof number);
    return number;
  }
  // Both halves of the product, so that every bit of both numbers counts.
  static uint64_t mixed(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a ^ kMultiplier) * (b ^ kSecret);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

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
