#include "capture/decoder.h"

#include <iterator>

#include "kinds/generated/kinds.h"

namespace collector::capture {
namespace {

using cupti::ActivityKind;

constexpr uint32_t kSmallestRecord = 16;

// The times of records in nanoseconds: those of CUPTI's own clock, and those of a callback that counts ticks.
struct Nanoseconds {
  int64_t operator()(uint64_t time) const { return static_cast<int64_t>(time); }
};
struct Ticks {
  const cupti::TickScale& scale;
  int64_t operator()(uint64_t time) const { return scale.ns(time); }
};

}  // namespace

Decoder::Decoder(const cupti::Library& library, store::Store& store, uint64_t first_annotation)
    : library_(library), store_(store), first_annotation_(first_annotation), cuda_(library.cuda_version()) {
  for (uint32_t kind = 0; kind < std::size(strides_); ++kind) {
    strides_[kind] = library_.stride(static_cast<ActivityKind>(kind));
  }
}

void Decoder::decode(uint8_t* data, size_t valid) {
  if (const size_t records = records_of_flush(data, valid); records != 0) {
    counts_.records += records;
    counts_.of_flushes += records;
    counts_.by_kind[static_cast<uint32_t>(ActivityKind::kOverhead)] += records;
    return;
  }
  if (const cupti::TickScale* const scale = library_.clock().scale()) {
    decode(data, valid, Ticks{*scale});
  } else {
    decode(data, valid, Nanoseconds{});
  }
}

template <typename Times>
void Decoder::decode(uint8_t* data, size_t valid, const Times& times) {
  constexpr uint32_t kKernel = static_cast<uint32_t>(ActivityKind::kConcurrentKernel);
  const size_t kernel_stride = strides_[kKernel];
  store_.strings.next_buffer();
  size_t at = 0;
  while (valid - at >= kSmallestRecord) {
    uint32_t kind = *reinterpret_cast<const uint32_t*>(data + at);
    // Kernels come in long runs, which this inner loop reads without looking up the stride again.
    const size_t run = at;
    while (kind == kKernel && kernel_stride != 0 && valid - at >= kernel_stride) {
      __builtin_prefetch(data + at + 4 * kernel_stride);
      decode_record(kKernel, data + at, cuda_, times, store_);
      ++counts_.records;
      at += kernel_stride;
      if (valid - at < kSmallestRecord) break;
      kind = *reinterpret_cast<const uint32_t*>(data + at);
    }
    if (at != run) counts_.by_kind[kKernel] += (at - run) / kernel_stride;
    if (valid - at < kSmallestRecord) break;
    const size_t stride = kind < std::size(strides_) ? strides_[kind] : 0;
    const size_t bytes = stride != 0 ? stride : ask_for_stride(data + at, valid - at);
    if (bytes == 0 || valid - at < bytes) break;
    if (!is_of_earlier_session(kind, data + at) && !decode_record(kind, data + at, cuda_, times, store_)) {
      ++counts_.unknown_kinds;
    }
    if (kind < counts_.by_kind.size()) ++counts_.by_kind[kind];
    ++counts_.records;
    at += bytes;
  }
  counts_.bytes_unparsed += valid - at;
}

size_t Decoder::records_of_flush(const uint8_t* data, size_t valid) const {
  constexpr auto kOverhead = static_cast<uint32_t>(ActivityKind::kOverhead);
  const size_t stride = strides_[kOverhead];
  if (stride == 0 || valid % stride != 0) return 0;
  bool has_flush = false;
  for (size_t at = 0; at < valid; at += stride) {
    const auto& overhead = *reinterpret_cast<const cupti::Overhead*>(data + at);
    if (overhead.kind != kOverhead) return 0;
    const auto kind = static_cast<cupti::OverheadKind>(overhead.overheadKind);
    if (kind != cupti::OverheadKind::kCuptiBufferFlush && kind != cupti::OverheadKind::kActivityBufferRequest) {
      return 0;
    }
    has_flush = has_flush || kind == cupti::OverheadKind::kCuptiBufferFlush;
  }
  return has_flush ? valid / stride : 0;
}

bool Decoder::is_of_earlier_session(uint32_t kind, const uint8_t* record) const {
  if (kind != static_cast<uint32_t>(ActivityKind::kExternalCorrelation)) return false;
  const auto& link = *reinterpret_cast<const cupti::ExternalCorrelation*>(record);
  return link.externalKind == static_cast<uint32_t>(cupti::ExternalCorrelationKind::kCustom2) &&
         link.externalId < first_annotation_;
}

size_t Decoder::ask_for_stride(uint8_t* rest, size_t num_bytes) {
  const cupti::ActivityApi& api = library_.activity_api();
  // GetNextRecord checks the record that it returns, not its argument. The remaining bytes are therefore walked from
  // their start: once to accept this record and once to find the next one.
  uint8_t* record = nullptr;
  if (api.next_record(rest, num_bytes, &record) != cupti::Result::kSuccess || record != rest) return 0;
  const cupti::Result result = api.next_record(rest, num_bytes, &record);
  if (result == cupti::Result::kMaxLimitReached) return num_bytes;  // this was the last record
  if (result != cupti::Result::kSuccess || record <= rest) return 0;
  return static_cast<size_t>(record - rest);
}

}  // namespace collector::capture
