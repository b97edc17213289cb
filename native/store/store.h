// The decoded rows of a session until it ends: one list per kind and, for the work of a device, per stream.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "kinds/generated/kinds.h"
#include "store/blocks.h"
#include "store/lists.h"
#include "store/string_table.h"

namespace collector::store {

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
  Stream(StreamKey stream_key, Blocks& blocks) : key(stream_key), rows(blocks) {}

  StreamKey key;
  Lists<StreamRows> rows;
};

// Not thread-safe: the decode thread writes it; it is read after that thread has stopped.
class Store {
 private:
  Blocks blocks_;  // first member, because it must outlive the lists

 public:
  // Keeps at most `stock_bytes` of memory for the next session when it is cleared.
  explicit Store(size_t stock_bytes = Blocks::kStockBytes) : blocks_(stock_bytes) {}

  // A new row with uninitialised values: of the work on a stream, or of the session.
  template <typename Row>
  Row& append(StreamKey key) {
    return stream(key).rows.template of<Row>().append();
  }
  template <typename Row>
  Row& append() {
    return rows.template of<Row>().append();
  }

  // The same, and the row appears once `fill` has filled it without throwing.
  template <typename Row, typename Fill>
  void add(StreamKey key, const Fill& fill) {
    stream(key).rows.template of<Row>().add(fill);
  }
  template <typename Row, typename Fill>
  void add(const Fill& fill) {
    rows.template of<Row>().add(fill);
  }

  // Streams by (device, context, stream).
  const std::map<StreamKey, Stream>& streams() const { return streams_; }
  std::map<StreamKey, Stream>& streams() { return streams_; }

  // Sorts the rows of each list in place, in the order of collector.recording's tables, which then need no sorted copy.
  // CUPTI completes its buffers in any order, and so do the per-thread buffers.
  void sort();

  // Removes all rows and streams: a program may create new streams for each step. Names stay, because those of kernels
  // come again.
  void clear_rows();

  // Removes all rows, streams and names.
  void clear();

  Lists<SessionRows> rows{blocks_};  // the rows that belong to no stream
  StringTable strings;

 private:
  Stream& stream(StreamKey key) {
    if (last_ != nullptr && last_->key == key) return *last_;
    return find_stream(key);
  }
  Stream& find_stream(StreamKey key);

  std::map<StreamKey, Stream> streams_;
  Stream* last_ = nullptr;
};

}  // namespace collector::store
