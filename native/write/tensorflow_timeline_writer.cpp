#include "write/tensorflow_timeline_writer.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <optional>
#include <utility>

#include "draw/lanes.h"
#include "stepstats/labels.h"
#include "stepstats/name_table.h"
#include "stepstats/repeated_nodes.h"
#include "write/description_text.h"
#include "write/fragment.h"
#include "write/json.h"
#include "write/tensorflow_timeline_layout.h"

namespace collector::write {

using draw::Lanes;
using stepstats::Allocation;
using stepstats::Device;
using stepstats::KernelName;
using stepstats::NameTable;
using stepstats::Node;
using stepstats::OpLabel;
using stepstats::RepeatedNodes;
using stepstats::StepStats;
using stepstats::TensorDescription;
using stepstats::WireError;

namespace {

int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) throw BeyondInt64();
  return sum;
}

int64_t subtract(int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) throw BeyondInt64();
  return difference;
}

// Repeated ops, kernels and copies: the shared parts of their events, i.e. everything except place and time.
struct Region {
  Fragment start;           // up to the op
  Fragment end;             // from the arguments on
  std::string_view inputs;  // same as OpLabel::inputs
};

struct Op {
  int64_t start;
  int64_t duration;
  int64_t end;
  uint32_t lane;
};

// One output by name, and its producer.
struct Tensor {
  int64_t producer_end;
  uint32_t compute_pid;
  uint32_t lane;
};

// The memory of a tensor, and the time until which its consumers kept it.
struct TensorMemory {
  int64_t create_time;
  int64_t last_unref;
  int64_t num_bytes;
  uint32_t object_id;
  uint32_t tensors_pid;
  uint32_t allocator;
};

struct Change {
  int64_t time;
  int64_t num_bytes;
  uint32_t tensor;
};

// A writer without an output only tracks the tensors.
class TensorflowTimelineWriter {
 public:
  TensorflowTimelineWriter(const StepStats& step, const TensorflowTimelineOptions& options, Output* output)
      : step_(step), options_(options), layout_(options.pretty), output_(output), lanes_of_(step.devices().size()) {}

  void write() {
    layout_.trace_open.append_to(*output_);
    if (options_.op_time != OpTime::kSchedule) apply_op_time();
    allocate_pids();
    if (options_.show_memory) add_tensors();  // these are shown first
    add_compute();
    if (options_.show_memory) add_memory();
    layout_.trace_close.append_to(*output_);
  }

  std::vector<AllocatorMaximum> maximums();

 private:
  struct Times {
    int64_t start;
    int64_t duration;
  };
  struct RegionLabel {
    std::string_view name;
    std::string_view op;
    std::string_view inputs;
  };
  struct Input {
    std::string_view name;
    uint32_t hash;  // only if inputs are tracked
  };
  static constexpr uint32_t kLanesRemembered = 1024;

  // --- pipeline, in TensorFlow's order ---
  void apply_op_time();
  void allocate_pids();
  void add_tensors();
  void add_compute();
  void add_memory();

  void add_outputs(const Node& node, const Op& op, uint32_t compute_pid, uint32_t tensors_pid);
  void add_region(const Node& node, const Op& op, uint32_t pid, bool from_tracer, bool follow_inputs);
  void split_inputs(std::string_view inputs);
  void ask_for_inputs();
  void ask_for_tensors() const;
  static RegionLabel read_region_label(const Node& node, bool from_tracer);
  void append_region_start(Output& output, const RegionLabel& label) const;
  void append_region_end(Output& output, const RegionLabel& label) const;
  void consume(const Input& input, const Op& op, uint32_t pid);
  std::vector<std::vector<Change>> sorted_changes() const;

