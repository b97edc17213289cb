#include "capture/decode_thread.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "capture/clocks.h"
#include "threads/signals_blocked.h"
#include "threads/thread_id.h"

// Since glibc 2.30. Before, a wait lasts longer if the wall clock is set back meanwhile.
// NOLINTNEXTLINE(readability-redundant-declaration): the headers of older versions lack it
extern "C" int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) __attribute__((weak));

namespace collector::capture {
namespace {

// Of rows that are in the journal, and were removed.
constexpr size_t kMostNameBytes = size_t{4} << 20;

}  // namespace

DecodeThread::DecodeThread(BufferPools& pools, AnnotationLog& annotations, GraphLog& graphs, RangeLog& ranges,
                           JournalFlusher& flusher, Budget& budget, LeaveOut leave_out)
    : pools_(pools),
      annotations_(annotations),
      graphs_(graphs),
      ranges_(ranges),
      flusher_(flusher),
      budget_(budget),
      leave_out_(leave_out) {
  ::sem_init(&wake_, 0, 0);
}

void DecodeThread::complete(uint8_t* data, size_t valid) noexcept {
  const BufferPools::Use pools(pools_);
  if (BufferPool* const pool = pools.of(data)) {
    pool->complete(data, valid);
  } else if (!foreign_buffers_.push({data, valid, 0})) {
    foreign_bytes_lost_.fetch_add(valid, std::memory_order_relaxed);
  }
  ::sem_post(&wake_);
}

void DecodeThread::prepare(size_t buffer_bytes, uint32_t max_buffers) {
  late_buffers_ = pools_.prepare(buffer_bytes, max_buffers);
  for (CompletedBuffer foreign{}; foreign_buffers_.pop(foreign);) {
  }
  foreign_bytes_lost_.store(0, std::memory_order_relaxed);
}

void DecodeThread::start(const cupti::Library& library) {
  if (!store_) store_.reset(spare_store_.exchange(nullptr, std::memory_order_acq_rel));
  if (!store_) store_ = std::make_unique<store::Store>();
  store_->clear();
  decoder_.emplace(library, *store_, annotations_.first_id());
  library_ = &library;
  has_named_devices_ = false;
  calling_thread_id_ = 0;
  names_version_ = 0;
  cut_wanted_.store(false, std::memory_order_relaxed);
  {
    const threads::MutexLock lock(facts_mutex_);
    noted_texts_.clear();
    noted_numbers_.clear();
  }
  out_of_memory_bytes_ = 0;
  overhead_ns_ = 0;
  overheads_noted_ = 0;
  has_graphs_ = false;
  losses_written_ = losses();
  running_.store(true, std::memory_order_release);
  const threads::SignalsBlocked no_signals;  // the program's signal handlers must not run on the decode thread
  thread_ = std::thread([this] { run(); });
}

void DecodeThread::stop() {
  running_.store(false, std::memory_order_release);
  ::sem_post(&wake_);
  if (thread_.joinable()) thread_.join();
}

DecodeThread::LentStore DecodeThread::lend_store() noexcept { return LentStore(store_.release(), GiveBack{this}); }

// Nothing is allocated by the removal of rows.
void DecodeThread::GiveBack::operator()(store::Store* store) const noexcept {  // NOLINT(bugprone-exception-escape)
  store->clear();
  delete thread->spare_store_.exchange(store, std::memory_order_acq_rel);
}

void DecodeThread::forget_rows() {
  if (store_) store_->clear();
}

void DecodeThread::run() {
  ::pthread_setname_np(::pthread_self(), "collector");
  flusher_.start_period();
  if (budget_.is_set()) budget_.start_period(clock_ns(CLOCK_MONOTONIC), spent());
  while (running_.load(std::memory_order_acquire)) {
    wait_for_buffers();
    const uint64_t updates = updates_wanted_.load(std::memory_order_acquire);
    try {
      work();
      if (updates != updates_made_.load(std::memory_order_relaxed)) update_journal();
    } catch (const std::exception&) {  // no memory left, and no count of the lost rows
      if (flusher_.has_journal()) flusher_.give_up("out of memory");
    }
    updates_made_.store(updates, std::memory_order_release);
  }
  drain();
  cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void DecodeThread::work() {
  const bool has_flushed = flusher_.has_journal() && flusher_.flush_if_due();
  drain();
  if (budget_.is_set()) keep_budget();
  // Without work on a GPU no buffer comes back, but the program may annotate. Nor does one if all records were dropped.
  if (has_flushed && (take_from_logs() || losses() != losses_written_)) {
    write_journal(clock_ns(CLOCK_THREAD_CPUTIME_ID));
  }
  cut_journal_if_due();
}

void DecodeThread::update_journal() {
  if (!flusher_.has_journal()) return;
  drain();
  write_all_to_journal();
  size_t num_held = 0;
  {
    const BufferPool& pool = *pools_.current();
    const threads::MutexLock lock(facts_mutex_);
    const auto is_back = [&](const HeldBuffer& buffer) { return !pool.is_out(buffer); };
    held_.erase(std::remove_if(held_.begin(), held_.end(), is_back), held_.end());
    num_held = held_.size();
  }
  if (cut_wanted_.exchange(false)) cut_journal(num_held);
}

void DecodeThread::cut_journal_if_due() {
  if (!flusher_.has_journal() || !forgets_) return;
  try {
    const uint32_t segment = flusher_.segment_number();
    flusher_.cut_if_due(*store_, annotations_);
    if (flusher_.segment_number() != segment) ranges_.state_open_again();
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
  }
}

void DecodeThread::cut_journal(size_t num_held) {
  if (!flusher_.has_journal() || !forgets_) return;
  try {
    const uint32_t segment = flusher_.segment_number();
    flusher_.cut(*store_, annotations_, num_held);
    if (flusher_.segment_number() != segment) ranges_.state_open_again();
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
  }
}

void DecodeThread::wait_for_buffers() {
  int64_t until_ns = flusher_.has_journal() ? flusher_.next_flush_ns() : INT64_MAX;
  if (budget_.is_set()) until_ns = std::min(until_ns, budget_.next_check_ns());
  if (until_ns == INT64_MAX) {
    while (::sem_wait(&wake_) != 0) {
    }
    return;
  }
  if (::sem_clockwait != nullptr) {
    const timespec until = timespec_of(until_ns);
    while (::sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
    }
    return;
  }
  const timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + until_ns - clock_ns(CLOCK_MONOTONIC));
  while (::sem_timedwait(&wake_, &until) != 0 && errno == EINTR) {
  }
}

void DecodeThread::drain() {
  pools_.each([this](BufferPool& pool) {
    while (const auto buffer = pool.take_completed()) {
      decode(*buffer);
      pool.recycle(*buffer);
      pool.keep_ready();
    }
  });
  for (CompletedBuffer foreign{}; foreign_buffers_.pop(foreign);) decode(foreign);
}

void DecodeThread::decode(const CompletedBuffer& buffer) {
  const uint64_t of_flushes = decoder_->counts().of_flushes;
  try {
    decoder_->decode(buffer.data, buffer.valid);
  } catch (const std::bad_alloc&) {
    out_of_memory_bytes_ += buffer.valid;
  }
  if (budget_.is_set()) note_costs();
  if (!flusher_.has_journal() || decoder_->counts().of_flushes != of_flushes) return;
  name_devices();
  write_all_to_journal();
  cut_journal_if_due();
}

// Of the rows that the store has got; before they may be removed.
void DecodeThread::note_costs() {
  // The others are times of the program: modules and functions that are loaded, full queues.
  constexpr std::array<uint32_t, 4> kOfCupti = {1U << 16, 2U << 16, 3U << 16, 7U << 16};
  const store::Chunks<store::OverheadRow>& overheads = store_->rows.of<store::OverheadRow>();
  for (; overheads_noted_ < overheads.size(); ++overheads_noted_) {
    const store::OverheadRow& row = overheads[overheads_noted_];
    const bool is_of_cupti = std::find(kOfCupti.begin(), kOfCupti.end(), row.overhead_kind) != kOfCupti.end();
    if (is_of_cupti && row.start_ns > 0 && row.end_ns > row.start_ns) overhead_ns_ += row.end_ns - row.start_ns;
  }
  constexpr size_t kLatest = 16;  // rows of a stream that show whether the program launches graphs
  for (auto stream = store_->streams().begin(); stream != store_->streams().end() && !has_graphs_; ++stream) {
    const store::Chunks<store::KernelRow>& kernels = stream->second.rows.of<store::KernelRow>();
    for (size_t row = kernels.size() - std::min(kernels.size(), kLatest); row < kernels.size(); ++row) {
      has_graphs_ = has_graphs_ || kernels[row].graph_id != 0;
    }
  }
}

Spent DecodeThread::spent() const {
  return {clock_ns(CLOCK_THREAD_CPUTIME_ID), overhead_ns_, decoder_->counts().by_kind, has_graphs_};
}

void DecodeThread::keep_budget() {
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (now < budget_.next_check_ns()) return;
  if (const auto lever = budget_.check(now, spent())) leave_out_(*lever);
}

// The program has initialised CUDA before it can cause a record. A killed program's journal needs the names before the
// end. The calls appear in the trace; OwnCalls removes them.
void DecodeThread::name_devices() {
  const DecodeCounts& counts = decoder_->counts();
  if (has_named_devices_ || counts.records == counts.of_flushes) return;
  has_named_devices_ = true;
  calling_thread_id_ = threads::this_thread_id();
  try {
    std::map<std::string, std::string> texts;
    for (const cupti::Device& device : library_->devices()) {
      texts["device." + std::to_string(device.ordinal)] = device.name;
    }
    flusher_.state(texts, {{"own_calls.decode_thread_id", calling_thread_id_}});
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
  }
}

bool DecodeThread::take_from_logs() {
  try {
    const size_t changes = graphs_.move_to(*store_);
    const size_t ranges = ranges_.move_to(*store_, 0);
    state_facts();
    return changes > 0 || ranges > 0 || annotations_.has_changes();
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
    return true;
  }
}

void DecodeThread::write_all_to_journal() {
  take_from_logs();
  write_journal(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

bool DecodeThread::bring_journal_up_to_date(std::vector<HeldBuffer>& held, int64_t deadline_ns, bool cut) {
  {
    const threads::MutexLock lock(facts_mutex_);
    held_.swap(held);
  }
  if (cut) cut_wanted_.store(true);
  const uint64_t update = updates_wanted_.fetch_add(1, std::memory_order_acq_rel) + 1;
  ::sem_post(&wake_);
  const auto is_made = [&] { return updates_made_.load(std::memory_order_acquire) >= update; };
  while (!is_made() && clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
    const timespec pause = timespec_of(kMillisecond / 10);
    ::nanosleep(&pause, nullptr);
  }
  const bool has_all = is_made();
  const threads::MutexLock lock(facts_mutex_);
  held.swap(held_);
  return has_all;
}

void DecodeThread::flush_soon() noexcept {
  flusher_.hasten();
  ::sem_post(&wake_);
}

void DecodeThread::complete_journal() {
  if (!flusher_.has_journal()) return;
  write_journal(cpu_ns_);
  names_version_ = 0;  // numbers that were unknown when an object was named may be known by now
  note_names();
  state_facts();
}

void DecodeThread::note_names() {
  const StatedNames* const names = names_.load(std::memory_order_acquire);
  if (names == nullptr) return;
  const uint64_t version = names->version();
  if (version == 0 || version == names_version_) return;
  names_version_ = version;
  const Names found = names->names();
  note_facts(found.texts, found.numbers);
}

void DecodeThread::note_facts(const std::map<std::string, std::string>& texts,
                              const std::map<std::string, int64_t>& numbers) {
  const threads::MutexLock lock(facts_mutex_);
  for (const auto& [name, text] : texts) noted_texts_[name] = text;
  for (const auto& [name, number] : numbers) noted_numbers_[name] = number;
}

void DecodeThread::state_facts() {
  if (has_named_devices_) note_names();  // from then on its calls are known as the thread's own
  std::map<std::string, std::string> texts;
  std::map<std::string, int64_t> numbers;
  {
    const threads::MutexLock lock(facts_mutex_);
    texts.swap(noted_texts_);
    numbers.swap(noted_numbers_);
  }
  if (!texts.empty() || !numbers.empty()) flusher_.state(texts, numbers);
}

void DecodeThread::write_journal(int64_t cpu_ns) {
  try {
    losses_written_ = losses();
    std::map<std::string, int64_t> so_far = counters();
    so_far["decode_cpu_ns"] = cpu_ns;
    flusher_.append(*store_, annotations_, ranges_.take_open_changes(), so_far);
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
  }
  if (watch_.is_watching()) watch_.notice(*store_);
  if (!forgets_) return;
  store_->clear_rows();  // also those that a broken journal does not have: nothing else reads them
  overheads_noted_ = 0;
  flusher_.forget_rows();
  if (store_->strings.num_bytes() <= kMostNameBytes) return;
  try {
    flusher_.forget_names(*store_);
  } catch (const std::bad_alloc&) {
    flusher_.give_up("out of memory");
  }
}

std::map<std::string, int64_t> DecodeThread::counters() const {
  const BufferPool* const pool = pools_.current();
  const DecodeCounts& decoded = decoder_->counts();
  std::map<std::string, int64_t> found = budget_.counters();
  const std::map<std::string, int64_t> counts = {
      {"buffers_requested", static_cast<int64_t>(pool->requested())},
      {"buffers_completed", static_cast<int64_t>(pool->completed())},
      {"bytes_completed", static_cast<int64_t>(pool->completed_bytes())},
      {"bytes_mapped", static_cast<int64_t>(pool->mapped_bytes())},
      {"bytes_unparsed", static_cast<int64_t>(decoded.bytes_unparsed + out_of_memory_bytes_)},
      {"buffers_from_earlier_sessions", static_cast<int64_t>(late_buffers_)},
      {"records_decoded", static_cast<int64_t>(decoded.records)},
      {"records_unknown_kind", static_cast<int64_t>(decoded.unknown_kinds)},
      {"callback_calls", static_cast<int64_t>(pool->requested() + pool->completed())},
  };
  found.insert(counts.begin(), counts.end());
  found.merge(losses());
  return found;
}

std::map<std::string, int64_t> DecodeThread::losses() const {
  const BufferPool* const pool = pools_.current();
  std::map<std::string, int64_t> found = {
      {"buffers_declined", static_cast<int64_t>(pool->declined())},
      {"bytes_discarded", static_cast<int64_t>(pool->discarded_bytes() + foreign_bytes_lost_.load())},
      {"records_dropped", static_cast<int64_t>(flusher_.records_dropped())},
  };
  const std::pair<const char*, uint64_t> of_names[] = {
      {"graph_changes_lost", graphs_.lost()},
      {"nvtx_ranges_lost", ranges_.lost()},
      {"nvtx_ranges_suspended", ranges_.suspended()},
      {"annotation_ends_lost", annotations_.ends_lost()},
      {"names_cut", annotations_.names_cut() + ranges_.names_cut()},
      {"ranges_without_name", annotations_.ranges_without_name() + ranges_.without_texts()},
  };
  for (const auto& [name, count] : of_names) {
    if (count > 0) found[name] = static_cast<int64_t>(count);
  }
  return found;
}

}  // namespace collector::capture
