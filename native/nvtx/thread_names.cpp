#include "nvtx/thread_names.h"

#include <unistd.h>

#include <iterator>

#include "nvtx/texts.h"

namespace collector::nvtx {
namespace {

// Programs may name any number as a thread, and threads end.
bool is_own_thread(uint32_t thread_id) {
  return ::access(("/proc/self/task/" + std::to_string(thread_id)).c_str(), F_OK) == 0;
}

}  // namespace

void ThreadNames::name(uint32_t thread_id, std::string_view name) {
  const threads::MutexLock lock(mutex_);
  std::map<uint32_t, std::string>& names = known_.names;
  if (names.count(thread_id) == 0) {
    if (names.size() >= kMostNames) make_room();
    if (names.size() >= kMostNames) {
      ++known_.dropped;
      return;
    }
  }
  names[thread_id] = name;
}

void ThreadNames::make_room() {
  if (known_.dropped % kDropsBetweenRemovals != 0) return;
  for (auto named = known_.names.begin(); named != known_.names.end();) {
    named = is_own_thread(named->first) ? std::next(named) : known_.names.erase(named);
  }
}

ThreadNames::Known ThreadNames::of_living_threads() {
  Known found;
  {
    const threads::MutexLock lock(mutex_);
    found = known_;
  }
  for (auto named = found.names.begin(); named != found.names.end();) {
    const bool is_stated = !named->second.empty() && is_own_thread(named->first);
    named = is_stated ? std::next(named) : found.names.erase(named);
  }
  found.cut = cut_names(found.names);
  return found;
}

}  // namespace collector::nvtx
