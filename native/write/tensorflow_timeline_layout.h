// The JSON layout of TensorFlow's events.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "write/fragment.h"

namespace collector::write {

// The pieces of text between the values of the events, including the quotes of texts: the only difference between
// pretty and compact output. An event begins with the comma after the previous event, except that of a process, which
// may be the first.
struct TensorflowTimelineLayout {
  explicit TensorflowTimelineLayout(bool is_pretty)
      : pretty(is_pretty),
        trace_open(pretty ? "{\n    \"traceEvents\": [\n        " : "{\"traceEvents\":["),
        trace_close(pretty ? "\n    ]\n}" : "]}"),
        next_event(next_event_text()),
        event_close(close_text(2)),
        process(open_text() + key_text(3, "name", true) + "\"process_name\"" + key_text(3, "ph") + "\"M\"" +
                key_text(3, "pid")),
        region(start_text("X", "Op")),
        created(start_text("N", "Tensor")),
        snapshot(start_text("O", "Tensor")),
        deleted(start_text("D", "Tensor")),
        flow_start(start_text("s", "DataFlow")),
        flow_end(close_text(2) + start_text("t", "DataFlow")),
        counter(start_text("C", "Memory")),
        pid("\"" + key_text(3, "pid")),
        tid(key_text(3, "tid")),
        ts(key_text(3, "ts")),
        dur(key_text(3, "dur")),
        id(key_text(3, "id")),
        args_name(key_text(3, "args") + "{" + key_text(4, "name", true) + "\""),
        args_op("\"" + key_text(4, "op") + "\""),
        args_input("\"" + key_start_text(4) + "input"),
        args_input_end(pretty ? "\": \"" : "\":\""),
        args_text_close("\"" + close_text(3) + close_text(2)),
        args_snapshot(key_text(3, "args") + "{" + key_text(4, "snapshot", true) + "{" +
                      key_text(5, "tensor_description", true) + "\""),
        args_snapshot_close("\"" + close_text(4) + close_text(3) + close_text(2)),
        args_counter(key_text(3, "args") + "{" + indent_text(4) + "\""),
        args_counter_value(pretty ? "\": " : "\":"),
        args_counter_close(close_text(3) + close_text(2)) {
    for (size_t i = 0; i < args_inputs.size(); ++i) {
      args_inputs[i] = Fragment("\"" + key_text(4, ("input" + std::to_string(i)).c_str()) + "\"");
    }
  }

  // An upper limit for the pieces and numbers of an event, or of both events of an arrow, in bytes. Texts are not
  // included.
  static constexpr size_t kEventRoom = 2048;

  bool pretty;
  Fragment trace_open, trace_close, next_event, event_close;
  Fragment process, region, created, snapshot, deleted, flow_start, flow_end, counter;  // flow_end closes flow_start
  std::string pid, tid, ts;
  Fragment dur, id;
  Fragment args_name, args_op, args_input, args_input_end, args_text_close;
  std::array<Fragment, 8> args_inputs;  // the first inputs; most ops have no more
  Fragment args_snapshot, args_snapshot_close, args_counter, args_counter_value, args_counter_close;

 private:
  static std::string open_text() { return "{"; }
  std::string next_event_text() const { return pretty ? ",\n        " : ","; }
  std::string indent_text(int depth) const {
    return pretty ? "\n" + std::string(4 * static_cast<size_t>(depth), ' ') : "";
  }
  std::string close_text(int depth) const { return indent_text(depth) + "}"; }
  std::string key_start_text(int depth, bool first = false) const {
    return (first ? "" : ",") + indent_text(depth) + "\"";
  }
  std::string key_text(int depth, const char* key, bool first = false) const {
    return key_start_text(depth, first) + key + (pretty ? "\": " : "\":");
  }
  std::string start_text(const char* phase, const char* category) const {
    return next_event_text() + open_text() + key_text(3, "ph", true) + "\"" + phase + "\"" + key_text(3, "cat") + "\"" +
           category + "\"" + key_text(3, "name") + "\"";
  }
};

}  // namespace collector::write
