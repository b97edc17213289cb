#include "stepstats/step_stats.h"

#include <type_traits>
#include <utility>

#include "stepstats/run_metadata.h"

namespace collector::stepstats {

StepStats::StepStats(std::string_view bytes, bool is_run_metadata) : bytes_(bytes) {
  if (!is_run_metadata) {
    read_step(bytes);
    return;
  }
  WireReader reader(bytes, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    // If a message contains the field twice, protobuf merges both: their devices are concatenated.
    if (tag == make_tag(1, kBytes)) {
      read_step(reader.read_bytes());
    } else if (tag == make_tag(kRunMetadataCapture, kBytes)) {
      kernel_names_.add_capture(reader.read_bytes(), bytes_);
    } else {
      reader.skip(tag);
    }
  }
}

void StepStats::read_step(std::string_view message) {
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(1, kBytes)) {
      read_device(reader.read_bytes());
    } else {
      reader.skip(tag);
    }
  }
}

void StepStats::read_device(std::string_view message) {
  Device& device = devices_.emplace_back();
  device.message = message;
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    switch (tag) {
      case make_tag(1, kBytes):
        device.name = reader.read_bytes();
        break;
      case kNodeTag:
        __builtin_prefetch(reader.read_bytes().data() + 2 * kReadAhead);
        ++device.num_nodes;
        break;
      case make_tag(3, kBytes): {
        ThreadName& thread = device.thread_names.emplace_back();
        WireReader entry(reader.read_bytes(), bytes_);
        while (!entry.at_end()) {
          const uint32_t entry_tag = entry.read_tag();
          if (entry_tag == make_tag(1, kVarint)) {
            thread.id = static_cast<uint32_t>(entry.read_varint());
          } else if (entry_tag == make_tag(2, kBytes)) {
            thread.name = entry.read_bytes();
          } else {
            entry.skip(entry_tag);
          }
        }
        break;
      }
      default:
        reader.skip(tag);
    }
  }
  num_nodes_ += device.num_nodes;
}

namespace {

template <uint32_t field, WireType type>
using TagOf = std::integral_constant<uint32_t, make_tag(field, type)>;

// Reads the fields for which comes(tag) is true; the tags are tried in the order of field numbers.
template <typename Comes>
void read_node_fields(WireReader& reader, Node& node, Comes comes) {
  if (comes(TagOf<1, kBytes>())) node.name = reader.read_bytes();
  if (comes(TagOf<2, kVarint>())) node.start_us = reader.read_int64();
  if (comes(TagOf<5, kVarint>())) node.end_rel_us = reader.read_int64();
  while (comes(TagOf<6, kBytes>())) node.memory.push_back(reader.read_bytes());
  while (comes(TagOf<7, kBytes>())) node.outputs.push_back(reader.read_bytes());
  if (comes(TagOf<8, kBytes>())) node.label = reader.read_bytes();
  if (comes(TagOf<9, kVarint>())) node.scheduled_us = reader.read_int64();
  if (comes(TagOf<10, kVarint>())) node.thread_id = static_cast<uint32_t>(reader.read_varint());
  if (comes(TagOf<13, kVarint>())) node.start_ns = reader.read_int64();
  if (comes(TagOf<16, kVarint>())) node.end_rel_ns = reader.read_int64();
  if (comes(TagOf<17, kVarint>())) node.scheduled_ns = reader.read_int64();
  if (comes(TagOf<100001, kVarint>())) node.correlation_id = static_cast<uint32_t>(reader.read_varint());
  if (comes(TagOf<100002, kBytes>())) node.activity = reader.read_bytes();
  if (comes(TagOf<100003, kVarint>())) node.op_end = static_cast<uint32_t>(reader.read_varint());
}

}  // namespace

