// How TensorFlow's events are laid out as JSON.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "write/fragment.h"

namespace collector::convert {

// The pieces of text between the values of the events, with the quotes of texts: all that differs between pretty and
// compact. An event begins with the comma behind the one before; that of a process, which may be the first, does not.
struct CompatibleLayout {
  explicit CompatibleLayout(bool is_pretty)
      : pretty(is_pretty),
        trace_open(pretty ? "{\n    \"traceEvents\": [\n        " : "{\"traceEvents\":["),
        trace_close(pretty ? "\n    ]\n}" : "]}"),
        next_event(NextEvent()),
        event_close(Close(2)),
        process(Open() + Key(3, "name", true) + "\"process_name\"" + Key(3, "ph") + "\"M\"" + Key(3, "pid")),
        region(Start("X", "Op")),
        created(Start("N", "Tensor")),
        snapshot(Start("O", "Tensor")),
        deleted(Start("D", "Tensor")),
        flow_start(Start("s", "DataFlow")),
        flow_end(Close(2) + Start("t", "DataFlow")),
        counter(Start("C", "Memory")),
        pid("\"" + Key(3, "pid")),
        tid(Key(3, "tid")),
        ts(Key(3, "ts")),
        dur(Key(3, "dur")),
        id(Key(3, "id")),
        args_name(Key(3, "args") + "{" + Key(4, "name", true) + "\""),
        args_op("\"" + Key(4, "op") + "\""),
        args_input("\"" + KeyStart(4) + "input"),
        args_input_end(pretty ? "\": \"" : "\":\""),
        args_text_close("\"" + Close(3) + Close(2)),
        args_snapshot(Key(3, "args") + "{" + Key(4, "snapshot", true) + "{" + Key(5, "tensor_description", true) +
                      "\""),
        args_snapshot_close("\"" + Close(4) + Close(3) + Close(2)),
        args_counter(Key(3, "args") + "{" + Indent(4) + "\""),
        args_counter_value(pretty ? "\": " : "\":"),
        args_counter_close(Close(3) + Close(2)) {
    for (size_t i = 0; i < args_inputs.size(); ++i) {
      args_inputs[i] = Fragment("\"" + Key(4, ("input" + std::to_string(i)).c_str()) + "\"");
    }
  }

  // More than the pieces and the numbers of an event, or of an arrow's two, may write to. Their texts are not counted.
  static constexpr size_t kEventRoom = 2048;

  bool pretty;
  Fragment trace_open, trace_close, next_event, event_close;
  Fragment process, region, created, snapshot, deleted, flow_start, flow_end, counter;  // flow_end closes flow_start
  std::string pid, tid, ts;
  Fragment dur, id;
  Fragment args_name, args_op, args_input, args_input_end, args_text_close;
  std::array<Fragment, 8> args_inputs;  // the first inputs, which most ops have no more of
  Fragment args_snapshot, args_snapshot_close, args_counter, args_counter_value, args_counter_close;

 private:
  static std::string Open() { return "{"; }
  std::string NextEvent() const { return pretty ? ",\n        " : ","; }
  std::string Indent(int depth) const { return pretty ? "\n" + std::string(4 * static_cast<size_t>(depth), ' ') : ""; }
  std::string Close(int depth) const { return Indent(depth) + "}"; }
  std::string KeyStart(int depth, bool first = false) const { return (first ? "" : ",") + Indent(depth) + "\""; }
  std::string Key(int depth, const char* key, bool first = false) const {
    return KeyStart(depth, first) + key + (pretty ? "\": " : "\":");
  }
  std::string Start(const char* phase, const char* category) const {
    return NextEvent() + Open() + Key(3, "ph", true) + "\"" + phase + "\"" + Key(3, "cat") + "\"" + category + "\"" +
           Key(3, "name") + "\"";
  }
};

}  // namespace collector::convert
