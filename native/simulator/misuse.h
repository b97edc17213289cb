// Misuses of CUPTI by a client. The real library crashes, deadlocks or silently misbehaves; the simulator counts them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace collector::simulator {

enum class Misuse : size_t {
  kAbsentFunction,
  kBufferDeclined,
  kBufferInUse,
  kBufferMisaligned,
  kBufferNotZeroed,
  kBufferTooSmall,
  kCallInCallback,
  kCallInForkedChild,
  kCallbacksAfterEnable,
  kDisableDeadlock,
  kFinalize,
  kFlushInCallback,
  kNoBufferCallbacks,
  kNoDriver,
  kOlderDriver,
  kPeerCopiesBeforeGraph,
  kSerialisingKernelKind,
  kTimestampCallbackAgain,
  kCount,
};

struct MisuseRow {
  const char* name;
  bool fatal;  // the real library crashes or hangs
  const char* description;
};

inline constexpr MisuseRow kMisuses[] = {
    {"absent_function", false, "a function was called which the simulated CUPTI version does not have"},
    {"buffer_declined", true, "a buffer request was answered with null before API version 27, which can crash"},
    {"buffer_in_use", false, "a buffer was handed out which CUPTI still held"},
    {"buffer_misaligned", false, "a buffer was not aligned to 8 bytes"},
    {"buffer_not_zeroed", false, "zeroed buffers were promised (attribute 5), but a used part was not zero"},
    {"buffer_too_small", false, "a buffer could not hold a single record"},
    {"call_in_callback", false, "CUPTI or the driver was called from within a buffer callback, which can deadlock"},
    {"call_in_forked_child", true, "CUPTI was called in a process forked from the one that opened it"},
    {"callbacks_after_enable", false, "buffer callbacks were registered after the first activity kind was enabled"},
    {"disable_deadlock", true, "CONCURRENT_KERNEL was disabled on 130000 while kernels were unfinished"},
    {"finalize", true, "cuptiFinalize was called before 12.6 after CUDA graphs had been launched"},
    {"flush_in_callback", true, "a flush was requested inside a buffer callback"},
    {"no_buffer_callbacks", false, "an activity kind was enabled before buffer callbacks were registered"},
    {"no_driver", false, "libcupti was called although the driver is only the toolkit's stub; 13.2 dies of it"},
    {"older_driver", true, "a 13.2 library was called although the driver is older, which recurses without end"},
    {"peer_copies_before_graph", false,
     "before 13.5, MEMCPY2 was enabled during a copy on a device, and a later session had the first launch of a graph"},
    {"serialising_kernel_kind", false, "KERNEL was enabled instead of CONCURRENT_KERNEL: kernels run one by one"},
    {"timestamp_callback_again", false, "the timestamp callback was registered again: first kernels in a wrong clock"},
};
inline constexpr size_t kMisuseCount = static_cast<size_t>(Misuse::kCount);
static_assert(sizeof(kMisuses) / sizeof(kMisuses[0]) == kMisuseCount);

class MisuseCounters {
 public:
  explicit MisuseCounters(bool abort_on_fatal) : abort_on_fatal_(abort_on_fatal) {}

  void count(Misuse misuse);
  uint64_t of(size_t index) const { return counts_[index].load(std::memory_order_relaxed); }

 private:
  const bool abort_on_fatal_;
  std::array<std::atomic<uint64_t>, kMisuseCount> counts_{};
};

}  // namespace collector::simulator
