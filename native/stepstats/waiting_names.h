// Overlaps many look-ups in a large name table, which otherwise wait for memory one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepstats/name_table.h"

namespace collector::stepstats {

// Names whose table entries are being fetched from memory, with a payload for each.
template <typename Payload>
class WaitingNames {
 public:
  static constexpr size_t kMost = 32;
  struct Item {
    std::string_view name;
    uint32_t hash;
    Payload payload;
  };

  explicit WaitingNames(const NameTable& names) : names_(names) {}

  // Returns whether the buffer is full.
  bool push(std::string_view name, const Payload& payload) {
    const uint32_t hash = NameTable::hash_of(name);
    names_.prefetch_slot(hash);
    items_[count_++] = {name, hash, payload};
    return count_ == kMost;
  }

  // Calls visit(item) for each item and then removes them.
  template <typename Visit>
  void drain(Visit visit) {
    for (size_t i = 0; i < count_; ++i) names_.prefetch_name(items_[i].hash);
    for (size_t i = 0; i < count_; ++i) names_.prefetch_text(items_[i].hash);
    for (size_t i = 0; i < count_; ++i) visit(items_[i]);
    count_ = 0;
  }

 private:
  const NameTable& names_;
  Item items_[kMost];
  size_t count_ = 0;
};

}  // namespace collector::stepstats
