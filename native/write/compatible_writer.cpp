#include "write/compatible_writer.h"

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
#include "write/compatible_layout.h"
#include "write/description_text.h"
#include "write/fragment.h"
#include "write/json.h"

namespace collector::convert {
namespace {

int64_t Add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) throw BeyondInt64();
  return sum;
}

int64_t Subtract(int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) throw BeyondInt64();
  return difference;
}

// Ops, kernels and copies that come again: what their events have in common, which is all but where and when.
struct Region {
  Fragment start;           // up to the op
  Fragment end;             // from the arguments on
  std::string_view inputs;  // as OpLabel::inputs
};

struct Op {
  int64_t start;
  int64_t duration;
  int64_t end;
  uint32_t lane;
};

// One output by name: where it was made.
struct Tensor {
  int64_t producer_end;
  uint32_t compute_pid;
  uint32_t lane;
};

// What its memory was and how long its consumers kept it.
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

// A writer without an output only follows the tensors.
class CompatibleWriter {
 public:
  CompatibleWriter(const StepStats& step, const CompatibleOptions& options, Output* output)
      : step_(step), options_(options), layout_(options.pretty), output_(output), lanes_of_(step.devices().size()) {}

  void Write() {
    layout_.trace_open.AppendTo(*output_);
    if (options_.op_time != OpTime::kSchedule) ApplyOpTime();
    AllocatePids();
    if (options_.show_memory) AddTensors();  // these are the first to be shown
    AddCompute();
    if (options_.show_memory) AddMemory();
    layout_.trace_close.AppendTo(*output_);
  }

  std::vector<AllocatorMaximum> Maximums();

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
    uint32_t hash;  // where inputs are followed
  };
  static constexpr uint32_t kLanesRemembered = 1024;

  // --- pipeline, in TensorFlow's order ---
  void ApplyOpTime();
  void AllocatePids();
  void AddTensors();
  void AddCompute();
  void AddMemory();

  void AddOutputs(const Node& node, const Op& op, uint32_t compute_pid, uint32_t tensors_pid);
  void AddRegion(const Node& node, const Op& op, uint32_t pid, bool from_tracer, bool follow_inputs);
  void SplitInputs(std::string_view inputs);
  void AskForInputs();
  void AskForTensors() const;
  static RegionLabel ReadRegionLabel(const Node& node, bool from_tracer);
  void AppendRegionStart(Output& output, const RegionLabel& label) const;
  void AppendRegionEnd(Output& output, const RegionLabel& label) const;
  void Consume(const Input& input, const Op& op, uint32_t pid);
  std::vector<std::vector<Change>> SortedChanges() const;

  // The op of the device's `index`-th node. Lanes are to be asked for in order.
  Op PlaceOp(size_t device, size_t index, const Node& node, Lanes& lanes) const {
    Op op{node.start_us, node.end_rel_us, 0, 0};
    if (device < moved_.size() && !moved_[device].empty()) {
      op.start = moved_[device][index].start;
      op.duration = moved_[device][index].duration;
    }
    op.end = Add(op.start, op.duration);
    op.lane = lanes.Place(op.start, op.end);
    return op;
  }
  // TensorFlow starts out with one lane that ended at time 0.
  static Lanes FirstLanes() {
    Lanes lanes;
    lanes.Place(0, 0);
    return lanes;
  }

  // --- text: to be put where there is room for it ---
  char* PutText(char* to, std::string_view text) const {
    char* const end = PutJsonText(to, text, BadText::kRefuse);
    if (end == nullptr) Refuse(text);
    return end;
  }
  [[noreturn]] void Refuse(std::string_view text) const {
    const std::string_view bytes = step_.bytes();
    const char* const bad = FindBadText(text);
    const bool inside = bytes.data() <= bad && bad < bytes.data() + bytes.size();  // some names are put together here
    throw WireError("a text that is not UTF-8", inside ? static_cast<size_t>(bad - bytes.data()) : bytes.size());
  }
  static char* PutNumber(char* to, const Fragment& key, int64_t value) { return PutDecimal(key.Put(to), value); }
  // An event up to its time.
  char* PutStart(char* to, const Fragment& start, std::string_view name, uint32_t pid, uint32_t lane, int64_t time) {
    return PutPlaceAndTime(PutText(start.Put(to), name), pid, lane, time);
  }
  char* PutPlaceAndTime(char* to, uint32_t pid, uint32_t lane, int64_t time) {
    const Fragment& place = lane < kLanesRemembered ? Place(pid, lane) : (any_place_ = MakePlace(pid, lane));
    return times_.Put(place.Put(to), time);
  }
  // All between an event's name and its time.
  const Fragment& Place(uint32_t pid, uint32_t lane) {
    std::vector<Fragment>& of_pid = places_[pid];
    if (of_pid.size() <= lane) of_pid.resize(lane + 1);
    Fragment& place = of_pid[lane];
    if (place.empty()) place = MakePlace(pid, lane);
    return place;
  }
  Fragment MakePlace(uint32_t pid, uint32_t lane) const {
    return Fragment(layout_.pid + std::to_string(pid) + layout_.tid + std::to_string(lane) + layout_.ts);
  }
  static constexpr size_t kRoom = CompatibleLayout::kEventRoom;

  void AddProcess(std::string_view device, std::string_view what);
  const StepStats& step_;
  const CompatibleOptions& options_;
  const CompatibleLayout layout_;
  Output* output_;

  NearNumbers times_;
  std::vector<std::vector<Fragment>> places_;    // by pid and lane
  Fragment any_place_;                           // the one last used of those that are not remembered
  std::vector<std::vector<Times>> moved_;        // by device; empty: times are the nodes' own
  std::vector<std::vector<uint32_t>> lanes_of_;  // by device and node; empty until AddTensors
  std::vector<uint32_t> compute_pids_;           // by device; of a repeated name all have the last one
  uint32_t next_pid_ = 0;
  uint64_t next_flow_id_ = 0;

  RepeatedNodes<Region> regions_;

  bool has_tensors_ = false;
  NameTable tensor_names_;
  std::vector<Input> inputs_;      // of the node at hand
  TensorDescription description_;  // of the output at hand
  std::vector<Tensor> tensors_;
  std::vector<TensorMemory> memory_;    // of the tensors, where memory is shown
  std::deque<std::string> made_names_;  // those that are no part of the input: "node:1"
  NameTable allocators_;
};

