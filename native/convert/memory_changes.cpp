#include "convert/memory_changes.h"

#include <algorithm>
#include <deque>
#include <string>

#include "convert/activity.h"
#include "convert/labels.h"
#include "convert/name_table.h"

namespace collector::convert {
namespace {

class Allocators {
 public:
  std::vector<Delta>& operator[](std::string_view name) {
    const auto [number, is_new] = names_.Insert(name);
    if (is_new) changes_.emplace_back();
    return changes_[number];
  }

  std::vector<AllocatorChanges> Take(bool estimated) {
    std::vector<AllocatorChanges> all;
    all.reserve(changes_.size());
    for (uint32_t number = 0; number < changes_.size(); ++number) {
      all.push_back({names_[number], estimated, std::move(changes_[number])});
    }
    return all;
  }

 private:
  NameTable names_;
  std::vector<std::vector<Delta>> changes_;
};

std::vector<AllocatorChanges> FromRecords(const StepStats& step, const std::vector<const Device*>& devices,
                                          const std::function<bool(int64_t)>& is_plausible) {
  Allocators allocators;
  AllocatorMemory memory;
  for (const Device* device : devices) {
    step.ForEachNode(*device, [&](const Node& node) {
      for (const std::string_view message : node.memory) {
        step.ReadMemory(message, memory);
        for (const AllocationRecord& record : memory.records) {
          int64_t wall_ns;
          if (__builtin_mul_overflow(record.time_us, int64_t{1000}, &wall_ns) || !is_plausible(wall_ns)) continue;
          allocators[memory.allocator_name].push_back({wall_ns, record.num_bytes});
        }
      }
    });
  }
  return allocators.Take(false);
}

// Names as TensorFlow gives them: an op's first output has the op's name, others have their number behind a colon.
class Tensors {
 public:
  struct Tensor {
    int64_t start_ns;
    int64_t end_ns;
    int64_t num_bytes;
    std::string_view allocator;
  };

  void Add(std::string_view op, size_t output, const Tensor& tensor) {
    std::string_view name = op;
    if (output > 0) {
      std::string made = std::string(op) + ":" + std::to_string(output);
      const uint32_t known = names_.Find(made);
      name = known == NameTable::kNone ? std::string_view(made_names_.emplace_back(made)) : names_[known];
    }
    // Of outputs with one name, as loops make them, inputs mean the last; each counts on its own.
    const uint32_t number = names_.Insert(name).number;
    last_of_.resize(names_.size());
    last_of_[number] = static_cast<uint32_t>(tensors_.size());
    tensors_.push_back(tensor);
  }

  void Use(std::string_view input, int64_t end_ns) {
    uint32_t number = names_.Find(input);
    if (number == NameTable::kNone) {
      const size_t cut = input.rfind("/_");  // what sending between devices adds
      if (cut == 0 || cut == std::string_view::npos) return;
      number = names_.Find(input.substr(0, cut));
      if (number == NameTable::kNone) return;
    }
    Tensor& tensor = tensors_[last_of_[number]];
    tensor.end_ns = std::max(tensor.end_ns, end_ns);
  }

  const std::vector<Tensor>& all() const { return tensors_; }

 private:
  NameTable names_;
  std::deque<std::string> made_names_;
  std::vector<uint32_t> last_of_;
  std::vector<Tensor> tensors_;
};

std::vector<AllocatorChanges> FromTensors(const StepStats& step, const std::vector<const Device*>& devices,
                                          const std::function<bool(int64_t)>& is_plausible) {
  struct Use {
    std::string_view inputs;
    int64_t end_ns;
  };
  Tensors tensors;
  std::vector<Use> uses;
  TensorDescription description;
  for (const Device* device : devices) {
    step.ForEachNode(*device, [&](const Node& node) {
      const Span span = SpanOf(node);
      if (!span.valid() || !is_plausible(span.start_ns) || !is_plausible(span.end_ns())) return;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        step.ReadOutput(node.outputs[i], description);
        const Allocation& allocation = description.allocation;
        if (allocation.requested_bytes <= 0) continue;
        tensors.Add(node.name, i,
                    {span.start_ns, span.end_ns(), allocation.requested_bytes, allocation.allocator_name});
      }
      const std::string_view inputs = ParseOpLabel(node.label).inputs;
      if (!inputs.empty()) uses.push_back({inputs, span.end_ns()});
    });
  }
  // Consumers may come before what they consume.
  for (const Use& use : uses) {
    ForEachInput(use.inputs, [&](std::string_view input) { tensors.Use(input, use.end_ns); });
  }
  Allocators allocators;
  for (const Tensors::Tensor& tensor : tensors.all()) {
    std::vector<Delta>& changes = allocators[tensor.allocator];
    changes.push_back({tensor.start_ns, tensor.num_bytes});
    changes.push_back({tensor.end_ns, -tensor.num_bytes});
  }
  return allocators.Take(true);
}

}  // namespace

std::vector<AllocatorChanges> ReadMemoryChanges(const StepStats& step, const std::vector<const Device*>& devices,
                                                bool may_have_records,
                                                const std::function<bool(int64_t)>& is_plausible) {
  if (may_have_records) {
    std::vector<AllocatorChanges> recorded = FromRecords(step, devices, is_plausible);
    if (!recorded.empty()) return recorded;
  }
  return FromTensors(step, devices, is_plausible);
}

}  // namespace collector::convert
