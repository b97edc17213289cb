#include "draw/memory_changes.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "stepstats/activity.h"
#include "stepstats/labels.h"
#include "stepstats/name_table.h"
#include "stepstats/waiting_names.h"

namespace collector::convert {
namespace {

class Allocators {
 public:
  uint32_t Number(std::string_view name) {
    const auto [number, is_new] = names_.Insert(name);
    if (is_new) changes_.emplace_back();
    return number;
  }
  std::vector<Delta>& operator[](uint32_t number) { return changes_[number]; }

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
          allocators[allocators.Number(memory.allocator_name)].push_back({wall_ns, record.num_bytes});
        }
      }
    });
  }
  return allocators.Take(false);
}

// What tensors hold from their op's start to their last use. An op's first output has the op's name, others have their
// number behind a colon, as TensorFlow names them.
class Tensors {
 public:
  void Add(std::string_view op, size_t output, std::string_view allocator, const Span& span, int64_t num_bytes) {
    const uint32_t number = allocators_.Number(allocator);
    std::vector<Delta>& changes = allocators_[number];
    changes.push_back({span.start_ns, num_bytes});
    changes.push_back({span.end_ns(), -num_bytes});
    const Place end{number, changes.size() - 1};
    if (added_.Push(output == 0 ? op : NameOfLater(op, output), end)) SettleAdded();
  }

  // To be called when all have been added: consumers may come before what they consume.
  void Use(std::string_view input, int64_t end_ns) {
    SettleAdded();
    if (used_.Push(input, end_ns)) SettleUsed();
  }

  std::vector<AllocatorChanges> Take() {
    SettleUsed();
    return allocators_.Take(true);
  }

 private:
  // Of a tensor's end among the changes.
  struct Place {
    uint32_t allocator;
    size_t change;
  };

  std::string_view NameOfLater(std::string_view op, size_t output) {
    std::string made = std::string(op) + ":" + std::to_string(output);
    const uint32_t known = names_.Find(made);
    return known == NameTable::kNone ? std::string_view(made_names_.emplace_back(std::move(made))) : names_[known];
  }

  void SettleAdded() {
    // Of outputs with one name, as loops make them, inputs mean the last; each counts on its own.
    added_.Drain([this](const auto& item) {
      const uint32_t number = names_.Insert(item.name, item.hash).number;
      last_of_.resize(names_.size());
      last_of_[number] = item.payload;
    });
  }

  void SettleUsed() {
    struct Found {
      uint32_t number;
      int64_t end_ns;
    };
    Found found[WaitingNames<int64_t>::kMost];
    size_t count = 0;
    used_.Drain([&](const auto& item) {
      uint32_t number = names_.Find(item.name, item.hash);
      if (number == NameTable::kNone) {
        const size_t cut = item.name.rfind("/_");  // what sending between devices adds
        if (cut == 0 || cut == std::string_view::npos) return;
        number = names_.Find(item.name.substr(0, cut));
        if (number == NameTable::kNone) return;
      }
      __builtin_prefetch(&last_of_[number]);
      found[count++] = {number, item.payload};
    });
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&End(found[i].number));
    for (size_t i = 0; i < count; ++i) End(found[i].number) = std::max(End(found[i].number), found[i].end_ns);
  }

  // When the last tensor of that name ends.
  int64_t& End(uint32_t number) {
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

std::vector<AllocatorChanges> FromTensors(const StepStats& step, const std::vector<const Device*>& devices,
                                          const std::function<bool(int64_t)>& is_plausible) {
  struct Use {
    std::string_view inputs;
    int64_t end_ns;
  };
  Tensors tensors;
  std::deque<Use> uses;  // many; a vector would hold twice as much while it grows
  TensorDescription description;
  for (const Device* device : devices) {
    step.ForEachNode(*device, [&](const Node& node) {
      const Span span = SpanOf(node);
      if (!span.valid() || !is_plausible(span.start_ns) || !is_plausible(span.end_ns())) return;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        step.ReadOutput(node.outputs[i], description);
        const Allocation& allocation = description.allocation;
        if (allocation.requested_bytes <= 0) continue;
        tensors.Add(node.name, i, allocation.allocator_name, span, allocation.requested_bytes);
      }
      const std::string_view inputs = ParseOpLabel(node.label).inputs;
      if (!inputs.empty()) uses.push_back({inputs, span.end_ns()});
    });
  }
  for (const Use& use : uses) {
    ForEachInput(use.inputs, [&](std::string_view input) { tensors.Use(input, use.end_ns); });
  }
  return tensors.Take();
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