  // The op of the device's `index`-th node. Must be called in order, because it assigns lanes.
  Op place_op(size_t device, size_t index, const Node& node, Lanes& lanes) const {
    Op op{node.start_us, node.end_rel_us, 0, 0};
    if (device < moved_.size() && !moved_[device].empty()) {
      op.start = moved_[device][index].start;
      op.duration = moved_[device][index].duration;
    }
    op.end = add(op.start, op.duration);
    op.lane = lanes.place(op.start, op.end);
    return op;
  }
  // TensorFlow starts with one lane that ended at time 0.
  static Lanes first_lanes() {
    Lanes lanes;
    lanes.place(0, 0);
    return lanes;
  }

  // --- text: the caller provides the room ---
  char* put_text(char* to, std::string_view text) const {
    char* const end = put_json_text(to, text, BadText::kRefuse);
    if (end == nullptr) refuse(text);
    return end;
  }
  [[noreturn]] void refuse(std::string_view text) const {
    const std::string_view bytes = step_.bytes();
    const char* const bad = find_bad_text(text);
    const bool inside = bytes.data() <= bad && bad < bytes.data() + bytes.size();  // some names are not input
    throw WireError("a text that is not UTF-8", inside ? static_cast<size_t>(bad - bytes.data()) : bytes.size());
  }
  static char* put_number(char* to, const Fragment& key, int64_t value) { return put_decimal(key.put(to), value); }
  // Writes an event up to its time.
  char* put_start(char* to, const Fragment& start, std::string_view name, uint32_t pid, uint32_t lane, int64_t time) {
    return put_place_and_time(put_text(start.put(to), name), pid, lane, time);
  }
  char* put_place_and_time(char* to, uint32_t pid, uint32_t lane, int64_t time) {
    if (lane < kLanesRemembered) return times_.put(place_of(pid, lane).put(to), time);
    to = put_decimal(put_piece(to, layout_.pid), uint64_t{pid});
    to = put_decimal(put_piece(to, layout_.tid), uint64_t{lane});
    return times_.put(put_piece(to, layout_.ts), time);
  }
  // The text between an event's name and its time.
  const Fragment& place_of(uint32_t pid, uint32_t lane) {
    std::vector<Fragment>& of_pid = places_[pid];
    if (of_pid.size() <= lane) of_pid.resize(lane + 1);
    Fragment& place = of_pid[lane];
    if (place.empty()) {
      place = Fragment(layout_.pid + std::to_string(pid) + layout_.tid + std::to_string(lane) + layout_.ts);
    }
    return place;
  }
  static char* put_piece(char* to, std::string_view text) {
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
  }
  static constexpr size_t kRoom = TensorflowTimelineLayout::kEventRoom;

  void add_process(std::string_view device, std::string_view what);
  const StepStats& step_;
  const TensorflowTimelineOptions& options_;
  const TensorflowTimelineLayout layout_;
  Output* output_;

  NearNumbers times_;
  std::vector<std::vector<Fragment>> places_;    // by pid and lane
  std::vector<std::vector<Times>> moved_;        // by device; empty: the nodes' own times apply
  std::vector<std::vector<uint32_t>> lanes_of_;  // by device and node; empty until add_tensors
  std::vector<uint32_t> compute_pids_;           // by device; devices with equal names share the last one
  uint32_t next_pid_ = 0;
  uint64_t next_flow_id_ = 0;

  RepeatedNodes<Region> regions_;

  bool has_tensors_ = false;
  NameTable tensor_names_;
  std::vector<Input> inputs_;      // of the current node
  TensorDescription description_;  // of the current output
  std::vector<Tensor> tensors_;
  std::vector<TensorMemory> memory_;    // of the tensors, if memory is shown
  std::deque<std::string> made_names_;  // names that the input does not contain: "node:1"
  NameTable allocators_;
};

