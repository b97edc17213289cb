// The picture before it is a file: the events that a drawing consists of, and the interface of their writers.
//
// The drawing of a step (step_drawing.h) reads StepStats wire bytes and calls a TraceVisitor. Every file format is
// one visitor: chrome_writer.h writes Chrome JSON; a Perfetto writer does the same with track events. A visitor needs
// no knowledge of StepStats, lanes or filters.
//
// Order of the calls, on which a visitor may rely:
//   1. on_begin, once.
//   2. on_process, before anything that belongs to it.
//   3. on_track and on_counter_track, before their first slice or value.
//   4. on_slice: on one track in the order of their starts. Two slices of one track never overlap in part: the next
//   starts
//      where the last ended or later, or, on tracks with `nests`, lies wholly inside an open one (which then comes
//      first, also where both start together). So a stack per track is enough, and each slice can be written as begin
//      and end at once.
//   5. on_value: on one counter track in the order of time, one value for each time.
//   6. on_instant: anywhere after on_begin.
//   7. on_end, once.
//
// Views (std::string_view, spans of Argument) live only as long as the call. Times are ns since the base given to
// on_begin, never negative, at most 2^53, and so is every start + duration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::convert {

enum class Category : uint8_t { kKernel, kMemcpy, kMemset, kOp, kApi, kSync, kOverhead, kOther };
inline constexpr size_t kCategories = 8;

// As in the file: "kernel", "memcpy", ...
std::string_view category_name(Category category);

struct Process {
  uint32_t pid;            // unique in the file; viewers should show processes in the order of these
  std::string_view name;   // for people: "GPU 0", "rank 3 GPU 0", "CPU 0"
  std::string_view label;  // a rank or step to show beside the name; may be empty
};

struct Track {
  uint32_t pid;
  uint32_t tid;             // unique in the file over all processes, never a pid; shown in the order of these
  std::string_view name;    // "stream 7", "stream 7 lane 2", "python3 (thread 4711)"
  std::string_view device;  // as in StepStats: "/gpu:0/stream:7"
  uint64_t os_thread_id;    // the thread as the operating system knows it; 0: not a thread
  bool nests;               // slices may lie inside slices
  bool is_copies;           // repeats what streams show: closed, after the counters, where a format knows closed tracks
};

struct Argument {
  enum class Kind : uint8_t {
    kNumber,   // number
    kText,     // text, any bytes: a visitor makes valid UTF-8 of it
    kNumbers,  // text, integers with commas between, such as "8,1,1"
  };
  std::string_view key;
  Kind kind;
  int64_t number;
  std::string_view text;
};

struct Slice {
  uint32_t pid;
  uint32_t tid;
  int64_t start_ns;
  int64_t duration_ns;
  std::string_view name;  // any bytes
  Category category;
  const Argument* arguments;
  size_t num_arguments;
  // Slices of one step with the same number other than 0 have the same name and category and begin with the same
  // `num_alike_arguments` arguments. A visitor may write them once and copy.
  uint32_t alike;
  size_t num_alike_arguments;
  // Arrows. Each has an id of its own (from 1 on) that exactly two slices of the file carry: the call that launched, in
  // [first_flow_out, first_flow_out + num_flows_out), and the activity it caused, as flow_in. 0: none.
  uint64_t first_flow_out;
  uint64_t num_flows_out;
  uint64_t flow_in;
  // The same of arrows from the end of an activity to the end of a wait that it held up, which ends no earlier. The
  // activity lasts at least 2 ns, and the wait 1 ns.
  uint64_t first_wait_out;
  uint64_t num_waits_out;
  uint64_t wait_in;
};

struct CounterTrack {
  uint32_t pid;
  uint32_t id;            // unique in the file
  std::string_view name;  // "memory GPU_0_bfc", "HtoD in flight", "busy streams"
  std::string_view unit;  // "bytes", "streams"; also the name of the value in formats that want one
};

struct Value {
  uint32_t pid;
  uint32_t counter_id;
  std::string_view counter_name;
  std::string_view unit;
  int64_t time_ns;
  int64_t value;
};

// Something to be seen that has no length and belongs to the whole file: a loss, a step's start.
struct Instant {
  int64_t time_ns;
  std::string_view name;
  std::string_view details;  // may be empty
};

struct Summary {
  uint64_t slices = 0;  // drawn
  uint64_t flows = 0;
  uint64_t values = 0;      // of counters
  uint64_t left_out = 0;    // slices left out for max_events; the shortest
  int64_t left_out_ns = 0;  // their durations together
  int64_t longest_left_out_ns = 0;
  uint64_t filtered = 0;  // slices that a filter of the caller's kept out
  uint64_t untimed = 0;   // nodes that cannot be drawn: no start, an end before the start, or far from all others
  int64_t base_ns = 0;    // wall time of time 0
  int64_t end_ns = 0;     // the last end
  uint32_t next_counter_id = 0;  // for a further step in the same file
  uint64_t next_flow_id = 0;
};

class TraceVisitor {
 public:
  virtual ~TraceVisitor() = default;

  // All that is counted before anything is drawn: everything in Summary but what only drawing counts (slices, flows,
  // values, next_*).
  virtual void on_begin(const Summary& summary) = 0;
  virtual void on_process(const Process& process) = 0;
  virtual void on_track(const Track& track) = 0;
  virtual void on_slice(const Slice& slice) = 0;
  virtual void on_counter_track(const CounterTrack& counter) = 0;
  virtual void on_value(const Value& value) = 0;
  virtual void on_instant(const Instant& instant) = 0;
  virtual void on_end(const Summary& summary) = 0;
};

}  // namespace collector::convert
