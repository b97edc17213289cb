// NVTX domains and registered strings: the objects behind the handles that programs get.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/open_annotations.h"
#include "capture/range_selection.h"
#include "threads/mutex.h"

namespace collector::nvtx {

// Categories with smaller numbers are found without a lock.
constexpr uint32_t kSmallCategories = 64;

// Never freed, so that a handle stays valid after nvtxDomainDestroy. Domains of one name are one domain: for the next
// tool, too, from the first creation to the last destruction.
struct Domain {
  capture::Owner owner;                                                              // of its ranges
  std::string name;                                                                  // empty: the default domain
  std::atomic<bool> is_wanted{true};                                                 // whether its ranges are recorded
  std::atomic<void*> next{nullptr};                                                  // the handle of the next tool
  std::array<std::atomic<const std::string*>, kSmallCategories> small_categories{};  // their names, null: none
  uint64_t times_made = 0;                                                           // and not destroyed; of Domains
  bool is_shared = false;                                                            // by all further domains
};

// Of one domain, because the next tool's handle is. Never freed.
struct RegisteredString {
  std::string name;
  std::string title;                 // the whole text, if the name is only a part of it
  std::atomic<void*> next{nullptr};  // the handle of the next tool
  bool is_shared = false;            // whether it stands for all further strings of all domains
};

// Thread-safe.
class Domains {
 public:
  // Numbers of domains and of strings, beyond which all share one.
  static constexpr size_t kMostDomains = 1024;
  static constexpr size_t kMostStrings = size_t{1} << 17;
  // The largest number of bytes of their texts, likewise.
  static constexpr size_t kMostStringBytes = size_t{128} << 20;

  Domain& default_domain() { return *default_; }
  // The domain of a handle that a program got from us; null is the default domain.
  Domain& of(void* handle) { return handle == nullptr ? *default_ : *static_cast<Domain*>(handle); }

  Domain& create(std::string_view name);
  // One use of a domain fewer. Returns the next tool's handle, if that is to be destroyed now, or null.
  void* destroy(Domain& domain);
  // Notes the next tool's handle of a domain. Returns the handle that is to be destroyed, because the domain has one
  // already, or null.
  static void* keep_next(Domain& domain, void* handle);
  RegisteredString& register_string(const Domain& domain, std::string_view text);
  // The text of a handle; empty if the handle is not one of ours.
  std::string_view text_of(const void* handle);

  // Names a category of a domain. Beyond kMostCategories of them, and as many different names, a category has no name.
  static constexpr size_t kMostCategories = 4096;
  void name_category(Domain& domain, uint32_t category, std::string_view name);
  // The name of a category; null if it has none.
  const std::string* category(const Domain& domain, uint32_t category);
  // Whether there were further ones, so that a category without a name may be one of them.
  bool have_dropped_categories() const { return have_dropped_categories_.load(std::memory_order_relaxed); }

  // Records only these domains from now on; returns the selection before.
  capture::RangeSelection select(capture::RangeSelection selection);

  // The names of all domains, that of the default domain first.
  std::vector<std::string> names();

  // Those of these domains that the program has not made, though it has made others; without the default domain.
  std::vector<std::string> absent(const std::vector<std::string>& wanted);

  // For forks.
  threads::Mutex& mutex() { return mutex_; }

 private:
  bool is_selected(const std::string& name) const REQUIRES(mutex_);

  threads::Mutex mutex_;
  capture::RangeSelection selection_ GUARDED_BY(mutex_);
  std::deque<Domain> domains_ GUARDED_BY(mutex_);
  std::map<std::string, Domain*, std::less<>> by_name_ GUARDED_BY(mutex_);
  // Never removed, because ranges may be using them.
  std::set<std::string, std::less<>> category_names_ GUARDED_BY(mutex_);
  std::atomic<bool> have_dropped_categories_{false};
  std::map<std::pair<capture::Owner, uint32_t>, const std::string*> categories_ GUARDED_BY(mutex_);
  std::deque<RegisteredString> strings_ GUARDED_BY(mutex_);
  size_t num_string_bytes_ GUARDED_BY(mutex_) = 0;
  using Text = std::pair<capture::Owner, std::string_view>;
  struct TextHash {
    size_t operator()(const Text& text) const {
      return std::hash<std::string_view>()(text.second) ^ text.first * size_t{0x9e3779b97f4a7c15};
    }
  };
  std::unordered_map<Text, RegisteredString*, TextHash> by_text_ GUARDED_BY(mutex_);
  std::unordered_set<const void*> handles_ GUARDED_BY(mutex_);  // of strings
  Domain* const default_ = &add("");

  Domain& add(std::string_view name);
};

}  // namespace collector::nvtx
