#include "stepstats/step_stats.h"

#include <type_traits>
#include <utility>

namespace collector::convert {

StepStats::StepStats(std::string_view bytes, bool is_run_metadata) : bytes_(bytes) {
  if (!is_run_metadata) {
    ReadStep(bytes);
    return;
  }
  WireReader reader(bytes, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    // Where a message holds the field twice, protobuf merges them: the devices follow each other.
    if (tag == Tag(1, kBytes)) {
      ReadStep(reader.ReadBytes());
    } else {
      reader.Skip(tag);
    }
  }
}

void StepStats::ReadStep(std::string_view message) {
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    if (tag == Tag(1, kBytes)) {
      ReadDevice(reader.ReadBytes());
    } else {
      reader.Skip(tag);
    }
  }
}

void StepStats::ReadDevice(std::string_view message) {
  Device& device = devices_.emplace_back();
  device.message = message;
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    switch (tag) {
      case Tag(1, kBytes):
        device.name = reader.ReadBytes();
        break;
      case kNodeTag:
        __builtin_prefetch(reader.ReadBytes().data() + 2 * kReadAhead);
        ++device.num_nodes;
        break;
      case Tag(3, kBytes): {
        ThreadName& thread = device.thread_names.emplace_back();
        WireReader entry(reader.ReadBytes(), bytes_);
        while (!entry.AtEnd()) {
          const uint32_t entry_tag = entry.ReadTag();
          if (entry_tag == Tag(1, kVarint)) {
            thread.id = static_cast<uint32_t>(entry.ReadVarint());
          } else if (entry_tag == Tag(2, kBytes)) {
            thread.name = entry.ReadBytes();
          } else {
            entry.Skip(entry_tag);
          }
        }
        break;
      }
      default:
        reader.Skip(tag);
    }
  }
  num_nodes_ += device.num_nodes;
}

namespace {

template <uint32_t field, WireType type>
using TagOf = std::integral_constant<uint32_t, Tag(field, type)>;

// Reads the fields for which comes(tag) is true, which is asked in the order of their numbers.
template <typename Comes>
void ReadNodeFields(WireReader& reader, Node& node, Comes comes) {
  if (comes(TagOf<1, kBytes>())) node.name = reader.ReadBytes();
  if (comes(TagOf<2, kVarint>())) node.start_us = reader.ReadInt64();
  if (comes(TagOf<5, kVarint>())) node.end_rel_us = reader.ReadInt64();
  while (comes(TagOf<6, kBytes>())) node.memory.push_back(reader.ReadBytes());
  while (comes(TagOf<7, kBytes>())) node.outputs.push_back(reader.ReadBytes());
  if (comes(TagOf<8, kBytes>())) node.label = reader.ReadBytes();
  if (comes(TagOf<9, kVarint>())) node.scheduled_us = reader.ReadInt64();
  if (comes(TagOf<10, kVarint>())) node.thread_id = static_cast<uint32_t>(reader.ReadVarint());
  if (comes(TagOf<13, kVarint>())) node.start_ns = reader.ReadInt64();
  if (comes(TagOf<16, kVarint>())) node.end_rel_ns = reader.ReadInt64();
  if (comes(TagOf<17, kVarint>())) node.scheduled_ns = reader.ReadInt64();
  if (comes(TagOf<100001, kVarint>())) node.correlation_id = static_cast<uint32_t>(reader.ReadVarint());
  if (comes(TagOf<100002, kBytes>())) node.activity = reader.ReadBytes();
}

}  // namespace

