// Ranges that begin in one place of a program and end in another, and marks: they need not nest and may overlap, so
// they cannot be annotations of launches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/range_texts.h"
#include "kinds/generated/kinds.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// Thread-safe. The lock is never held around a CUPTI call.
class RangeLog {
 public:
  // Numbers of texts and of rows that a session can keep, or a part of it whose texts the store forgets; beyond the
  // first, texts are replaced by kManyNames, beyond the second, ranges are not kept. Both are counted.
  static constexpr size_t kMostTexts = size_t{1} << 17;
  static constexpr size_t kMostRows = size_t{1} << 22;

  // Begins a new session. `forget`: rows are kept no longer than until they are moved to the store.
  void begin(bool forget = false);

  // Records a mark.
  void mark(const RangeTexts& texts, int64_t at_ns, uint32_t thread_id);
  // Records a range that begins, and returns its id, which never repeats; 0: there are too many.
  uint64_t start(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id);
  // Returns whether the id is that of an open range of the session.
  bool end(uint64_t id, int64_t end_ns, uint32_t thread_id);

  // Moves the ranges that have ended since the last call into the store, and returns their number. `last_ns`: the
  // session ends then, and with it the ranges that are still open; 0: it goes on.
  size_t move_to(store::Store& store, int64_t last_ns);

  // Count ranges that other parts of the session did not keep, or that named nothing for a while (open_annotations.h).
  void leave_out() { lost_.fetch_add(1, std::memory_order_relaxed); }
  void suspend(size_t count) { suspended_.fetch_add(count, std::memory_order_relaxed); }

  // The ranges and marks that could not be kept.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  // How often a range named nothing for a while.
  uint64_t suspended() const { return suspended_.load(std::memory_order_relaxed); }
  // Those of which a text was replaced.
  uint64_t without_texts() const { return without_texts_.load(std::memory_order_relaxed); }

 private:
  store::NvtxRangeRow row_of(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id) REQUIRES(mutex_);
  // `is_replaced` becomes true if there are too many texts for this one.
  uint32_t text_id(std::string_view text, bool& is_replaced) REQUIRES(mutex_);
  bool is_full() REQUIRES(mutex_);
  // Keeps the texts of the ranges that are not moved yet, and no others.
  void forget_texts() REQUIRES(mutex_);

  threads::Mutex mutex_;
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  size_t num_rows_ GUARDED_BY(mutex_) = 0;
  bool forget_ GUARDED_BY(mutex_) = false;
  std::unordered_map<uint64_t, store::NvtxRangeRow> open_ GUARDED_BY(mutex_);
  std::vector<store::NvtxRangeRow> ended_ GUARDED_BY(mutex_);
  std::deque<std::string> texts_ GUARDED_BY(mutex_);  // a deque never moves its strings
  std::unordered_map<std::string_view, uint32_t> text_ids_ GUARDED_BY(mutex_);
  // Of the thread that moves the rows: the store's numbers of texts_.
  std::vector<uint32_t> shared_ids_;
  uint32_t first_shared_ = 0;  // StringTable::first of them
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> suspended_{0};
  std::atomic<uint64_t> without_texts_{0};
};

}  // namespace collector::capture
