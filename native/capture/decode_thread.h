// The thread that turns completed buffers into rows: takes them from the pools, decodes, zeroes and recycles them.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "capture/annotations.h"
#include "capture/buffer_pools.h"
#include "capture/decoder.h"
#include "capture/journal_flusher.h"
#include "capture/queues.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

// It holds no lock while it decodes. Everything but `complete` is called by one thread at a time, the session's. Never
// destroyed: CUPTI may complete a buffer until the process ends.
class DecodeThread {
 public:
  DecodeThread(BufferPools& pools, AnnotationLog& annotations, JournalFlusher& flusher);
  DecodeThread(const DecodeThread&) = delete;
  DecodeThread& operator=(const DecodeThread&) = delete;

  // Called by CUPTI, with its lock held: takes a buffer back, and wakes the thread.
  void complete(uint8_t* data, size_t valid) noexcept;

  // Makes a pool of these buffers the current one, and forgets what came back since the last session.
  // Throws std::bad_alloc.
  void prepare(size_t buffer_bytes, uint32_t max_buffers);

  // Begins with an empty store. Throws std::system_error where there is no thread to be had.
  void start(const cupti::Library& library);
  // Decodes what has come back, and ends the thread.
  void stop();

  // The rows; the thread's, while it runs.
  store::Store& store() { return store_; }

  // Figures of buffers and records for the ledger, by name. Called by the thread itself while it runs.
  std::map<std::string, int64_t> counters() const;
  // CPU time that the thread took, once it has ended.
  int64_t cpu_ns() const { return cpu_ns_; }

 private:
  // Buffers of another client that the library may hold when its callbacks are replaced by ours.
  static constexpr size_t kForeignBuffers = 256;

  void run();
  void wait_for_buffers();
  void drain();
  void decode(const CompletedBuffer& buffer);

  BufferPools& pools_;
  AnnotationLog& annotations_;
  JournalFlusher& flusher_;
  sem_t wake_;
  BoundedQueue<CompletedBuffer> foreign_buffers_{kForeignBuffers};
  std::atomic<uint64_t> foreign_bytes_lost_{0};
  std::atomic<bool> running_{false};
  std::thread thread_;

  store::Store store_;
  std::optional<Decoder> decoder_;
  uint64_t late_buffers_ = 0;  // given back between the last session and this one
  uint64_t out_of_memory_bytes_ = 0;
  int64_t cpu_ns_ = 0;
};

}  // namespace collector::capture