void CompatibleWriter::ApplyOpTime() {
  struct Span {
    int64_t start;
    int64_t end;
  };
  NameTable names;
  std::vector<Span> spans;
  const std::vector<Device>& devices = step_.devices();
  for (const Device& device : devices) {
    if (!Contains(device.name, "/stream:all")) continue;
    step_.ForEachNode(device, [&](const Node& node) {
      const auto [number, is_new] = names.Insert(ParseKernelName(node.label, node.name).name);
      const int64_t end = Add(node.start_us, node.end_rel_us);
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
    if (Contains(devices[d].name, "/stream:all") || !Contains(devices[d].name, "/job")) continue;
    moved_[d].reserve(devices[d].num_nodes);
    step_.ForEachNode(devices[d], [&](const Node& node) {
      Times times{node.start_us, node.end_rel_us};
      const uint32_t number = names.Find(node.name);
      if (number != NameTable::kNone) {
        const int64_t end = std::max(spans[number].end, Add(node.start_us, node.end_rel_us));
        if (options_.op_time == OpTime::kGpu) times.start = spans[number].start;
        times.duration = Subtract(end, times.start);
      }
      moved_[d].push_back(times);
    });
  }
}

void CompatibleWriter::AllocatePids() {
  AddProcess("Allocators", "");
  NameTable names;
  std::vector<uint32_t> last_pids;
  std::vector<uint32_t> numbers;
  for (const Device& device : step_.devices()) {
    const uint32_t number = names.Insert(device.name).number;
    last_pids.resize(names.size());
    last_pids[number] = next_pid_;
    numbers.push_back(number);
    AddProcess(device.name, " Compute");
    AddProcess(device.name, " Tensors");
  }
  for (const uint32_t number : numbers) compute_pids_.push_back(last_pids[number]);
}

void CompatibleWriter::AddProcess(std::string_view device, std::string_view what) {
  const uint32_t pid = next_pid_++;
  places_.emplace_back();
  if (output_ == nullptr) return;
  char* to = output_->Reserve(kRoom + JsonRoom(device) + what.size());
  if (pid != 0) to = layout_.next_event.Put(to);
  to = PutNumber(to, layout_.process, pid);
  to = PutText(layout_.args_name.Put(to), device);
  std::memcpy(to, what.data(), what.size());
  output_->Commit(layout_.args_text_close.Put(to + what.size()));
}

// All must be known before the first is looked for. Of many recordings none is, so they are collected when a node is
// met that makes or takes one.
void CompatibleWriter::AddTensors() {
  has_tensors_ = true;
  tensor_names_.Reserve(step_.num_nodes());
  tensors_.reserve(step_.num_nodes());
  const std::vector<Device>& devices = step_.devices();
  for (size_t d = 0; d < devices.size(); ++d) {
    std::vector<uint32_t>& lanes_of = lanes_of_[d];
    lanes_of.reserve(devices[d].num_nodes);
    Lanes lanes = FirstLanes();
    step_.ForEachNode(devices[d], [&](const Node& node) {
      const Op op = PlaceOp(d, lanes_of.size(), node, lanes);
      lanes_of.push_back(op.lane);
      if (!node.outputs.empty()) AddOutputs(node, op, compute_pids_[d], compute_pids_[d] + 1);
    });
  }
}

void CompatibleWriter::AddOutputs(const Node& node, const Op& op, uint32_t compute_pid, uint32_t tensors_pid) {
  TensorDescription& description = description_;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    step_.ReadOutput(node.outputs[i], description);
    std::string_view name = node.name;
    if (i > 0) {
      std::string made = std::string(node.name) + ":" + std::to_string(i);
      if (tensor_names_.Find(made) == NameTable::kNone) {
        name = made_names_.emplace_back(std::move(made));
      } else {
        name = tensor_names_[tensor_names_.Find(made)];
      }
    }
    const auto object_id = static_cast<uint32_t>(tensor_names_.size());
    const auto [number, is_new] = tensor_names_.Insert(name);
    if (is_new) tensors_.emplace_back();
    tensors_[number] = {op.end, compute_pid, op.lane};
    if (!options_.show_memory) continue;
    const Allocation& allocation = description.allocation;
    if (is_new) memory_.emplace_back();
    memory_[number] = {op.start,  op.end,      allocation.requested_bytes,
                       object_id, tensors_pid, allocators_.Insert(allocation.allocator_name).number};
    const int64_t snapshot_time = Subtract(op.end, 1);
    if (output_ == nullptr) continue;
    const std::string text = DescriptionText(description, options_.data_type_names);
    char* to = output_->Reserve(2 * kRoom + 2 * JsonRoom(name) + JsonRoom(text));
    to = PutStart(to, layout_.created, name, tensors_pid, op.lane, op.start);
    to = layout_.event_close.Put(PutNumber(to, layout_.id, object_id));
    to = PutStart(to, layout_.snapshot, name, tensors_pid, op.lane, snapshot_time);
    to = PutNumber(to, layout_.id, object_id);
    to = PutText(layout_.args_snapshot.Put(to), text);
    output_->Commit(layout_.args_snapshot_close.Put(to));
  }
}

void CompatibleWriter::AddCompute() {
  const std::vector<Device>& devices = step_.devices();
  const bool follow_inputs = options_.show_dataflow || options_.show_memory;
  for (size_t d = 0; d < devices.size(); ++d) {
    const bool from_tracer = IsTracerDevice(devices[d].name);
    const uint32_t pid = compute_pids_[d];
    Lanes lanes = FirstLanes();
    size_t index = 0;
    step_.ForEachNode(devices[d], [&](const Node& node) {
      Op op{};
      if (lanes_of_[d].empty()) {
        op = PlaceOp(d, index, node, lanes);
      } else {
        op = {node.start_us, node.end_rel_us, 0, lanes_of_[d][index]};
        if (!moved_.empty() && !moved_[d].empty()) {
          op.start = moved_[d][index].start;
          op.duration = moved_[d][index].duration;
        }
        op.end = op.start + op.duration;  // was checked when the lane was found
      }
      ++index;
      if (follow_inputs && !has_tensors_ && !node.outputs.empty()) AddTensors();
      AddRegion(node, op, pid, from_tracer, follow_inputs);
      if (!follow_inputs || inputs_.empty()) return;
      if (!has_tensors_) AddTensors();
      for (const Input& input : inputs_) Consume(input, op, pid);
    });
  }
}

void CompatibleWriter::AddRegion(const Node& node, const Op& op, uint32_t pid, bool from_tracer, bool follow_inputs) {
  const Region* const again = regions_.Find(node, from_tracer, [&](Region& region) {
    const RegionLabel label = ReadRegionLabel(node, from_tracer);
    SplitInputs(label.inputs);
    TextOutput start;
    AppendRegionStart(start, label);
    TextOutput end;
    AppendRegionEnd(end, label);
    region = {Fragment(start.text()), Fragment(end.text()), label.inputs};
  });
  const RegionLabel label = again != nullptr ? RegionLabel{{}, {}, again->inputs} : ReadRegionLabel(node, from_tracer);
  SplitInputs(label.inputs);
  if (follow_inputs) AskForInputs();
  if (output_ == nullptr) return;
  again != nullptr ? again->start.AppendTo(*output_) : AppendRegionStart(*output_, label);
  if (follow_inputs) AskForTensors();
  char* const to = PutPlaceAndTime(output_->Reserve(kRoom), pid, op.lane, op.start);
  output_->Commit(PutNumber(to, layout_.dur, op.duration));
  again != nullptr ? again->end.AppendTo(*output_) : AppendRegionEnd(*output_, label);
}

CompatibleWriter::RegionLabel CompatibleWriter::ReadRegionLabel(const Node& node, bool from_tracer) {
  if (from_tracer) {
    const KernelName kernel = ParseKernelName(node.label, node.name);
    return {kernel.name, kernel.op, {}};
  }
  if (node.name == "RecvTensor") return {node.name, "RecvTensor", {}};
  const OpLabel label = ParseOpLabel(node.label);
  return {node.name, label.op, label.inputs};
}

void CompatibleWriter::AppendRegionStart(Output& output, const RegionLabel& label) const {
  char* const to = output.Reserve(kRoom + JsonRoom(label.op));
  output.Commit(PutText(layout_.region.Put(to), label.op));
}

// The inputs have been split.
void CompatibleWriter::AppendRegionEnd(Output& output, const RegionLabel& label) const {
  char* to = output.Reserve(kRoom + JsonRoom(label.name) + JsonRoom(label.op));
  to = PutText(layout_.args_name.Put(to), label.name);
  to = PutText(layout_.args_op.Put(to), label.op);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    output.Commit(to);
    to = output.Reserve(kRoom + JsonRoom(inputs_[i].name));
    if (i < layout_.args_inputs.size()) {
      to = layout_.args_inputs[i].Put(to);
    } else {
      to = PutDecimal(layout_.args_input.Put(to), uint64_t{i});
      to = layout_.args_input_end.Put(to);
    }
    to = PutText(to, inputs_[i].name);
  }
  output.Commit(layout_.args_text_close.Put(to));
}