void StepStats::ReadNode(std::string_view message, Node& node) const {
  node.name = {};  // one by one: a chain of assignments would read what was just written, in other pieces, and wait
  node.label = {};
  node.activity = {};
  node.start_us = node.end_rel_us = node.scheduled_us = 0;
  node.start_ns = node.end_rel_ns = node.scheduled_ns = 0;
  node.thread_id = node.correlation_id = 0;
  node.outputs.clear();
  node.memory.clear();
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    // Fields mostly come in the order of their numbers.
    ReadNodeFields(reader, node, [&](auto tag) { return reader.TakeTag<tag>(); });
    if (reader.AtEnd()) break;
    // One that does not, or is not known, or whose tag is longer than it has to be.
    uint32_t next = reader.ReadTag();
    ReadNodeFields(reader, node, [&](auto tag) { return next == tag && std::exchange(next, 0) != 0; });
    if (next != 0) reader.Skip(next);
  }
}

void StepStats::ReadOutput(std::string_view message, TensorDescription& description) const {
  description.dtype = 0;
  description.has_shape = description.unknown_rank = description.has_allocation = false;
  description.dims.clear();
  description.allocation = {};
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    if (tag == Tag(3, kBytes)) {
      ReadDescription(reader.ReadBytes(), description);
    } else {
      reader.Skip(tag);
    }
  }
}

void StepStats::ReadDescription(std::string_view message, TensorDescription& description) const {
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    switch (tag) {
      case Tag(1, kVarint):
        description.dtype = static_cast<int32_t>(reader.ReadVarint());
        break;
      case Tag(2, kBytes):
        description.has_shape = true;
        ReadShape(reader.ReadBytes(), description);
        break;
      case Tag(4, kBytes):
        description.has_allocation = true;
        ReadAllocation(reader.ReadBytes(), description.allocation);
        break;
      default:
        reader.Skip(tag);
    }
  }
}

void StepStats::ReadShape(std::string_view message, TensorDescription& description) const {
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    if (tag == Tag(2, kBytes)) {
      Dimension& dim = description.dims.emplace_back();
      WireReader fields(reader.ReadBytes(), bytes_);
      while (!fields.AtEnd()) {
        const uint32_t field = fields.ReadTag();
        if (field == Tag(1, kVarint)) {
          dim.size = fields.ReadInt64();
        } else if (field == Tag(2, kBytes)) {
          dim.name = fields.ReadBytes();
        } else {
          fields.Skip(field);
        }
      }
    } else if (tag == Tag(3, kVarint)) {
      description.unknown_rank = reader.ReadVarint() != 0;
    } else {
      reader.Skip(tag);
    }
  }
}

void StepStats::ReadAllocation(std::string_view message, Allocation& allocation) const {
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    switch (tag) {
      case Tag(1, kVarint):
        allocation.requested_bytes = reader.ReadInt64();
        break;
      case Tag(2, kVarint):
        allocation.allocated_bytes = reader.ReadInt64();
        break;
      case Tag(3, kBytes):
        allocation.allocator_name = reader.ReadBytes();
        break;
      case Tag(4, kVarint):
        allocation.allocation_id = reader.ReadInt64();
        break;
      case Tag(5, kVarint):
        allocation.has_single_reference = reader.ReadVarint() != 0;
        break;
      case Tag(6, kVarint):
        allocation.ptr = reader.ReadVarint();
        break;
      default:
        reader.Skip(tag);
    }
  }
}

void StepStats::ReadMemory(std::string_view message, AllocatorMemory& memory) const {
  memory.allocator_name = {};
  memory.records.clear();
  WireReader reader(message, bytes_);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    if (tag == Tag(1, kBytes)) {
      memory.allocator_name = reader.ReadBytes();
    } else if (tag == Tag(6, kBytes)) {
      AllocationRecord& record = memory.records.emplace_back();
      WireReader fields(reader.ReadBytes(), bytes_);
      while (!fields.AtEnd()) {
        const uint32_t field = fields.ReadTag();
        if (field == Tag(1, kVarint)) {
          record.time_us = fields.ReadInt64();
        } else if (field == Tag(2, kVarint)) {
          record.num_bytes = fields.ReadInt64();
        } else {
          fields.Skip(field);
        }
      }
    } else {
      reader.Skip(tag);
    }
  }
}

}  // namespace collector::convert
