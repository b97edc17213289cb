// Decodes CUPTI's buffers into rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/budget.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

// The counts that only the decoder knows; part of the ledger.
struct DecodeCounts {
  uint64_t records = 0;         // all records that were stepped over
  uint64_t unknown_kinds = 0;   // ... of them, of kinds that were not enabled: stepped over, not kept
  uint64_t of_flushes = 0;      // ... of them, overheads of flushes in buffers of their own: not kept
  uint64_t bytes_unparsed = 0;  // ends of buffers given up: the library could not step, or the record was truncated
  KindCounts by_kind{};         // of the records
};

// Decodes completed buffers into a store. Not thread-safe. Takes no lock and calls no CUDA function; its only CUPTI
// call is GetNextRecord, for kinds whose stride is unknown.
class Decoder {
 public:
  // `first_annotation`: annotations with smaller ids are of earlier sessions. They may be open still, and name nothing.
  Decoder(const cupti::Library& library, store::Store& store, uint64_t first_annotation = 0);

  // `data` must be 8-aligned and readable for `valid` bytes. Pointers in the records (kernel names) must still be
  // valid: call this as soon as the buffer completes.
  void decode(uint8_t* data, size_t valid);

  const DecodeCounts& counts() const { return counts_; }

 private:
  template <typename Times>
  void decode(uint8_t* data, size_t valid, const Times& times);
  // The number of records in a buffer that has nothing but overheads of a flush, as on an H100 after each flush of
  // ours; 0: it has others. They delay no thread of the program, and would fill the journal of one that does nothing.
  size_t records_of_flush(const uint8_t* data, size_t valid) const;
  bool is_of_earlier_session(uint32_t kind, const uint8_t* record) const;
  // The bytes from a record of unknown stride, at the start of `rest`, to the next; 0 ends the buffer.
  size_t ask_for_stride(uint8_t* rest, size_t num_bytes);

  const cupti::Library& library_;
  store::Store& store_;
  const uint64_t first_annotation_;
  DecodeCounts counts_;
  int cuda_;
  uint32_t strides_[64] = {};
};

}  // namespace collector::capture