void CompatibleWriter::SplitInputs(std::string_view inputs) {
  inputs_.clear();
  ForEachInput(inputs, [&](std::string_view name) { inputs_.push_back({name, 0}); });
}

// Where the inputs stand in the table is fetched from memory while the node is written.
void CompatibleWriter::AskForInputs() {
  for (Input& input : inputs_) {
    input.hash = NameTable::Hash(input.name);
    tensor_names_.PrefetchSlot(input.hash);
  }
}

void CompatibleWriter::AskForTensors() const {
  for (const Input& input : inputs_) {
    tensor_names_.PrefetchName(input.hash);
    if (const uint32_t number = tensor_names_.Guess(input.hash); number != NameTable::kNone) {
      __builtin_prefetch(&tensors_[number]);
    }
  }
}

void CompatibleWriter::Consume(const Input& input, const Op& op, uint32_t pid) {
  std::string_view name = input.name;
  uint32_t number = tensor_names_.Find(name, input.hash);
  if (number == NameTable::kNone) {
    // A tensor sent between devices goes by another name there: the producer's, "/_" and a number.
    const size_t cut = name.rfind("/_");
    if (cut == 0 || cut == std::string_view::npos) return;
    name = name.substr(0, cut);
    number = tensor_names_.Find(name);
    if (number == NameTable::kNone) return;
  }
  if (options_.show_memory) memory_[number].last_unref = std::max(memory_[number].last_unref, Subtract(op.end, 1));
  const Tensor& tensor = tensors_[number];
  if (!options_.show_dataflow || (tensor.compute_pid == pid && tensor.lane == op.lane)) return;
  const auto flow_id = static_cast<int64_t>(next_flow_id_++);
  if (output_ == nullptr) return;
  char* to = output_->Reserve(kRoom + 2 * JsonRoom(name));
  to = PutStart(to, layout_.flow_start, name, tensor.compute_pid, tensor.lane, tensor.producer_end);
  to = PutNumber(to, layout_.id, flow_id);
  to = PutStart(to, layout_.flow_end, name, pid, op.lane, op.start);
  to = PutNumber(to, layout_.id, flow_id);
  output_->Commit(layout_.event_close.Put(to));
}

