#include "draw/memory_changes.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "stepstats/activity.h"
#include "stepstats/labels.h"
#include "stepstats/name_table.h"
#include "stepstats/waiting_names.h"

namespace collector::draw {

using stepstats::Allocation;
using stepstats::AllocationRecord;
using stepstats::AllocatorMemory;
using stepstats::Device;
using stepstats::NameTable;
using stepstats::Node;
using stepstats::Span;
using stepstats::StepStats;
using stepstats::TensorDescription;
using stepstats::WaitingNames;

namespace {

class Allocators {
 public:
  uint32_t number_of(std::string_view name) {
    const auto [number, is_new] = names_.insert(name);
    if (is_new) changes_.emplace_back();
    return number;
  }
  std::vector<Delta>& operator[](uint32_t number) { return changes_[number]; }

  std::vector<AllocatorChanges> take(bool estimated) {
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

std::vector<AllocatorChanges> from_records(const StepStats& step, const std::vector<const Device*>& devices,
                                           const std::function<bool(int64_t)>& is_plausible) {
  Allocators allocators;
  AllocatorMemory memory;
  for (const Device* device : devices) {
    step.for_each_node(*device, [&](const Node& node) {
      for (const std::string_view message : node.memory) {
        step.read_memory(message, memory);
        for (const AllocationRecord& record : memory.records) {
          int64_t wall_ns;
          if (__builtin_mul_overflow(record.time_us, int64_t{1000}, &wall_ns) || !is_plausible(wall_ns)) continue;
          allocators[allocators.number_of(memory.allocator_name)].push_back({wall_ns, record.num_bytes});
        }
      }
    });
  }
  return allocators.take(false);
}

// The memory of tensors, from their op's start to their last use. In TensorFlow, an op's first output has the op's
// name, and further outputs append a colon and their number.
class Tensors {
 public:
  void add(std::string_view op, size_t output, std::string_view allocator, const Span& span, int64_t num_bytes) {
    const uint32_t number = allocators_.number_of(allocator);
    std::vector<Delta>& changes = allocators_[number];
    changes.push_back({span.start_ns, num_bytes});
    changes.push_back({span.end_ns(), -num_bytes});
    const Place end{number, changes.size() - 1};
    if (added_.push(output == 0 ? op : name_of_later(op, output), end)) settle_added();
  }

  // Must be called after all tensors were added: consumers may come before the tensors that they consume.
  void use(std::string_view input, int64_t end_ns) {
    settle_added();
    if (used_.push(input, end_ns)) settle_used();
  }

  std::vector<AllocatorChanges> take() {
    settle_used();
    return allocators_.take(true);
  }

 private:
  // The index of a tensor's end among the changes.
  struct Place {
    uint32_t allocator;
    size_t change;
  };

  std::string_view name_of_later(std::string_view op, size_t output) {
    std::string made = std::string(op) + ":" + std::to_string(output);
    const uint32_t known = names_.find(made);
    return known == NameTable::kNone ? std::string_view(made_names_.emplace_back(std::move(made))) : names_[known];
  }

  void settle_added() {
    // Loops create outputs with equal names; inputs refer to the last of them, and each output counts by itself.
    added_.drain([this](const auto& item) {
      const uint32_t number = names_.insert(item.name, item.hash).number;
      last_of_.resize(names_.size());
      last_of_[number] = item.payload;
    });
  }

  void settle_used() {
    struct Found {
      uint32_t number;
      int64_t end_ns;
    };
    Found found[WaitingNames<int64_t>::kMost];
    size_t count = 0;
    used_.drain([&](const auto& item) {
      uint32_t number = names_.find(item.name, item.hash);
      if (number == NameTable::kNone) {
        const size_t cut = item.name.rfind("/_");  // a suffix that sending between devices adds
        if (cut == 0 || cut == std::string_view::npos) return;
        number = names_.find(item.name.substr(0, cut));
        if (number == NameTable::kNone) return;
      }
      __builtin_prefetch(&last_of_[number]);
      found[count++] = {number, item.payload};
    });
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&end_of(found[i].number));
    for (size_t i = 0; i < count; ++i) end_of(found[i].number) = std::max(end_of(found[i].number), found[i].end_ns);
  }

  // The end of the last tensor of that name.
  int64_t& end_of(uint32_t number) {
    const Place& place = last_of_[number];
    return allocators_[place.allocator][place.change].time_ns;
  }

  NameTable names_;
  std::deque<std::string> made_names_;
  std::vector<Place> last_of_;
  Allocators allocators_;
  WaitingNames<Place> added_{names_};
  WaitingNames<int64_t> used_{names_};
};

std::vector<AllocatorChanges> from_tensors(const StepStats& step, const std::vector<const Device*>& devices,
                                           const std::function<bool(int64_t)>& is_plausible) {
  struct Use {
    std::string_view inputs;
    int64_t end_ns;
  };
  Tensors tensors;
  std::deque<Use> uses;  // a deque, because a vector would need twice the memory while it grows
  TensorDescription description;
  for (const Device* device : devices) {
    step.for_each_node(*device, [&](const Node& node) {
      const Span span = span_of(node);
      if (!span.valid() || !is_plausible(span.start_ns) || !is_plausible(span.end_ns())) return;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        step.read_output(node.outputs[i], description);
        const Allocation& allocation = description.allocation;
        if (allocation.requested_bytes <= 0) continue;
        tensors.add(node.name, i, allocation.allocator_name, span, allocation.requested_bytes);
      }
      const std::string_view inputs = stepstats::parse_op_label(node.label).inputs;
      if (!inputs.empty()) uses.push_back({inputs, span.end_ns()});
    });
  }
  for (const Use& use : uses) {
    stepstats::for_each_input(use.inputs, [&](std::string_view input) { tensors.use(input, use.end_ns); });
  }
  return tensors.take();
}

}  // namespace

std::vector<AllocatorChanges> read_memory_changes(const StepStats& step, const std::vector<const Device*>& devices,
                                                  bool may_have_records,
                                                  const std::function<bool(int64_t)>& is_plausible) {
  if (may_have_records) {
    std::vector<AllocatorChanges> recorded = from_records(step, devices, is_plausible);
    if (!recorded.empty()) return recorded;
  }
  return from_tensors(step, devices, is_plausible);
}

}  // namespace collector::draw
