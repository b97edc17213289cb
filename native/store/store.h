// Where decoded rows wait until the session ends: chunks that grow without moving, one chain per stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "store/rows.h"
#include "store/string_table.h"

namespace collector::store {

// A list that never moves its rows. Growth, not decoding, is what storing costs (cold memory is 3 times slower),
// so chunks are kept and used again by the next session.
template <typename Row>
class Chunks {
 public:
  static constexpr size_t kRows = 4096;

  Row& append() {
    if (used_ == chunks_.size() * kRows) chunks_.push_back(std::make_unique<Row[]>(kRows));
    Row& row = chunks_[used_ / kRows][used_ % kRows];
    ++used_;
    return row;
  }

  size_t size() const { return used_; }
  bool empty() const { return used_ == 0; }
  Row& operator[](size_t i) { return chunks_[i / kRows][i % kRows]; }
  const Row& operator[](size_t i) const { return chunks_[i / kRows][i % kRows]; }

  // The rows from `first` on that lie together in memory.
  const Row* run(size_t first, size_t& count) const {
    const size_t skipped = first % kRows;
    count = used_ - first < kRows - skipped ? used_ - first : kRows - skipped;
    return chunks_[first / kRows].get() + skipped;
  }

  // Forgets the rows but keeps their memory, up to a limit: one huge session must not pin its size for good.
  void clear() {
    constexpr size_t kKeep = 64;
    if (chunks_.size() > kKeep) chunks_.resize(kKeep);
    used_ = 0;
  }

 private:
  std::vector<std::unique_ptr<Row[]>> chunks_;
  size_t used_ = 0;
};

struct StreamKey {
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  bool operator<(const StreamKey& other) const {
    return std::tie(device_id, context_id, stream_id) < std::tie(other.device_id, other.context_id, other.stream_id);
  }
  bool operator==(const StreamKey& other) const {
    return device_id == other.device_id && context_id == other.context_id && stream_id == other.stream_id;
  }
};

struct Stream {
  StreamKey key;
  Chunks<KernelRow> kernels;
  Chunks<MemcpyRow> memcpys;
  Chunks<MemsetRow> memsets;
};

// Not thread-safe: written by the decode thread, read after it has stopped.
class Store {
 public:
  Stream& stream(StreamKey key) {
    if (last_ != nullptr && last_->key == key) return *last_;
    return find_stream(key);
  }

  // Streams by (device, context, stream).
  const std::map<StreamKey, Stream>& streams() const { return streams_; }

  // Puts each stream's rows into time order: CUPTI's buffers, and threads' buffers among them, come in any.
  void sort();

  void clear();

  Chunks<ApiCallRow> api_calls;
  Chunks<ExternalCorrelationRow> external_correlations;
  Chunks<SynchronizationRow> synchronizations;
  Chunks<OverheadRow> overheads;
  Chunks<MemoryOperationRow> memory_operations;
  StringTable strings;

 private:
  Stream& find_stream(StreamKey key);

  std::map<StreamKey, Stream> streams_;
  Stream* last_ = nullptr;
};

}  // namespace collector::store