// By allocator. Python sorts by name as well; names make no difference to what is drawn, nor to the maximum.
std::vector<std::vector<Change>> CompatibleWriter::SortedChanges() const {
  std::vector<std::vector<Change>> changes(allocators_.size());
  for (uint32_t number = 0; number < memory_.size(); ++number) {
    const TensorMemory& tensor = memory_[number];
    changes[tensor.allocator].push_back({tensor.create_time, tensor.num_bytes, number});
    changes[tensor.allocator].push_back({tensor.last_unref, Subtract(0, tensor.num_bytes), number});
  }
  for (std::vector<Change>& of_allocator : changes) {
    std::sort(of_allocator.begin(), of_allocator.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.num_bytes < b.num_bytes;
    });
  }
  return changes;
}

// Allocators in the order in which the tensors, by first name, have them now.
std::vector<uint32_t> AllocatorOrder(const std::vector<TensorMemory>& tensors, size_t num_allocators) {
  std::vector<bool> seen(num_allocators, false);
  std::vector<uint32_t> order;
  for (const TensorMemory& tensor : tensors) {
    if (!seen[tensor.allocator]) order.push_back(tensor.allocator);
    seen[tensor.allocator] = true;
  }
  return order;
}

void CompatibleWriter::AddMemory() {
  for (uint32_t number = 0; number < memory_.size(); ++number) {
    const TensorMemory& tensor = memory_[number];
    const std::string_view name = tensor_names_[number];
    char* to = output_->Reserve(kRoom + JsonRoom(name));
    to = PutStart(to, layout_.deleted, name, tensor.tensors_pid, 0, tensor.last_unref);
    output_->Commit(layout_.event_close.Put(PutNumber(to, layout_.id, tensor.object_id)));
  }
  const std::vector<std::vector<Change>> changes = SortedChanges();
  for (const uint32_t allocator : AllocatorOrder(memory_, allocators_.size())) {
    const std::string_view name = allocators_[allocator];
    int64_t total = 0;
    for (const Change& change : changes[allocator]) {
      total = Add(total, change.num_bytes);
      char* to = output_->Reserve(kRoom + 2 * JsonRoom(name));
      to = PutStart(to, layout_.counter, name, 0, 0, change.time);
      to = PutText(layout_.args_counter.Put(to), name);
      to = PutNumber(to, layout_.args_counter_value, total);
      output_->Commit(layout_.args_counter_close.Put(to));
    }
  }
}