void TensorflowTimelineWriter::apply_op_time() {
  struct Span {
    int64_t start;
    int64_t end;
  };
  NameTable names;
  std::vector<Span> spans;
  const std::vector<Device>& devices = step_.devices();
  for (const Device& device : devices) {
    if (!stepstats::contains(device.name, "/stream:all")) continue;
    step_.for_each_node(device, [&](const Node& node) {
      const auto [number, is_new] = names.insert(stepstats::parse_kernel_name(node.label, node.name).name);
      const int64_t end = add(node.start_us, node.end_rel_us);
      if (is_new) {
        spans.push_back({node.start_us, end});
      } else {
        spans[number].start = std::min(spans[number].start, node.start_us);
        spans[number].end = std::max(spans[number].end, end);
      }
    });
  }
  moved_.resize(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    if (stepstats::contains(devices[d].name, "/stream:all") || !stepstats::contains(devices[d].name, "/job")) continue;
    moved_[d].reserve(devices[d].num_nodes);
    step_.for_each_node(devices[d], [&](const Node& node) {
      Times times{node.start_us, node.end_rel_us};
      const uint32_t number = names.find(node.name);
      if (number != NameTable::kNone) {
        const int64_t end = std::max(spans[number].end, add(node.start_us, node.end_rel_us));
        if (options_.op_time == OpTime::kGpu) times.start = spans[number].start;
        times.duration = subtract(end, times.start);
      }
      moved_[d].push_back(times);
    });
  }
}

void TensorflowTimelineWriter::allocate_pids() {
  add_process("Allocators", "");
  NameTable names;
  std::vector<uint32_t> last_pids;
  std::vector<uint32_t> numbers;
  for (const Device& device : step_.devices()) {
    const uint32_t number = names.insert(device.name).number;
    last_pids.resize(names.size());
    last_pids[number] = next_pid_;
    numbers.push_back(number);
    add_process(device.name, " Compute");
    add_process(device.name, " Tensors");
  }
  for (const uint32_t number : numbers) compute_pids_.push_back(last_pids[number]);
}

void TensorflowTimelineWriter::add_process(std::string_view device, std::string_view what) {
  const uint32_t pid = next_pid_++;
  places_.emplace_back();
  if (output_ == nullptr) return;
  char* to = output_->reserve(kRoom + json_room(device) + what.size());
  if (pid != 0) to = layout_.next_event.put(to);
  to = put_number(to, layout_.process, pid);
  to = put_text(layout_.args_name.put(to), device);
  std::memcpy(to, what.data(), what.size());
  output_->commit(layout_.args_text_close.put(to + what.size()));
}

// All tensors must be known before the first look-up. Many recordings contain none, so they are collected only when a
// node produces or consumes one.
void TensorflowTimelineWriter::add_tensors() {
  has_tensors_ = true;
  tensor_names_.reserve(step_.num_nodes());
  tensors_.reserve(step_.num_nodes());
  const std::vector<Device>& devices = step_.devices();
  for (size_t d = 0; d < devices.size(); ++d) {
    std::vector<uint32_t>& lanes_of = lanes_of_[d];
    lanes_of.reserve(devices[d].num_nodes);
    Lanes lanes = first_lanes();
    step_.for_each_node(devices[d], [&](const Node& node) {
      const Op op = place_op(d, lanes_of.size(), node, lanes);
      lanes_of.push_back(op.lane);
      if (!node.outputs.empty()) add_outputs(node, op, compute_pids_[d], compute_pids_[d] + 1);
    });
  }
}