void StepStats::read_node(std::string_view message, Node& node) const {
  // One by one: a chain of assignments would reload bytes just stored in other widths, which stalls the processor.
  node.name = {};
  node.label = {};
  node.activity = {};
  node.start_us = node.end_rel_us = node.scheduled_us = 0;
  node.start_ns = node.end_rel_ns = node.scheduled_ns = 0;
  node.thread_id = node.correlation_id = node.op_end = 0;
  node.outputs.clear();
  node.memory.clear();
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    // Fields usually come in the order of their numbers.
    read_node_fields(reader, node, [&](auto tag) { return reader.take_tag<tag>(); });
    if (reader.at_end()) break;
    // A field out of order, an unknown field, or a tag that is encoded longer than necessary.
    uint32_t next = reader.read_tag();
    read_node_fields(reader, node, [&](auto tag) { return next == tag && std::exchange(next, 0) != 0; });
    if (next != 0) reader.skip(next);
  }
}

void StepStats::read_output(std::string_view message, TensorDescription& description) const {
  description.dtype = 0;
  description.has_shape = description.unknown_rank = description.has_allocation = false;
  description.dims.clear();
  description.allocation = {};
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(3, kBytes)) {
      read_description(reader.read_bytes(), description);
    } else {
      reader.skip(tag);
    }
  }
}

void StepStats::read_description(std::string_view message, TensorDescription& description) const {
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    switch (tag) {
      case make_tag(1, kVarint):
        description.dtype = static_cast<int32_t>(reader.read_varint());
        break;
      case make_tag(2, kBytes):
        description.has_shape = true;
        read_shape(reader.read_bytes(), description);
        break;
      case make_tag(4, kBytes):
        description.has_allocation = true;
        read_allocation(reader.read_bytes(), description.allocation);
        break;
      default:
        reader.skip(tag);
    }
  }
}

void StepStats::read_shape(std::string_view message, TensorDescription& description) const {
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(2, kBytes)) {
      Dimension& dim = description.dims.emplace_back();
      WireReader fields(reader.read_bytes(), bytes_);
      while (!fields.at_end()) {
        const uint32_t field = fields.read_tag();
        if (field == make_tag(1, kVarint)) {
          dim.size = fields.read_int64();
        } else if (field == make_tag(2, kBytes)) {
          dim.name = fields.read_bytes();
        } else {
          fields.skip(field);
        }
      }
    } else if (tag == make_tag(3, kVarint)) {
      description.unknown_rank = reader.read_varint() != 0;
    } else {
      reader.skip(tag);
    }
  }
}

void StepStats::read_allocation(std::string_view message, Allocation& allocation) const {
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    switch (tag) {
      case make_tag(1, kVarint):
        allocation.requested_bytes = reader.read_int64();
        break;
      case make_tag(2, kVarint):
        allocation.allocated_bytes = reader.read_int64();
        break;
      case make_tag(3, kBytes):
        allocation.allocator_name = reader.read_bytes();
        break;
      case make_tag(4, kVarint):
        allocation.allocation_id = reader.read_int64();
        break;
      case make_tag(5, kVarint):
        allocation.has_single_reference = reader.read_varint() != 0;
        break;
      case make_tag(6, kVarint):
        allocation.ptr = reader.read_varint();
        break;
      default:
        reader.skip(tag);
    }
  }
}

void StepStats::read_memory(std::string_view message, AllocatorMemory& memory) const {
  memory.allocator_name = {};
  memory.records.clear();
  WireReader reader(message, bytes_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(1, kBytes)) {
      memory.allocator_name = reader.read_bytes();
    } else if (tag == make_tag(6, kBytes)) {
      AllocationRecord& record = memory.records.emplace_back();
      WireReader fields(reader.read_bytes(), bytes_);
      while (!fields.at_end()) {
        const uint32_t field = fields.read_tag();
        if (field == make_tag(1, kVarint)) {
          record.time_us = fields.read_int64();
        } else if (field == make_tag(2, kVarint)) {
          record.num_bytes = fields.read_int64();
        } else {
          fields.skip(field);
        }
      }
    } else {
      reader.skip(tag);
    }
  }
}

}  // namespace collector::stepstats
