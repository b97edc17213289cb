// The one CUPTI client of this process: from "start tracing" to decoded rows.
//
// Threads, and what each may do:
//  * CUPTI's callbacks (any thread, CUPTI's lock held): BufferPool::acquire and ::complete, one sem_post. Nothing
//    else: no allocation, no lock, no CUDA, no CUPTI, no Python. A client lock here, also held around a CUPTI call
//    elsewhere, is the deadlock that Kineto's and PyTorch's trackers describe (pytorch#186295).
//  * the decode thread: takes completed buffers, decodes, zeroes and recycles them. Holds no lock. With a journal it
//    also flushes CUPTI now and then, under flushing_, which no callback takes.
//  * start, stop, abort: serialised by control_, which is held around CUPTI calls and never taken in a callback.
//  * push_annotation, pop_annotation: any thread of the program; AnnotationLog's lock only.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "capture/annotations.h"
#include "capture/buffer_pools.h"
#include "capture/decoder.h"
#include "capture/journal.h"
#include "cupti/fork.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

struct StartOptions {
  cupti::LibraryPaths paths;
  std::vector<cupti::ActivityKind> kinds;  // enabled in this order
  size_t buffer_bytes = size_t{4} << 20;
  uint32_t max_buffers = 256;
  // Collect also when another client of this process holds the subscription. Kineto takes it at its first use and
  // never gives it back; while it is idle, activity records can still be collected beside it.
  bool share_subscription = false;
  // A file to keep a Journal in; empty: none.
  std::string journal;
};

// One instant on both clocks.
struct Anchor {
  int64_t cupti_ns;
  int64_t wall_ns;         // CLOCK_REALTIME
  int64_t uncertainty_ns;  // the wall time was within this of the CUPTI time
};

// A finished session. The store is the subscriber's: valid until the next start.
struct Capture {
  const cupti::Library* library;
  store::Store* store;
  std::vector<store::AnnotationRow> annotations;
  std::vector<std::string> annotation_paths;
  Anchor start;
  Anchor stop;
  std::map<std::string, int64_t> counters;
  std::vector<cupti::Device> devices;
  bool shared_subscription;
  // API calls by this thread from this time on are the collector's own (its synchronisation), not the program's.
  uint32_t own_thread_id;
  int64_t own_calls_from_ns;
};

class Subscriber {
 public:
  // Created at the first call, never destroyed: CUPTI may call back until the process ends.
  static Subscriber& instance();

  std::optional<cupti::Failure> start(const StartOptions& options);

  // Ends the session; nothing when none is open. `synchronize` waits for the GPU first, so that work launched in
  // the session is recorded. Waits at most `timeout_ns` for CUPTI to give its buffers back.
  std::optional<Capture> stop(bool synchronize, int64_t timeout_ns);

  // Ends the session and forgets it, without waiting for the GPU. For interpreter exit.
  void abort();

  bool active() const { return collecting_.load(std::memory_order_acquire) && !cupti::forked_after_use(); }
  // Whether a session is open and CUPTI has not asked for a buffer in it: nothing has happened.
  bool idle() const { return active() && pools_.current()->requested() == 0; }

  // Puts `path` on every launch of this thread until the matching pop. No effect while no session is open.
  void push_annotation(std::string_view path, uint32_t details_id = 0);
  void pop_annotation();

  // The metadata of annotations, in the order of their numbers; kept for the journal alone.
  void note_details(std::string_view details);

  // What went wrong with the journal of the last session; empty: nothing, or there is none. Not while one is open.
  std::string journal_trouble();
  // Takes the last session's journal away.
  void remove_journal();

 private:
  // Buffers of another client that the library may hold when its callbacks are replaced by ours.
  static constexpr size_t kForeignBuffers = 256;

  Subscriber();

  static void on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept;
  static void on_buffer_completed(void* context, uint32_t stream, uint8_t* data, size_t bytes, size_t valid) noexcept;

  std::optional<cupti::Failure> start_tracing(const StartOptions& options);
  void roll_back();
  void prepare_buffers(const StartOptions& options);
  void begin_journal(const std::string& path);
  const cupti::Library& library() const { return *library_.load(std::memory_order_acquire); }
  void set_attributes();
  std::optional<cupti::Failure> subscribe(bool share);
  std::optional<cupti::Failure> enable(const std::vector<cupti::ActivityKind>& kinds);
  void disable_enabled();
  void leave_out_noisy_calls();
  void unsubscribe();
  void start_decoding();
  void stop_decoding();
  void decode_loop();
  void wait_for_buffers();
  void drain();
  void decode(const CompletedBuffer& buffer);
  void hand_over();
  void end_collecting();
  std::map<std::string, int64_t> counters() const;
  void synchronize_contexts() const;
  void flush(uint32_t forced, int64_t deadline_ns);
  std::optional<Anchor> read_clocks() const;

  std::mutex control_;
  std::atomic<bool> collecting_{false};
  std::atomic<bool> accepting_{false};  // callbacks hand out buffers
  std::atomic<bool> may_decline_{false};
  BufferPools& pools_ = *new BufferPools();
  std::atomic<uint32_t> session_{0};  // the number of the open or the last session; buffers carry it
  BoundedQueue<CompletedBuffer> foreign_buffers_{kForeignBuffers};
  std::atomic<uint64_t> foreign_bytes_lost_{0};
  uint64_t late_buffers_ = 0;  // given back between the last session and this one
  sem_t wake_;

  std::atomic<const cupti::Library*> library_{nullptr};
  std::vector<std::shared_ptr<const cupti::Library>> libraries_;  // never shrinks: an annotation may be using any
  void* subscription_ = nullptr;
  bool shared_subscription_ = false;
  std::vector<cupti::ActivityKind> enabled_;
  const cupti::Library* kernels_left_on_ = nullptr;  // see disable_enabled
  Anchor start_{};

  store::Store store_;
  std::optional<Decoder> decoder_;
  std::thread decode_thread_;
  std::atomic<bool> decoding_{false};
  int64_t decode_cpu_ns_ = 0;
  uint64_t out_of_memory_bytes_ = 0;
  std::unique_ptr<Journal> journal_;  // the decode thread's, while there is one
  int64_t next_hand_over_ns_ = 0;
  std::mutex flushing_;

  AnnotationLog annotations_;
};

}  // namespace collector::capture
