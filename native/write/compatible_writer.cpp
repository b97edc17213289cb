#include "write/compatible_writer.h"

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <optional>
#include <utility>

#include "write/compatible_layout.h"
#include "write/description_text.h"
#include "write/fragment.h"
#include "write/json.h"
#include "stepstats/labels.h"
#include "draw/lanes.h"
#include "stepstats/name_table.h"
#include "stepstats/repeated_nodes.h"

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

// One output by name: where it was made and how long its consumers kept it.
struct Tensor {
  int64_t create_time;
  int64_t last_unref;
  int64_t num_bytes;
  int64_t producer_end;
  uint32_t object_id;
  uint32_t tensors_pid;
  uint32_t compute_pid;
  uint32_t lane;
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
    uint32_t hash;
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
  void AskForInputs(std::string_view inputs);
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

  // --- text ---
  void NextEvent() {
    if (any_event_) layout_.next_event.AppendTo(*output_);
    any_event_ = true;
  }
  void Text(std::string_view text) { Check(AppendJsonString(*output_, text, BadText::kRefuse)); }
  void Number(const Fragment& key, int64_t value) {
    key.AppendTo(*output_);
    output_->AppendNumber(value);
  }
  void Check(const char* bad) const {
    if (bad != nullptr) throw WireError("a text that is not UTF-8", PositionOf(bad));
  }
  size_t PositionOf(const char* at) const {
    const std::string_view bytes = step_.bytes();
    const bool inside = bytes.data() <= at && at < bytes.data() + bytes.size();  // some names are put together here
    return inside ? static_cast<size_t>(at - bytes.data()) : bytes.size();
  }
  // An event up to its time.
  void Start(const Fragment& start, std::string_view name, uint32_t pid, uint32_t tid, int64_t ts) {
    NextEvent();
    start.AppendTo(*output_);
    Text(name);
    PlaceAndTime(pid, tid, ts);
  }
  void PlaceAndTime(uint32_t pid, uint32_t tid, int64_t ts) {
    if (tid < kLanesRemembered) {
      Place(pid, tid).AppendTo(*output_);
    } else {
      output_->Append(layout_.pid);
      output_->AppendNumber(pid);
      output_->Append(layout_.tid);
      output_->AppendNumber(tid);
      output_->Append(layout_.ts);
    }
    output_->AppendNumber(ts);
  }
  // All between an event's name and its time.
  const Fragment& Place(uint32_t pid, uint32_t tid) {
    if (places_.size() <= pid) places_.resize(pid + 1);
    std::vector<Fragment>& of_pid = places_[pid];
    if (of_pid.size() <= tid) of_pid.resize(tid + 1);
    Fragment& place = of_pid[tid];
    if (place.empty())
      place = Fragment(layout_.pid + std::to_string(pid) + layout_.tid + std::to_string(tid) + layout_.ts);
    return place;
  }
  void AddProcess(std::string_view device, std::string_view what);
  void AddSnapshot(const TensorDescription& description);

  const StepStats& step_;
  const CompatibleOptions& options_;
  const CompatibleLayout layout_;
  Output* output_;
  bool any_event_ = false;

  std::vector<std::vector<Fragment>> places_;    // by pid and lane
  std::vector<std::vector<Times>> moved_;        // by device; empty: times are the nodes' own
  std::vector<std::vector<uint32_t>> lanes_of_;  // by device and node; empty until AddTensors
  std::vector<uint32_t> compute_pids_;           // by device; of a repeated name all have the last one
  uint32_t next_pid_ = 0;
  uint64_t next_flow_id_ = 0;

  RepeatedNodes<Region> regions_;

  bool has_tensors_ = false;
  NameTable tensor_names_;
  std::vector<Input> inputs_;  // of the node at hand
  std::vector<Tensor> tensors_;
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
  if (output_ == nullptr) return;
  NextEvent();
  Number(layout_.process, pid);
  layout_.args_name.AppendTo(*output_);
  output_->Append('"');
  Check(AppendJsonText(*output_, device, BadText::kRefuse));
  output_->Append(what);
  output_->Append('"');
  layout_.args_close.AppendTo(*output_);
  layout_.event_close.AppendTo(*output_);
}

// All must be known before the first is looked for. Of many recordings none is, so they are collected when a node is
// met that makes or takes one.
void CompatibleWriter::AddTensors() {
  has_tensors_ = true;
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
  TensorDescription description;
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
    const Allocation& allocation = description.allocation;
    tensors_[number] = {op.start,    op.end,    allocation.requested_bytes,
                        op.end,      object_id, tensors_pid,
                        compute_pid, op.lane,   allocators_.Insert(allocation.allocator_name).number};
    if (!options_.show_memory) continue;
    const int64_t snapshot_time = Subtract(op.end, 1);
    if (output_ == nullptr) continue;
    Start(layout_.created, name, tensors_pid, op.lane, op.start);
    Number(layout_.id, object_id);
    layout_.event_close.AppendTo(*output_);
    Start(layout_.snapshot, name, tensors_pid, op.lane, snapshot_time);
    Number(layout_.id, object_id);
    AddSnapshot(description);
    layout_.event_close.AppendTo(*output_);
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
      inputs_.clear();
      AddRegion(node, op, pid, from_tracer, follow_inputs);
      if (inputs_.empty()) return;
      if (!has_tensors_) AddTensors();
      for (const Input& input : inputs_) Consume(input, op, pid);
    });
  }
}

