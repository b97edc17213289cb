// The names that a program gives its devices, contexts and streams, by the numbers that CUPTI's records have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cupti/library.h"
#include "threads/mutex.h"

namespace collector::nvtx {

struct NamedObjects {
  std::map<int, std::string> devices;                            // by ordinal
  std::map<uint32_t, std::string> contexts;                      // by CUPTI's number
  std::map<std::pair<uint32_t, uint32_t>, std::string> streams;  // by CUPTI's numbers of context and stream
  uint64_t unknown = 0;                                          // contexts and streams whose numbers are not known
  uint64_t dropped = 0;                                          // names that were too many to be kept
  uint64_t cut = 0;                                              // names of which the beginning was kept
};

// Thread-safe.
//
// A program names an object while it exists; later its handle may be dangling, and must not be used. Its number is
// therefore read at once: from CUPTI, if a session has opened it before, else from the driver. The driver's numbers are
// taken for CUPTI's only if both were seen to be equal for an object, because their equality is not documented.
class CudaNames {
 public:
  void name_device(int ordinal, std::string_view name);
  // `library`: CUPTI, or null before the first session.
  void name_context(void* context, std::string_view name, const cupti::Library* library);
  void name_stream(void* stream, std::string_view name, const cupti::Library* library);

  // `library`: that of the session that has ended.
  NamedObjects names(const cupti::Library* library);

  // For forks.
  threads::Mutex& mutex() { return mutex_; }

 private:
  static constexpr size_t kMostNames = 4096;  // of each kind; further ones are dropped

  using Place = std::pair<uint32_t, uint32_t>;  // context and stream

  template <typename Names, typename Key>
  void put(Names& names, const Key& key, std::string_view name) REQUIRES(mutex_);
  // Whether the numbers of the current context and its default stream are equal; no value if they are not known.
  static std::optional<bool> compared_numbers(const cupti::Library& library);
  // The names as they were read.
  NamedObjects known_names(const cupti::Library* library);
  // Whether names depend on that.
  bool wants_comparison() EXCLUDES(mutex_);

  threads::Mutex mutex_;
  std::optional<bool> drivers_numbers_are_cuptis_ GUARDED_BY(mutex_);
  NamedObjects known_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> contexts_of_driver_ GUARDED_BY(mutex_);
  std::map<std::pair<uint64_t, uint64_t>, std::string> streams_of_driver_ GUARDED_BY(mutex_);
};

}  // namespace collector::nvtx
