// Where decoded rows wait until the session ends: one list for each kind and, of a device's work, for each stream.
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

// Not thread-safe: written by the decode thread, read after it has stopped.
class Store {
 private:
  Blocks blocks_;  // first, as it must outlive the lists

 public:
  // Keeps at most `stock_bytes` for the next session once it is cleared.
  explicit Store(size_t stock_bytes = Blocks::kStockBytes) : blocks_(stock_bytes) {}

  // A new row, whose values are not defined: of work on a stream, or of the session.
  template <typename Row>
  Row& append(StreamKey key) {
    return stream(key).rows.template of<Row>().append();
  }
  template <typename Row>
  Row& append() {
    return rows.template of<Row>().append();
  }

  // Streams by (device, context, stream).
  const std::map<StreamKey, Stream>& streams() const { return streams_; }
  std::map<StreamKey, Stream>& streams() { return streams_; }

  // Puts the rows of each list into the order that collector.recording gives a table, which then need not make a
  // sorted copy. CUPTI's buffers, and threads' buffers among them, come in any order. Works in place.
  void sort();

  // Forgets everything, the streams as well: a program may make new ones for each step.
  void clear();

  Lists<SessionRows> rows{blocks_};  // those that are on no stream
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
