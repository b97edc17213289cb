// The contexts and streams of the simulated machine, and CUPTI's records of objects that are created once.
#include <cstring>

#include "simulator/device_limits.h"
#include "simulator/simulator.h"

namespace collector::simulator {
namespace {

using cupti::ActivityKind;

// The driver makes this many streams with each context. The second is the default stream; the others are its own, with
// numbers far from those of programs' streams.
constexpr uint32_t kDriverStreams = 8;
constexpr uint32_t kDefaultStream = 1;
constexpr uint32_t kFirstDriverStream = 0xF000'0000;
constexpr int8_t kDriverPriority = -5;  // of one of them

store::ContextRow row_of(const Context& context, pid_t pid) {
  store::ContextRow row{};
  row.device_id = context.device;
  row.context_id = context.id;
  row.compute_api = static_cast<uint8_t>(cupti::ComputeApi::kCuda);
  row.null_stream_id = kNullStream;
  row.num_multiprocessors = kMultiprocessors;
  row.process_id = static_cast<uint32_t>(pid);
  return row;
}

store::StreamObjectRow row_of(uint32_t context_id, uint32_t stream_id) {
  store::StreamObjectRow row{};
  row.context_id = context_id;
  row.stream_id = stream_id;
  row.priority = static_cast<int8_t>(stream_priority(stream_id));
  row.stream_flag =
      static_cast<uint8_t>(stream_id == kNullStream ? cupti::StreamFlag::kNull : cupti::StreamFlag::kNonBlocking);
  return row;
}

store::StreamObjectRow row_of_driver_stream(uint32_t context_id, uint32_t number) {
  if (number == kDefaultStream) return row_of(context_id, kNullStream);
  const bool is_last = number + 1 == kDriverStreams;
  store::StreamObjectRow row{};
  row.context_id = context_id;
  row.stream_id = kFirstDriverStream + context_id * kDriverStreams + number;
  row.priority = is_last ? kDriverPriority : int8_t{0};
  row.stream_flag =
      static_cast<uint8_t>(number == 0 || is_last ? cupti::StreamFlag::kDefault : cupti::StreamFlag::kNonBlocking);
  return row;
}

store::DeviceRow row_of_device(uint32_t device) {
  store::DeviceRow row{};
  row.device_id = device;
  row.memory_kilobytes_per_s = 3'350'000'000;
  row.memory_bytes = kDeviceBytes;
  row.constant_bytes = 64U << 10;
  row.l2_bytes = 50U << 20;
  row.threads_per_warp = kThreadsPerWarp;
  row.core_clock_khz = kClockKhz;
  row.num_copy_engines = 3;
  row.num_multiprocessors = kMultiprocessors;
  row.max_ipc = 4;
  row.max_warps_per_multiprocessor = 64;
  row.max_blocks_per_multiprocessor = 32;
  row.max_shared_bytes_per_multiprocessor = 228U << 10;
  row.max_registers_per_multiprocessor = row.max_registers_per_block = 64U << 10;
  row.max_shared_bytes_per_block = 48U << 10;
  row.max_threads_per_block = row.max_block_x = row.max_block_y = kThreadsPerBlock;
  row.max_block_z = 64;
  row.max_grid_x = 0x7FFFFFFF;
  row.max_grid_y = row.max_grid_z = 0xFFFF;
  row.compute_major = kComputeMajor;
  row.compute_minor = kComputeMinor;
  row.is_ecc_enabled = row.is_cuda_visible = 1;
  row.gpu_instance_id = row.compute_instance_id = 0xFFFFFFFF;
  row.num_tpcs = kMultiprocessors / 2;
  return row;
}

}  // namespace

int32_t stream_priority(uint32_t stream_id) { return stream_id == kNullStream ? 0 : -1; }

Context* Simulator::context(uint32_t id) {
  const threads::MutexLock lock(device_mutex_);
  return id >= 1 && id <= contexts_.size() ? contexts_[id - 1].get() : nullptr;
}

Context* Simulator::primary_context(uint32_t device) {
  return device < static_cast<uint32_t>(config.devices) ? context(device + 1) : nullptr;
}

bool Simulator::used(uint32_t device) {
  if (memory.touched(device)) return true;
  const threads::MutexLock lock(device_mutex_);
  for (const auto& [context_id, stream_id] : streams_) {
    if (contexts_[context_id - 1]->device == device) return true;
  }
  return false;
}

uint32_t Simulator::create_context(uint32_t device) {
  const Context* made = nullptr;
  {
    const threads::MutexLock lock(device_mutex_);
    contexts_.push_back(std::make_unique<Context>(Context{static_cast<uint32_t>(contexts_.size() + 1), device}));
    made = contexts_.back().get();
  }
  if (enabled(ActivityKind::kContext)) write(record_of<cupti::Context>(row_of(*made, pid)), buffer_of(thread()));
  // A device's first context is created when it is first used.
  if (made->id != made->device + 1 && enabled(ActivityKind::kStream)) write_driver_streams(made->id);
  return made->id;
}

void Simulator::use_stream(uint32_t context_id, uint32_t stream_id) {
  const Context& context = *this->context(context_id);
  bool makes_stream = false;
  bool makes_context = false;  // a device's first context is created when it is first used
  {
    const threads::MutexLock lock(device_mutex_);
    const auto first = streams_.lower_bound({context_id, 0});
    makes_context = context.id == context.device + 1 && (first == streams_.end() || first->first != context_id);
    makes_stream = streams_.emplace(context_id, stream_id).second;
  }
  if (makes_context && enabled(ActivityKind::kContext)) {
    write(record_of<cupti::Context>(row_of(context, pid)), buffer_of(thread()));
  }
  if (makes_context && enabled(ActivityKind::kStream)) write_driver_streams(context_id);
  if (makes_stream && stream_id != kNullStream && enabled(ActivityKind::kStream)) {
    write(record_of<cupti::Stream>(row_of(context_id, stream_id)), buffer_of(thread()));
  }
}

void Simulator::write_driver_streams(uint32_t context_id) {
  for (uint32_t number = 0; number < kDriverStreams; ++number) {
    write(record_of<cupti::Stream>(row_of_driver_stream(context_id, number)), buffer_of(thread()));
  }
}

void Simulator::dump(ActivityKind kind) {
  std::vector<const Context*> contexts;
  std::set<std::pair<uint32_t, uint32_t>> streams;
  {
    const threads::MutexLock lock(device_mutex_);
    streams = streams_;
    for (const auto& context : contexts_) {
      const auto first = streams_.lower_bound({context->id, 0});
      const bool is_used = first != streams_.end() && first->first == context->id;
      if (is_used || context->id != context->device + 1) contexts.push_back(context.get());
    }
  }
  switch (kind) {
    case ActivityKind::kContext:
      for (const Context* context : contexts) {
        write(record_of<cupti::Context>(row_of(*context, pid)), buffer_of(thread()));
      }
      break;
    case ActivityKind::kStream:
      for (const Context* context : contexts) write_driver_streams(context->id);
      for (const auto& [context_id, stream_id] : streams) {
        if (stream_id == kNullStream) continue;
        write(record_of<cupti::Stream>(row_of(context_id, stream_id)), buffer_of(thread()));
      }
      break;
    case ActivityKind::kDevice:
      for (uint32_t device = 0; device < static_cast<uint32_t>(config.devices); ++device) {
        auto record = record_of<cupti::DeviceAttributes>(row_of_device(device));
        // From 13.0 on the text belongs to the client, which must free it.
        record.name = release.cuda >= 13000 ? ::strdup(device_name.c_str()) : device_name.c_str();
        write(record, buffer_of(thread()));
      }
      break;
    default:  // other kinds have no objects to dump
      break;
  }
}

}  // namespace collector::simulator