void TensorflowTimelineWriter::add_outputs(const Node& node, const Op& op, uint32_t compute_pid, uint32_t tensors_pid) {
  TensorDescription& description = description_;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    step_.read_output(node.outputs[i], description);
    std::string_view name = node.name;
    if (i > 0) {
      std::string made = std::string(node.name) + ":" + std::to_string(i);
      if (tensor_names_.find(made) == NameTable::kNone) {
        name = made_names_.emplace_back(std::move(made));
      } else {
        name = tensor_names_[tensor_names_.find(made)];
      }
    }
    const auto object_id = static_cast<uint32_t>(tensor_names_.size());
    const auto [number, is_new] = tensor_names_.insert(name);
    if (is_new) tensors_.emplace_back();
    tensors_[number] = {op.end, compute_pid, op.lane};
    if (!options_.show_memory) continue;
    const Allocation& allocation = description.allocation;
    if (is_new) memory_.emplace_back();
    memory_[number] = {op.start,  op.end,      allocation.requested_bytes,
                       object_id, tensors_pid, allocators_.insert(allocation.allocator_name).number};
    const int64_t snapshot_time = subtract(op.end, 1);
    if (output_ == nullptr) continue;
    const std::string text = description_text(description, options_.data_type_names);
    char* to = output_->reserve(2 * kRoom + 2 * json_room(name) + json_room(text));
    to = put_start(to, layout_.created, name, tensors_pid, op.lane, op.start);
    to = layout_.event_close.put(put_number(to, layout_.id, object_id));
    to = put_start(to, layout_.snapshot, name, tensors_pid, op.lane, snapshot_time);
    to = put_number(to, layout_.id, object_id);
    to = put_text(layout_.args_snapshot.put(to), text);
    output_->commit(layout_.args_snapshot_close.put(to));
  }
}

void TensorflowTimelineWriter::add_compute() {
  const std::vector<Device>& devices = step_.devices();
  const bool follow_inputs = options_.show_dataflow || options_.show_memory;
  for (size_t d = 0; d < devices.size(); ++d) {
    const bool from_tracer = stepstats::is_tracer_device(devices[d].name);
    const uint32_t pid = compute_pids_[d];
    Lanes lanes = first_lanes();
    size_t index = 0;
    step_.for_each_node(devices[d], [&](const Node& node) {
      Op op{};
      if (lanes_of_[d].empty()) {
        op = place_op(d, index, node, lanes);
      } else {
        op = {node.start_us, node.end_rel_us, 0, lanes_of_[d][index]};
        if (!moved_.empty() && !moved_[d].empty()) {
          op.start = moved_[d][index].start;
          op.duration = moved_[d][index].duration;
        }
        op.end = op.start + op.duration;  // the addition was checked when the lane was assigned
      }
      ++index;
      if (follow_inputs && !has_tensors_ && !node.outputs.empty()) add_tensors();
      add_region(node, op, pid, from_tracer, follow_inputs);
      if (!follow_inputs || inputs_.empty()) return;
      if (!has_tensors_) add_tensors();
      for (const Input& input : inputs_) consume(input, op, pid);
    });
  }
}

void TensorflowTimelineWriter::add_region(const Node& node, const Op& op, uint32_t pid, bool from_tracer,
                                          bool follow_inputs) {
  const Region* const again = regions_.find(node, from_tracer, [&](Region& region) {
    const RegionLabel label = read_region_label(node, from_tracer);
    split_inputs(label.inputs);
    TextOutput start;
    append_region_start(start, label);
    TextOutput end;
    append_region_end(end, label);
    region = {Fragment(start.text()), Fragment(end.text()), label.inputs};
  });
  const RegionLabel label =
      again != nullptr ? RegionLabel{{}, {}, again->inputs} : read_region_label(node, from_tracer);
  split_inputs(label.inputs);
  if (follow_inputs) ask_for_inputs();
  if (output_ == nullptr) return;
  again != nullptr ? again->start.append_to(*output_) : append_region_start(*output_, label);
  if (follow_inputs) ask_for_tensors();
  char* const to = put_place_and_time(output_->reserve(kRoom), pid, op.lane, op.start);
  output_->commit(put_number(to, layout_.dur, op.duration));
  again != nullptr ? again->end.append_to(*output_) : append_region_end(*output_, label);
}

TensorflowTimelineWriter::RegionLabel TensorflowTimelineWriter::read_region_label(const Node& node, bool from_tracer) {
  if (from_tracer) {
    const KernelName kernel = stepstats::parse_kernel_name(node.label, node.name);
    return {kernel.name, kernel.op, {}};
  }
  if (node.name == "RecvTensor") return {node.name, "RecvTensor", {}};
  const OpLabel label = stepstats::parse_op_label(node.label);
  return {node.name, label.op, label.inputs};
}

