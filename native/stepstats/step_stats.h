// StepStats as views of its wire bytes. Nodes are decoded one at a time, each time they are needed: that is cheaper
// than storing them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepstats/kernel_names.h"
#include "stepstats/wire.h"

namespace collector::stepstats {

// The tag of the nodes in a DeviceStepStats.
inline constexpr uint32_t kNodeTag = make_tag(2, kBytes);

// One NodeExecStats. Absent fields are 0 or empty.
struct Node {
  std::string_view name;
  std::string_view label;
  int64_t start_us = 0;
  int64_t end_rel_us = 0;  // all_end_rel_micros
  int64_t scheduled_us = 0;
  int64_t start_ns = 0;
  int64_t end_rel_ns = 0;  // all_end_rel_nanos
  int64_t scheduled_ns = 0;
  uint32_t thread_id = 0;
  uint32_t correlation_id = 0;            // our field; 0: unknown
  std::string_view activity;              // our field: an Activity message
  uint32_t op_end = 0;                    // our field: bytes of the name or, of an annotation, of the label; 0: unknown
  std::vector<std::string_view> outputs;  // NodeOutput messages
  std::vector<std::string_view> memory;   // AllocatorMemoryUsed messages
};

struct Allocation {
  int64_t requested_bytes = 0;
  int64_t allocated_bytes = 0;
  std::string_view allocator_name;
  int64_t allocation_id = 0;
  bool has_single_reference = false;
  uint64_t ptr = 0;
};

struct Dimension {
  int64_t size = 0;
  std::string_view name;
};

// The TensorDescription of one NodeOutput. An object keeps its memory when it is reused.
struct TensorDescription {
  int32_t dtype = 0;
  bool has_shape = false;
  std::vector<Dimension> dims;
  bool unknown_rank = false;
  bool has_allocation = false;
  Allocation allocation;
};

struct AllocationRecord {
  int64_t time_us = 0;
  int64_t num_bytes = 0;
};

struct AllocatorMemory {
  std::string_view allocator_name;
  std::vector<AllocationRecord> records;
};

struct ThreadName {
  uint32_t id = 0;
  std::string_view name;
};

// One DeviceStepStats.
struct Device {
  std::string_view name;
  std::string_view message;
  size_t num_nodes = 0;
  std::vector<ThreadName> thread_names;
};

// A StepStats message, or the StepStats inside a RunMetadata message. Refers to `bytes`, which must outlive it.
class StepStats {
 public:
  // Reads the devices, but not yet their nodes. Throws WireError.
  StepStats(std::string_view bytes, bool is_run_metadata);

  const std::vector<Device>& devices() const { return devices_; }
  std::string_view bytes() const { return bytes_; }
  size_t num_nodes() const { return num_nodes_; }
  // Names are demangled at their first use.
  KernelNames& kernel_names() const { return kernel_names_; }

  // Calls visit(message) for each NodeExecStats message of a device, in order. Throws WireError.
  template <typename Visit>
  void for_each_message(const Device& device, Visit visit) const {
    WireReader reader(device.message, bytes_);
    while (!reader.at_end()) {
      const uint32_t tag = reader.read_tag();
      if (tag == kNodeTag) {
        const std::string_view message = reader.read_bytes();
        __builtin_prefetch(message.data() + message.size() + kReadAhead);
        visit(message);
      } else {
        reader.skip(tag);
      }
    }
  }

  // Calls visit(node) for each node of a device, in order. Throws WireError.
  template <typename Visit>
  void for_each_node(const Device& device, Visit visit) const {
    Node node;
    for_each_message(device, [&](std::string_view message) {
      read_node(message, node);
      visit(node);
    });
  }

  // Reads one NodeExecStats message into `node`, replacing its previous contents.
  void read_node(std::string_view message, Node& node) const;
  // Reads the tensor description of one NodeOutput message.
  void read_output(std::string_view message, TensorDescription& description) const;
  // Reads one AllocatorMemoryUsed message.
  void read_memory(std::string_view message, AllocatorMemory& memory) const;

 private:
  static constexpr size_t kReadAhead = 512;  // in bytes; processors do not prefetch the next nodes by themselves

  void read_step(std::string_view message);
  void read_device(std::string_view message);
  void read_description(std::string_view message, TensorDescription& description) const;
  void read_shape(std::string_view message, TensorDescription& description) const;
  void read_allocation(std::string_view message, Allocation& allocation) const;

  std::string_view bytes_;
  std::vector<Device> devices_;
  size_t num_nodes_ = 0;
  mutable KernelNames kernel_names_;
};

}  // namespace collector::stepstats