std::vector<AllocatorMaximum> CompatibleWriter::Maximums() {
  if (options_.op_time != OpTime::kSchedule) ApplyOpTime();
  AllocatePids();
  AddTensors();
  AddCompute();
  const std::vector<std::vector<Change>> changes = SortedChanges();
  std::vector<AllocatorMaximum> maximums;
  for (const uint32_t allocator : AllocatorOrder(memory_, allocators_.size())) {
    const std::vector<Change>& of_allocator = changes[allocator];
    AllocatorMaximum& maximum = maximums.emplace_back();
    maximum.allocator = allocators_[allocator];
    int64_t total = 0;
    size_t num_changes = 0;  // up to the maximum
    for (size_t i = 0; i < of_allocator.size(); ++i) {
      total = Add(total, of_allocator[i].num_bytes);
      if (total > maximum.num_bytes) {
        maximum.num_bytes = total;
        maximum.time_us = of_allocator[i].time;
        num_changes = i + 1;
      }
    }
    std::vector<bool> alive(memory_.size(), false);
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

void WriteCompatible(const StepStats& step, const CompatibleOptions& options, Output& output) {
  CompatibleWriter(step, options, &output).Write();
}

std::vector<AllocatorMaximum> AllocatorMaximums(const StepStats& step, const CompatibleOptions& options) {
  return CompatibleWriter(step, options, nullptr).Maximums();
}

}  // namespace collector::convert
