// CUPTI's buffers -> rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

// What the decoder alone knows; part of the ledger.
struct DecodeCounts {
  uint64_t records = 0;         // every record stepped over
  uint64_t unknown_kinds = 0;   // ... of them, of kinds nobody asked for: stepped over, not kept
  uint64_t bytes_unparsed = 0;  // buffer tails given up: the library refused to step, or the record was cut
};

// Reads completed buffers into a store. Not thread-safe; no locks, no CUDA; the only CUPTI call it makes is
// GetNextRecord, for kinds whose stride is not known.
class Decoder {
 public:
  Decoder(const cupti::Library& library, store::Store& store);

  // `data` must be 8-aligned and readable for `valid` bytes. Pointers in the records (kernel names) must still
  // be alive: call it as soon as the buffer completes.
  void decode(uint8_t* data, size_t valid);

  const DecodeCounts& counts() const { return counts_; }

 private:
  // Bytes to the record after `record`; 0 ends this buffer.
  size_t step(uint8_t* data, size_t at, size_t valid, uint32_t kind);

  const cupti::Library& library_;
  store::Store& store_;
  DecodeCounts counts_;
  int cuda_;
  uint32_t strides_[64] = {};
};

}  // namespace collector::capture