void CompatibleWriter::AddRegion(const Node& node, const Op& op, uint32_t pid, bool from_tracer, bool follow_inputs) {
  const Region* const again = regions_.Find(node, from_tracer, [&](Region& region) {
    const RegionLabel label = ReadRegionLabel(node, from_tracer);
    TextOutput start;
    AppendRegionStart(start, label);
    TextOutput end;
    AppendRegionEnd(end, label);
    region = {Fragment(start.text()), Fragment(end.text()), label.inputs};
  });
  const RegionLabel label = again != nullptr ? RegionLabel{{}, {}, again->inputs} : ReadRegionLabel(node, from_tracer);
  if (follow_inputs) AskForInputs(label.inputs);
  if (output_ == nullptr) return;
  NextEvent();
  again != nullptr ? again->start.AppendTo(*output_) : AppendRegionStart(*output_, label);
  PlaceAndTime(pid, op.lane, op.start);
  Number(layout_.dur, op.duration);
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
  layout_.region.AppendTo(output);
  Check(AppendJsonString(output, label.op, BadText::kRefuse));
}

void CompatibleWriter::AppendRegionEnd(Output& output, const RegionLabel& label) const {
  layout_.args_name.AppendTo(output);
  Check(AppendJsonString(output, label.name, BadText::kRefuse));
  layout_.args_op.AppendTo(output);
  Check(AppendJsonString(output, label.op, BadText::kRefuse));
  uint64_t input = 0;
  ForEachInput(label.inputs, [&](std::string_view text) {
    layout_.args_input.AppendTo(output);
    output.AppendNumber(input++);
    layout_.args_input_end.AppendTo(output);
    Check(AppendJsonString(output, text, BadText::kRefuse));
  });
  layout_.args_close.AppendTo(output);
  layout_.event_close.AppendTo(output);
}

// Where the inputs stand in the table is fetched from memory while the node is written.
void CompatibleWriter::AskForInputs(std::string_view inputs) {
  ForEachInput(inputs, [&](std::string_view name) {
    inputs_.push_back({name, NameTable::Hash(name)});
    tensor_names_.PrefetchSlot(inputs_.back().hash);
  });
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
  Tensor& tensor = tensors_[number];
  tensor.last_unref = std::max(tensor.last_unref, Subtract(op.end, 1));
  if (!options_.show_dataflow || (tensor.compute_pid == pid && tensor.lane == op.lane)) return;
  const auto flow_id = static_cast<int64_t>(next_flow_id_++);
  if (output_ == nullptr) return;
  Start(layout_.flow_start, name, tensor.compute_pid, tensor.lane, tensor.producer_end);
  Number(layout_.id, flow_id);
  layout_.event_close.AppendTo(*output_);
  Start(layout_.flow_end, name, pid, op.lane, op.start);
  Number(layout_.id, flow_id);
  layout_.event_close.AppendTo(*output_);
}

// By allocator. Python sorts by name as well; names make no difference to what is drawn, nor to the maximum.
std::vector<std::vector<Change>> CompatibleWriter::SortedChanges() const {
  std::vector<std::vector<Change>> changes(allocators_.size());
  for (uint32_t number = 0; number < tensors_.size(); ++number) {
    const Tensor& tensor = tensors_[number];
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
std::vector<uint32_t> AllocatorOrder(const std::vector<Tensor>& tensors, size_t num_allocators) {
  std::vector<bool> seen(num_allocators, false);
  std::vector<uint32_t> order;
  for (const Tensor& tensor : tensors) {
    if (!seen[tensor.allocator]) order.push_back(tensor.allocator);
    seen[tensor.allocator] = true;
  }
  return order;
}

void CompatibleWriter::AddMemory() {
  for (uint32_t number = 0; number < tensors_.size(); ++number) {
    const Tensor& tensor = tensors_[number];
    Start(layout_.deleted, tensor_names_[number], tensor.tensors_pid, 0, tensor.last_unref);
    Number(layout_.id, tensor.object_id);
    layout_.event_close.AppendTo(*output_);
  }
  const std::vector<std::vector<Change>> changes = SortedChanges();
  for (const uint32_t allocator : AllocatorOrder(tensors_, allocators_.size())) {
    const std::string_view name = allocators_[allocator];
    int64_t total = 0;
    for (const Change& change : changes[allocator]) {
      total = Add(total, change.num_bytes);
      Start(layout_.counter, name, 0, 0, change.time);
      layout_.args_counter.AppendTo(*output_);
      Text(name);
      Number(layout_.args_counter_value, total);
      layout_.args_close.AppendTo(*output_);
      layout_.event_close.AppendTo(*output_);
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
  for (const uint32_t allocator : AllocatorOrder(tensors_, allocators_.size())) {
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
    std::vector<bool> alive(tensors_.size(), false);
    for (size_t i = 0; i < num_changes; ++i) alive[of_allocator[i].tensor] = of_allocator[i].num_bytes >= 0;
    for (size_t i = 0; i < num_changes; ++i) {
      if (!alive[of_allocator[i].tensor]) continue;
      alive[of_allocator[i].tensor] = false;
      maximum.tensors.emplace_back(tensor_names_[of_allocator[i].tensor]);
    }
  }
  return maximums;
}

void CompatibleWriter::AddSnapshot(const TensorDescription& description) {
  layout_.args_snapshot.AppendTo(*output_);
  Text(DescriptionText(description, options_.data_type_names));
  layout_.args_snapshot_close.AppendTo(*output_);
}

}  // namespace

void WriteCompatible(const StepStats& step, const CompatibleOptions& options, Output& output) {
  CompatibleWriter(step, options, &output).Write();
}

std::vector<AllocatorMaximum> AllocatorMaximums(const StepStats& step, const CompatibleOptions& options) {
  return CompatibleWriter(step, options, nullptr).Maximums();
}

}  // namespace collector::convert
