#include "capture/journal_flusher.h"

#include <ctime>

#include "capture/clocks.h"
#include "cupti/process_use.h"
#include "threads/patient_lock.h"

namespace collector::capture {
namespace {

constexpr int64_t kFlushPeriod = 500 * kMillisecond;  // a journal misses at most this much finished work

}  // namespace

void JournalFlusher::reset() {
  journal_.reset();
  is_broken_.store(false, std::memory_order_relaxed);
  records_dropped_.store(0, std::memory_order_relaxed);
}

void JournalFlusher::begin(const std::string& path, const SegmentLimits& limits, const cupti::Library& library,
                           const std::map<std::string, std::string>& texts,
                           const std::map<std::string, int64_t>& numbers) {
  journal_ = std::make_unique<JournalSegments>(path, limits);
  journal_->begin(library, texts, numbers);
}

void JournalFlusher::allow(const cupti::Library& library) {
  const threads::MutexLock lock(mutex_);
  flushed_ = &library;
}

void JournalFlusher::forbid() {
  const threads::MutexLock lock(mutex_);
  flushed_ = nullptr;
}

void JournalFlusher::forbid_at_exit() {
  if (!threads::lock_within(mutex_, threads::kPatience)) return;
  const threads::MutexLock lock(mutex_, std::adopt_lock);
  flushed_ = nullptr;
}

void JournalFlusher::count_dropped(const cupti::Library& library) {
  const threads::MutexLock lock(mutex_);
  take_num_dropped(library);
}

void JournalFlusher::count_dropped_unless_flushing(const cupti::Library& library) {
  if (!mutex_.try_lock()) return;
  const threads::MutexLock lock(mutex_, std::adopt_lock);
  take_num_dropped(library);
}

void JournalFlusher::take_num_dropped(const cupti::Library& library) {
  records_dropped_.fetch_add(library.activity_api().take_num_dropped(), std::memory_order_acq_rel);
}

void JournalFlusher::finish(const std::map<std::string, std::string>& texts,
                            const std::map<std::string, int64_t>& numbers) {
  if (journal_) journal_->finish(texts, numbers);
}

void JournalFlusher::close() {
  if (journal_) journal_->close();
}

void JournalFlusher::remove() {
  if (journal_) journal_->remove();
}

std::string JournalFlusher::trouble() const { return journal_ ? journal_->trouble() : ""; }

void JournalFlusher::start_period() { next_flush_ns_ = clock_ns(CLOCK_MONOTONIC) + kFlushPeriod; }

bool JournalFlusher::flush_if_due() {
  const bool is_hastened = is_hastened_.exchange(false, std::memory_order_acq_rel);
  if (!is_hastened && clock_ns(CLOCK_MONOTONIC) < next_flush_ns_) return false;
  // CUPTI's own flush period would not help: it returns only full buffers, which come back by themselves. On 13.0.48,
  // where a flush can crash, a journal contains only those.
  const threads::MutexLock lock(mutex_);
  if (flushed_ != nullptr && flushed_->has(cupti::Feature::kFlushingIsSafe)) {
    flushes_.fetch_add(1, std::memory_order_acq_rel);
    flushed_->cupti().ActivityFlushAll(0);
    take_num_dropped(*flushed_);
  }
  start_period();
  return true;
}

void JournalFlusher::append(const store::Store& store, AnnotationLog& annotations, const OpenRangeChanges& ranges,
                            const std::map<std::string, int64_t>& numbers) {
  journal_->append(store, annotations, ranges, numbers);
  note_trouble();
}

void JournalFlusher::note_trouble() { is_broken_.store(!journal_->trouble().empty(), std::memory_order_relaxed); }

void JournalFlusher::state(const std::map<std::string, std::string>& texts,
                           const std::map<std::string, int64_t>& numbers) {
  journal_->state(texts, numbers);
}

void JournalFlusher::cut(store::Store& store, AnnotationLog& annotations, size_t num_held) {
  if (cupti::out_of_use()) return;  // a segment begins with names and times of libcupti
  journal_->cut(store, annotations, num_held);
  note_trouble();
}

void JournalFlusher::cut_if_due(store::Store& store, AnnotationLog& annotations) {
  if (cupti::out_of_use()) return;  // a segment begins with names and times of libcupti
  journal_->cut_if_due(store, annotations);
  note_trouble();
}

void JournalFlusher::forget_rows() { journal_->forget_rows(); }

void JournalFlusher::forget_names(store::Store& store) { journal_->forget_names(store); }

void JournalFlusher::give_up(const std::string& why) {
  journal_->give_up(why);
  is_broken_.store(true, std::memory_order_relaxed);
}

}  // namespace collector::capture
