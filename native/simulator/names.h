// Kernel names as the driver stores them: one text per function, at an address that is valid until the process ends.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "threads/mutex.h"

namespace collector::simulator {

class Names {
 public:
  // The address of this name.
  const char* address(std::string_view name) {
    const threads::MutexLock lock(mutex_);
    const auto found = slots_.find(std::string(name));
    if (found != slots_.end()) return found->second;
    const size_t room = name.size() < kRoom ? kRoom : name.size() + 1;
    storage_.push_back(std::make_unique<char[]>(room));
    char* slot = storage_.back().get();
    std::memcpy(slot, name.data(), name.size());
    slots_.emplace(name, slot);
    return slot;
  }

  // Reloads a module: `name` is removed and `successor` takes its address. Returns false if the name is unknown or its
  // memory is too small.
  bool reload(std::string_view name, std::string_view successor) {
    const threads::MutexLock lock(mutex_);
    const auto found = slots_.find(std::string(name));
    if (found == slots_.end() || successor.size() >= kRoom) return false;
    char* slot = found->second;
    slots_.erase(found);
    std::memcpy(slot, successor.data(), successor.size());
    slot[successor.size()] = '\0';
    slots_[std::string(successor)] = slot;
    return true;
  }

 private:
  static constexpr size_t kRoom = 256;

  threads::Mutex mutex_;
  std::vector<std::unique_ptr<char[]>> storage_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, char*> slots_ GUARDED_BY(mutex_);
};

}  // namespace collector::simulator
