// The contents of a drawing before they become a file: the events, and the interface of their writers.
//
// The drawing of a step (step_drawing.h) reads StepStats wire bytes and calls a TraceVisitor. Every file format is one
// visitor: chrome_writer.h writes Chrome JSON, perfetto_writer.h writes Perfetto's track events. A visitor needs no
// knowledge of StepStats, lanes or filters.
//
// A visitor may rely on the order of the calls:
//   1. on_begin, once.
//   2. on_process, before everything that belongs to the process.
//   3. on_track and on_counter_track, before their first slice or value.
//   4. on_slice: per track in the order of starts. Two slices of a track never partly overlap: the next slice starts at
//      or after the end of the previous one or, on tracks with `nests`, lies entirely inside an open slice (the outer
//      slice comes first, also if both start together). A stack per track is therefore enough, and each slice can be
//      written with begin and end at once.
//   5. on_value: per counter track in the order of time, with one value for each time.
//   6. on_instant: at any time after on_begin.
//   7. on_end, once.
//
// Views (std::string_view, spans of Argument) are valid only during the call. Times are ns since the base passed to
// on_begin; they and every start + duration are between 0 and 2^53.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stepstats/category.h"

namespace collector::draw {

struct Process {
  uint32_t pid;            // unique in the file; viewers should order processes by it
  std::string_view name;   // for display: "GPU 0", "rank 3 GPU 0", "CPU 0"
  std::string_view label;  // a rank or step to display beside the name; may be empty
};

struct Track {
  uint32_t pid;
  uint32_t tid;                        // unique in the file over all processes, and no pid; rows are ordered by it
  std::string_view name;               // "stream 7", "stream 7 lane 2", "python3 (thread 4711)"
  std::string_view device;             // its name in StepStats: "/gpu:0/stream:7"
  uint64_t os_thread_id;               // the operating system's thread id; 0: not a thread
  uint32_t process_id;                 // of the calls of a thread; 0: not known
  std::optional<uint32_t> context_id;  // of a stream's activities; no value: not known
  bool nests;                          // whether slices may lie inside slices
  // Repeats the slices of the streams. Formats with collapsed tracks show it collapsed, after the counters.
  bool is_copies;
};

struct Argument {
  enum class Kind : uint8_t {
    kNumber,   // number
    kText,     // text with arbitrary bytes: visitors convert it to valid UTF-8
    kNumbers,  // text, comma-separated integers such as "8,1,1"
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
  std::string_view name;  // arbitrary bytes
  stepstats::Category category;
  uint32_t color;  // 0xAARRGGBB, as the program stated it; 0: none
  const Argument* arguments;
  size_t num_arguments;
  // Slices of one step with the same number other than 0 have the same name, category and colour, and their first
  // `num_alike_arguments` arguments are equal. A visitor may write these parts once and copy them.
  uint32_t alike;
  size_t num_alike_arguments;
  // Arrows from launching calls. Each arrow has an id (from 1 on) that exactly two slices of the file have: the call,
  // in [first_flow_out, first_flow_out + num_flows_out), and the activity that it launched, as flow_in. 0: none.
  uint64_t first_flow_out;
  uint64_t num_flows_out;
  uint64_t flow_in;
  // The same for arrows from the end of an activity to the end of the wait that it held up, which ends at the same time
  // or later. The activity lasts at least 2 ns, and the wait at least 1 ns.
  uint64_t first_wait_out;
  uint64_t num_waits_out;
  uint64_t wait_in;
  // The same for arrows from the start of a call that records a CUDA event to the start of a stream's wait for it,
  // which starts at the same time or later.
  uint64_t first_event_out;
  uint64_t num_events_out;
  uint64_t event_in;
  // The same for arrows from the start of an op to the start of its backward pass, which starts at the same time or
  // later.
  uint64_t first_backward_out;
  uint64_t num_backwards_out;
  uint64_t backward_in;
};

struct CounterTrack {
  uint32_t pid;
  uint32_t id;            // unique in the file
  std::string_view name;  // "memory GPU_0_bfc", "HtoD in flight", "busy streams"
  std::string_view unit;  // "bytes", "streams"; also the value's name in formats that require one
};

struct Value {
  uint32_t pid;
  uint32_t counter_id;
  std::string_view counter_name;
  std::string_view unit;
  int64_t time_ns;
  int64_t value;
};

// An event without duration that concerns the whole file, e.g. a loss or a step's start.
struct Instant {
  int64_t time_ns;
  std::string_view name;
  std::string_view details;  // may be empty
};

struct Summary {
  uint64_t slices = 0;  // drawn
  uint64_t flows = 0;
  uint64_t values = 0;      // of counters
  uint64_t left_out = 0;    // slices left out because of max_events, the shortest ones
  int64_t left_out_ns = 0;  // their total duration
  int64_t longest_left_out_ns = 0;
  uint64_t filtered = 0;  // slices left out by the caller's filters
  uint64_t untimed = 0;   // nodes that cannot be drawn: no start, an end before the start, or far from all others
  int64_t base_ns = 0;    // wall time of time 0
  int64_t end_ns = 0;     // the last end
  uint32_t next_counter_id = 0;  // for the next step in the same file
  uint64_t next_flow_id = 0;
};

class TraceVisitor {
 public:
  virtual ~TraceVisitor() = default;

  // `summary` contains all counts that are known before drawing, i.e. all except flows, values and next_*. Its slices
  // are the nodes that are drawn: those of CUDA graphs are drawn once more, inside the slices of their launches.
  virtual void on_begin(const Summary& summary) = 0;
  virtual void on_process(const Process& process) = 0;
  virtual void on_track(const Track& track) = 0;
  virtual void on_slice(const Slice& slice) = 0;
  virtual void on_counter_track(const CounterTrack& counter) = 0;
  virtual void on_value(const Value& value) = 0;
  virtual void on_instant(const Instant& instant) = 0;
  virtual void on_end(const Summary& summary) = 0;
};

}  // namespace collector::draw