void TensorflowTimelineWriter::append_region_start(Output& output, const RegionLabel& label) const {
  char* const to = output.reserve(kRoom + json_room(label.op));
  output.commit(put_text(layout_.region.put(to), label.op));
}

// The inputs must have been split.
void TensorflowTimelineWriter::append_region_end(Output& output, const RegionLabel& label) const {
  char* to = output.reserve(kRoom + json_room(label.name) + json_room(label.op));
  to = put_text(layout_.args_name.put(to), label.name);
  to = put_text(layout_.args_op.put(to), label.op);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    output.commit(to);
    to = output.reserve(kRoom + json_room(inputs_[i].name));
    if (i < layout_.args_inputs.size()) {
      to = layout_.args_inputs[i].put(to);
    } else {
      to = put_decimal(layout_.args_input.put(to), uint64_t{i});
      to = layout_.args_input_end.put(to);
    }
    to = put_text(to, inputs_[i].name);
  }
  output.commit(layout_.args_text_close.put(to));
}

void TensorflowTimelineWriter::split_inputs(std::string_view inputs) {
  inputs_.clear();
  stepstats::for_each_input(inputs, [&](std::string_view name) { inputs_.push_back({name, 0}); });
}

// Prefetches the table entries of the inputs while the node is written.
void TensorflowTimelineWriter::ask_for_inputs() {
  for (Input& input : inputs_) {
    input.hash = NameTable::hash_of(input.name);
    tensor_names_.prefetch_slot(input.hash);
  }
}

void TensorflowTimelineWriter::ask_for_tensors() const {
  for (const Input& input : inputs_) {
    tensor_names_.prefetch_name(input.hash);
    if (const uint32_t number = tensor_names_.guess(input.hash); number != NameTable::kNone) {
      __builtin_prefetch(&tensors_[number]);
    }
  }
}

void TensorflowTimelineWriter::consume(const Input& input, const Op& op, uint32_t pid) {
  std::string_view name = input.name;
  uint32_t number = tensor_names_.find(name, input.hash);
  if (number == NameTable::kNone) {
    // A tensor that is sent between devices has another name there: the producer's name, "/_" and a number.
    const size_t cut = name.rfind("/_");
    if (cut == 0 || cut == std::string_view::npos) return;
    name = name.substr(0, cut);
    number = tensor_names_.find(name);
    if (number == NameTable::kNone) return;
  }
  if (options_.show_memory) memory_[number].last_unref = std::max(memory_[number].last_unref, subtract(op.end, 1));
  const Tensor& tensor = tensors_[number];
  if (!options_.show_dataflow || (tensor.compute_pid == pid && tensor.lane == op.lane)) return;
  const auto flow_id = static_cast<int64_t>(next_flow_id_++);
  if (output_ == nullptr) return;
  char* to = output_->reserve(kRoom + 2 * json_room(name));
  to = put_start(to, layout_.flow_start, name, tensor.compute_pid, tensor.lane, tensor.producer_end);
  to = put_number(to, layout_.id, flow_id);
  to = put_start(to, layout_.flow_end, name, pid, op.lane, op.start);
  to = put_number(to, layout_.id, flow_id);
  output_->commit(layout_.event_close.put(to));
}

// Changes by allocator. Python also sorts by name, but names affect neither the drawing nor the maximum.
std::vector<std::vector<Change>> TensorflowTimelineWriter::sorted_changes() const {
  std::vector<std::vector<Change>> changes(allocators_.size());
  for (uint32_t number = 0; number < memory_.size(); ++number) {
    const TensorMemory& tensor = memory_[number];
    changes[tensor.allocator].push_back({tensor.create_time, tensor.num_bytes, number});
    changes[tensor.allocator].push_back({tensor.last_unref, subtract(0, tensor.num_bytes), number});
  }
  for (std::vector<Change>& of_allocator : changes) {
    std::sort(of_allocator.begin(), of_allocator.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.num_bytes < b.num_bytes;
    });
  }
  return changes;
}

