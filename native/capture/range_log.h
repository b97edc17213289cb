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

// What changed of the ranges that are open, for a journal: ranges that began and have not ended, with their ids, and
// the ids of those that have ended since. The texts of the rows have the store's numbers.
struct OpenRangeChanges {
  std::vector<uint64_t> opened_ids;
  std::vector<store::NvtxRangeRow> opened;
  std::vector<uint64_t> ended_ids;
};

// Thread-safe. The lock is never held around a CUPTI call.
class RangeLog {
 public:
  // Numbers of texts and their bytes, and of rows, that a session can keep, or a part of it whose texts the store
  // forgets; beyond the first two, texts are replaced by kManyNames, beyond the last one, ranges are not kept. Both are
  // counted.
  static constexpr size_t kMostTexts = size_t{1} << 17;
  static constexpr size_t kMostTextBytes = size_t{64} << 20;
  static constexpr size_t kMostRows = size_t{1} << 22;

  // Begins a new session. `follow`: take_open_changes() will be called; `forget`: rows are kept no longer than until
  // they are moved to the store.
  void begin(bool follow = false, bool forget = false);

  // Records a mark.
  void mark(const RangeTexts& texts, int64_t at_ns, uint32_t thread_id);
  // Records a range that begins, and returns its id, which never repeats; 0: there are too many.
  uint64_t start(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id);
  // Returns whether the id is that of an open range of the session.
  bool end(uint64_t id, int64_t end_ns, uint32_t thread_id);

  // Moves the ranges that have ended since the last call into the store; returns their number and that of ranges that
  // have begun and are open. `last_ns`: the session ends then, and with it the ranges that are still open; 0: it goes
  // on.
  size_t move_to(store::Store& store, int64_t last_ns);

  // Called by the thread that moves the rows. The changes up to the last move.
  OpenRangeChanges take_open_changes();
  // The next move states again the ranges that are open, the latest kMostStatedAgain of them, as a segment of a journal
  // may outlive those before it.
  static constexpr size_t kMostStatedAgain = 4096;
  void state_open_again();

  // Count ranges that other parts of the session did not keep, or that named nothing for a while (open_annotations.h).
  void leave_out() { lost_.fetch_add(1, std::memory_order_relaxed); }
  void suspend(size_t count) { suspended_.fetch_add(count, std::memory_order_relaxed); }

  // The ranges and marks that could not be kept.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  // How often a range named nothing for a while.
  uint64_t suspended() const { return suspended_.load(std::memory_order_relaxed); }
  // Those of which a text was replaced.
  uint64_t without_texts() const { return without_texts_.load(std::memory_order_relaxed); }
  // Those of which a text was cut.
  uint64_t names_cut() const { return names_cut_.load(std::memory_order_relaxed); }

 private:
  store::NvtxRangeRow row_of(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id) REQUIRES(mutex_);
  struct Lack {
    bool is_replaced = false;  // there were too many texts for one of these
    bool is_cut = false;
  };
  // Notes in `lack` what the text lacks.
  uint32_t text_id(std::string_view text, Lack& lack) REQUIRES(mutex_);
  bool is_full() REQUIRES(mutex_);
  struct OpenRange {
    store::NvtxRangeRow row;
    bool is_stated = false;  // whether a move has stated it as open
  };
  // Adds a range that has ended, which stays among the open ones.
  void add_ended(uint64_t id, const OpenRange& range, int64_t end_ns, uint32_t end_thread_id) REQUIRES(mutex_);
  // Puts the ranges that have begun since the last call, and are open, into `changes`.
  void state_open(OpenRangeChanges& changes) REQUIRES(mutex_);
  // Keeps the texts of the ranges that are not moved yet, and no others.
  void forget_texts() REQUIRES(mutex_);

  threads::Mutex mutex_;
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  size_t num_rows_ GUARDED_BY(mutex_) = 0;
  bool follow_ GUARDED_BY(mutex_) = false;
  bool forget_ GUARDED_BY(mutex_) = false;
  std::unordered_map<uint64_t, OpenRange> open_ GUARDED_BY(mutex_);
  std::vector<uint64_t> started_ GUARDED_BY(mutex_);       // to be stated if they are open at the next move
  std::vector<uint64_t> stated_ended_ GUARDED_BY(mutex_);  // ended since the last move, and stated before
  std::vector<store::NvtxRangeRow> ended_ GUARDED_BY(mutex_);
  std::deque<std::string> texts_ GUARDED_BY(mutex_);  // a deque never moves its strings
  std::unordered_map<std::string_view, uint32_t> text_ids_ GUARDED_BY(mutex_);
  size_t num_text_bytes_ GUARDED_BY(mutex_) = 0;
  // Of the thread that moves the rows: the store's numbers of texts_.
  std::vector<uint32_t> shared_ids_;
  uint32_t first_shared_ = 0;  // StringTable::first of them
  OpenRangeChanges changes_;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> suspended_{0};
  std::atomic<uint64_t> without_texts_{0};
  std::atomic<uint64_t> names_cut_{0};
};

}  // namespace collector::capture
