// The table of faults that can be injected, and the armed faults.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "threads/mutex.h"

namespace collector::simulator {

enum class Fault : size_t {
  kDroppedRecord,
  kZeroTimestamps,
  kZeroEnd,
  kReversedTimestamps,
  kShiftedTimestamps,
  kNullName,
  kLostApiRecord,
  kFailedCall,
  kLostActivityRecord,
  kLateCorrelation,
  kWrongGraphCorrelation,
  kHalfFullBuffers,
  kOutOfOrderBuffers,
  kWithheldBuffer,
  kKeptBuffer,
  kCutBuffer,
  kSlowCompletion,
  kUnknownKind,
  kInvalidKind,
  kError,
  kSecondSubscriber,
  kStubDriver,
  kPoolExhausted,
  kOtherDriverNumbers,
  kLostWhenDisabled,
  kEarlyRequest,
  kFailedKernel,
  kHeldFlush,
  kCount,
};

struct FaultRow {
  const char* name;
  const char* value;  // the meaning of `value`, or "" if it has none
  int64_t default_value;
  bool lasting;  // stays armed, unless a count is given
  const char* description;
};

inline constexpr FaultRow kFaults[] = {
    {"dropped_record", "", 0, false, "an activity record is dropped and counted by cuptiActivityGetNumDroppedRecords"},
    {"zero_timestamps", "", 0, false, "an activity record has start = end = 0, as when the device's pool ran dry"},
    {"zero_end", "", 0, false, "an activity record has end = 0"},
    {"reversed_timestamps", "", 0, false, "start and end of an activity record are swapped"},
    {"shifted_timestamps", "nanoseconds", 3'600'000'000'000, false,
     "start and end of an activity record are shifted: later, or earlier if negative"},
    {"null_name", "", 0, false, "a kernel record's name is a null pointer"},
    {"lost_api_record", "", 0, false, "the API records of a call are lost without being counted"},
    {"failed_call", "code", 719, false, "the API records of a call have this error, as of a kernel that failed"},
    {"lost_activity_record", "", 0, false, "an activity record is lost without being counted"},
    {"late_correlation", "", 0, false, "an external correlation record comes in a later buffer than its kernel"},
    {"wrong_graph_correlation", "", 0, false,
     "a kernel of a graph carries the id of the call before its launch, as in 13.1.75 after the first session"},
    {"half_full_buffer", "", 0, false, "a buffer is returned when it is half full"},
    {"out_of_order_buffer", "", 0, false, "a buffer is returned after the one that was filled after it"},
    {"withheld_buffer", "", 0, false, "a buffer is never returned"},
    {"kept_buffer", "", 0, false, "a buffer is returned only when return_kept_buffers is called"},
    {"cut_buffer", "bytes", 4, false,
     "the valid part of a returned buffer ends this many bytes inside its last record"},
    {"slow_completion", "milliseconds", 50, false, "a flushed buffer is returned this long after the flush call"},
    {"unknown_kind", "", 0, false,
     "a record of a kind from the future precedes an activity; GetNextRecord steps over it"},
    {"invalid_kind", "kind", 200, false, "a record precedes an activity for which GetNextRecord answers INVALID_KIND"},
    {"error", "code", 999, false, "the function named by `target` fails with this code and does nothing"},
    {"second_subscriber", "", 0, true, "another client, named by `target`, holds the subscription"},
    {"stub_driver", "", 0, true, "every driver function answers 34, as the toolkit's stub libcuda does"},
    {"pool_exhausted", "records per buffer", 100'000, true,
     "device buffers are not recycled: past pool limit x value, records have start = end = 0"},
    {"other_driver_numbers", "difference", 100, true,
     "the driver's numbers of contexts and streams differ from CUPTI's"},
    {"lost_when_disabled", "", 0, true, "work that has not finished when its kind is disabled is not recorded"},
    {"early_request", "", 0, true,
     "a flush requests the next buffer of a thread when it returns the last one, while a kind is enabled, as a forced "
     "flush did on an H100"},
    {"failed_kernel", "code", 700, false,
     "a kernel fails: all calls after its launch return this code, and the records that CUPTI then holds have no "
     "times"},
    {"held_flush", "", 0, true, "a flush returns only once the faults are cleared"},
};
inline constexpr size_t kFaultCount = static_cast<size_t>(Fault::kCount);
static_assert(sizeof(kFaults) / sizeof(kFaults[0]) == kFaultCount);

class Faults {
 public:
  // Arms a fault for `count` occasions (negative: permanently) after the first `skip` occasions. Returns false for an
  // unknown fault.
  bool arm(std::string_view name, int64_t count, int64_t skip, int64_t value, std::string_view target);
  void clear();

  // Whether any fault is armed; hot paths check this first.
  bool any() const { return armed_total_.load(std::memory_order_acquire) != 0; }
  bool armed(Fault fault) const {
    return armed_counts_[static_cast<size_t>(fault)].load(std::memory_order_acquire) != 0;
  }

  // Whether the fault strikes now; if so, `value` is set. `target` matters for faults that are armed for one target
  // only.
  bool strikes(Fault fault, int64_t* value = nullptr, std::string_view target = {},
               std::string* armed_target = nullptr) {
    return armed(fault) && strike(fault, value, target, armed_target);
  }

  uint64_t struck(size_t index) const { return struck_[index].load(std::memory_order_relaxed); }

 private:
  struct Armed {
    Fault fault;
    int64_t count;
    int64_t skip;
    int64_t value;
    std::string target;
  };

  bool strike(Fault fault, int64_t* value, std::string_view target, std::string* armed_target);

  threads::Mutex mutex_;
  std::atomic<uint32_t> armed_total_{0};
  std::vector<Armed> armed_ GUARDED_BY(mutex_);
  std::array<std::atomic<uint32_t>, kFaultCount> armed_counts_{};
  std::array<std::atomic<uint64_t>, kFaultCount> struck_{};
};

}  // namespace collector::simulator