// Allocators in the order of the tensors' current allocators; the tensors are in the order of their names' first use.
std::vector<uint32_t> allocator_order(const std::vector<TensorMemory>& tensors, size_t num_allocators) {
  std::vector<bool> seen(num_allocators, false);
  std::vector<uint32_t> order;
  for (const TensorMemory& tensor : tensors) {
    if (!seen[tensor.allocator]) order.push_back(tensor.allocator);
    seen[tensor.allocator] = true;
  }
  return order;
}

void TensorflowTimelineWriter::add_memory() {
  for (uint32_t number = 0; number < memory_.size(); ++number) {
    const TensorMemory& tensor = memory_[number];
    const std::string_view name = tensor_names_[number];
    char* to = output_->reserve(kRoom + json_room(name));
    to = put_start(to, layout_.deleted, name, tensor.tensors_pid, 0, tensor.last_unref);
    output_->commit(layout_.event_close.put(put_number(to, layout_.id, tensor.object_id)));
  }
  const std::vector<std::vector<Change>> changes = sorted_changes();
  for (const uint32_t allocator : allocator_order(memory_, allocators_.size())) {
    const std::string_view name = allocators_[allocator];
    int64_t total = 0;
    for (const Change& change : changes[allocator]) {
      total = add(total, change.num_bytes);
      char* to = output_->reserve(kRoom + 2 * json_room(name));
      to = put_start(to, layout_.counter, name, 0, 0, change.time);
      to = put_text(layout_.args_counter.put(to), name);
      to = put_number(to, layout_.args_counter_value, total);
      output_->commit(layout_.args_counter_close.put(to));
    }
  }
}

std::vector<AllocatorMaximum> TensorflowTimelineWriter::maximums() {
  if (options_.op_time != OpTime::kSchedule) apply_op_time();
  allocate_pids();
  add_tensors();
  add_compute();
  const std::vector<std::vector<Change>> changes = sorted_changes();
  std::vector<AllocatorMaximum> maximums;
  std::vector<bool> alive(memory_.size(), false);  // false again after each allocator: they may be as many as tensors
  for (const uint32_t allocator : allocator_order(memory_, allocators_.size())) {
    const std::vector<Change>& of_allocator = changes[allocator];
    AllocatorMaximum& maximum = maximums.emplace_back();
    maximum.allocator = allocators_[allocator];
    int64_t total = 0;
    size_t num_changes = 0;  // up to the maximum
    for (size_t i = 0; i < of_allocator.size(); ++i) {
      total = add(total, of_allocator[i].num_bytes);
      if (total > maximum.num_bytes) {
        maximum.num_bytes = total;
        maximum.time_us = of_allocator[i].time;
        num_changes = i + 1;
      }
    }
    for (size_t i = 0; i < num_changes; ++i) alive[of_allocator[i].tensor] = of_allocator[i].num_bytes >= 0;
    for (size_t i = 0; i < num_changes; ++i) {
      if (!alive[of_allocator[i].tensor]) continue;
      alive[of_allocator[i].tensor] = false;
      maximum.tensors.emplace_back(tensor_names_[of_allocator[i].tensor]);
    }
  }
  return maximums;
}

}  // namespace

void write_tensorflow_timeline(const StepStats& step, const TensorflowTimelineOptions& options, Output& output) {
  TensorflowTimelineWriter(step, options, &output).write();
}

std::vector<AllocatorMaximum> allocator_maximums(const StepStats& step, const TensorflowTimelineOptions& options) {
  return TensorflowTimelineWriter(step, options, nullptr).maximums();
}

}  // namespace collector::write
