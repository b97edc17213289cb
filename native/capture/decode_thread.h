// The thread that turns completed buffers into rows: it takes them from the pools, decodes, zeroes and recycles them.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "capture/annotations.h"
#include "capture/budget.h"
#include "capture/buffer_pools.h"
#include "capture/decoder.h"
#include "capture/graph_log.h"
#include "capture/journal_flusher.h"
#include "capture/launch_watch.h"
#include "capture/queues.h"
#include "capture/range_log.h"
#include "capture/stated_names.h"
#include "cupti/library.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// The thread holds no lock while it decodes. All functions except `complete` are called by one thread at a time, that
// of the session. Never destroyed: CUPTI may complete a buffer until the process ends.
class DecodeThread {
 public:
  // Leaves out the kinds of a lever; false: not now.
  using LeaveOut = bool (*)(Lever lever);

  DecodeThread(BufferPools& pools, AnnotationLog& annotations, GraphLog& graphs, RangeLog& ranges,
               JournalFlusher& flusher, Budget& budget, LeaveOut leave_out);
  DecodeThread(const DecodeThread&) = delete;
  DecodeThread& operator=(const DecodeThread&) = delete;

  // Called by CUPTI while it holds its lock: takes a buffer back and wakes the thread.
  void complete(uint8_t* data, size_t valid) noexcept;

  // Makes the pool with these options the current one, and drops the buffers that came back since the last session.
  // Throws std::bad_alloc.
  void prepare(size_t buffer_bytes, uint32_t max_buffers);

  // Whether rows are removed from memory once the journal has them. Set before the start.
  void forget_written_rows(bool forget) { forgets_ = forget; }

  // Starts with an empty store. Throws std::system_error if no thread can be created.
  void start(const cupti::Library& library);
  // Decodes the buffers that have come back, and ends the thread.
  void stop();

  // The rows. They belong to the thread while it runs. There are none before the first start, and once they were lent.
  store::Store& store() { return *store_; }
  // Removes the rows.
  void forget_rows();

  // The rows of a session that has ended, for a reader on any thread; the next session may begin meanwhile, with
  // another store. A store that comes back is kept for the next session, together with its stock of memory, instead of
  // one that came back before.
  struct GiveBack {
    DecodeThread* thread;
    void operator()(store::Store* store) const noexcept;
  };
  using LentStore = std::unique_ptr<store::Store, GiveBack>;
  LentStore lend_store() noexcept;

  // The counts of buffers and records for the ledger, by name. While the thread runs, only the thread itself calls
  // this.
  std::map<std::string, int64_t> counters() const;
  // Those among them that count losses of which nothing was decoded. Any thread may call it.
  std::map<std::string, int64_t> losses() const;
  // Writes the rows that the journal lacks; does nothing without one. Called by the session after the thread has ended.
  void complete_journal();
  // Has the thread decode what has come back and write all rows that the journal lacks; waits for it until the
  // deadline. Returns whether it has. `held` becomes those of the buffers whose rows the journal does not have, as they
  // have not come back. `cut`: and begin a new segment, so that what is written is in closed ones.
  bool bring_journal_up_to_date(std::vector<HeldBuffer>& held, int64_t deadline_ns, bool cut = false)
      EXCLUDES(facts_mutex_);

  // Has the thread flush the library now, as it does periodically. Any thread may call it.
  void flush_soon() noexcept;

  // Has the thread state facts in the journal, with the next rows. Any thread may call it.
  void note_facts(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers)
      EXCLUDES(facts_mutex_);

  // Names that the thread states in journals; they must outlive it. Any thread may call it.
  void set_stated_names(const StatedNames* names) { names_.store(names, std::memory_order_release); }

  // CPU time of the thread, available after it has ended.
  int64_t cpu_ns() const { return cpu_ns_; }

  // The thread if it made API calls of its own, else 0. Available after it has ended.
  uint32_t calling_thread_id() const { return calling_thread_id_; }

  // The observations of LaunchWatch, if the session is watched.
  LaunchWatch& watch() { return watch_; }

 private:
  // The maximum number of another client's buffers that the library may hold when our callbacks replace that client's.
  static constexpr size_t kForeignBuffers = 256;

  void run();
  void wait_for_buffers();
  void work();
  // What bring_journal_up_to_date asks for.
  void update_journal() EXCLUDES(facts_mutex_);
  void drain();
  void keep_budget();
  Spent spent() const;
  void note_costs();
  void decode(const CompletedBuffer& buffer);
  void name_devices();
  void state_facts() EXCLUDES(facts_mutex_);
  void note_names() EXCLUDES(facts_mutex_);
  void write_journal(int64_t cpu_ns);
  // Brings what the program and CUPTI's callbacks have noted into the store and the journal; returns whether there was
  // anything that the journal lacks.
  bool take_from_logs();
  void write_all_to_journal();
  // Begins a new segment if one is due, in a session that forgets its rows.
  void cut_journal_if_due();
  // Begins a new segment, in such a session. `num_held`: of the buffers whose rows this one does not have.
  void cut_journal(size_t num_held);

  BufferPools& pools_;
  AnnotationLog& annotations_;
  GraphLog& graphs_;
  RangeLog& ranges_;
  JournalFlusher& flusher_;
  Budget& budget_;
  const LeaveOut leave_out_;
  sem_t wake_;
  BoundedQueue<CompletedBuffer> foreign_buffers_{kForeignBuffers};
  std::atomic<uint64_t> foreign_bytes_lost_{0};
  std::atomic<bool> running_{false};
  std::atomic<uint64_t> updates_wanted_{0};  // of the journal, by bring_journal_up_to_date
  std::atomic<uint64_t> updates_made_{0};
  std::atomic<bool> cut_wanted_{false};
  threads::Mutex facts_mutex_;  // never taken in a CUPTI callback
  std::map<std::string, std::string> noted_texts_ GUARDED_BY(facts_mutex_);
  std::map<std::string, int64_t> noted_numbers_ GUARDED_BY(facts_mutex_);
  std::vector<HeldBuffer> held_ GUARDED_BY(facts_mutex_);  // of bring_journal_up_to_date
  std::atomic<const StatedNames*> names_{nullptr};
  uint64_t names_version_ = 0;  // of the names that the journal has
  bool forgets_ = false;
  std::thread thread_;

  std::unique_ptr<store::Store> store_;
  std::atomic<store::Store*> spare_store_{nullptr};
  std::optional<Decoder> decoder_;
  const cupti::Library* library_ = nullptr;
  LaunchWatch watch_;
  bool has_named_devices_ = false;
  uint32_t calling_thread_id_ = 0;
  uint64_t late_buffers_ = 0;  // returned between the last session and this one
  uint64_t out_of_memory_bytes_ = 0;
  int64_t overhead_ns_ = 0;                        // that CUPTI recorded of itself
  size_t overheads_noted_ = 0;                     // rows of the store that are in it
  std::map<std::string, int64_t> losses_written_;  // to the journal
  bool has_graphs_ = false;
  int64_t cpu_ns_ = 0;
};

}  // namespace collector::capture
