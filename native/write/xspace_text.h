// The events of an XSpace as the text of a Chrome trace, which `read/chrome_scanner.h` reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stepstats/wire.h"

namespace collector::write {

// What the events of a plane name by number.
struct PlaneTexts {
  struct EventMetadata {
    std::string name;
    std::string stats;  // of all events with this metadata; fields of an XEvent
  };
  std::unordered_map<int64_t, EventMetadata> events;
  std::unordered_map<int64_t, std::string> stats;
};

// Makes the text line by line. An event is as Python's json module writes it, with a comma behind it. Of stats with the
// same name, the last one counts; those whose values are bytes are counted and left out.
class XSpaceText {
 public:
  // Returns a finite number as Python writes it.
  using NumberText = std::function<std::string(double)>;

  explicit XSpaceText(NumberText number_text) : number_text_(std::move(number_text)) {}

  // The following lines are of this plane, which is the process `process` of the trace.
  void begin_plane(const PlaneTexts& texts, uint64_t process);
  // `line` is an XLine as protobuf writes it: each field once. It must live until the end of its events.
  void begin_line(std::string_view line, int64_t timestamp_ns, uint64_t thread);
  // Events of the line, about as many as fit into `num_bytes`; empty: there are no more. The text lives until the next
  // call. Throws WireError.
  std::string_view next(size_t num_bytes);

  // Stat -> the number of events with bytes as its value.
  const std::unordered_map<std::string, uint64_t>& not_kept() const { return not_kept_; }

 private:
  struct Event {
    std::string name;
    std::string stats;
  };
  struct Argument {
    uint32_t key;
    std::string value;
    uint64_t number;  // if it is a positive integer, else 0
  };

  uint32_t key_of(const std::string& text);
  std::string text_of_stat(int64_t number) const;
  void put_event(std::string_view message);
  void read_stats(std::string_view fields);
  void read_stat(std::string_view message);
  void read_value(uint32_t tag, stepstats::WireReader value, Argument& argument);
  Argument& argument_of(uint32_t key);
  void put_microseconds(int64_t base_ns, int64_t picoseconds);

  NumberText number_text_;
  std::unordered_map<std::string, uint64_t> not_kept_;
  std::unordered_map<uint64_t, uint64_t> correlation_ids_;  // that are too large -> those written

  // Of the plane. Texts are strings of JSON.
  std::unordered_map<int64_t, Event> events_;
  std::unordered_map<int64_t, std::string> stat_texts_;
  std::unordered_map<int64_t, uint32_t> keys_;
  std::vector<std::string> key_texts_;
  std::vector<std::string> key_names_;  // not as JSON
  std::unordered_map<std::string, uint32_t> keys_by_name_;
  uint64_t process_ = 0;
  uint32_t unnamed_ = 0;             // the key of stats without metadata
  uint32_t correlation_ = 0;         // the key of correlation ids
  uint32_t launch_correlation_ = 0;  // and of those of rows beside the streams of a GPU

  // Of the line.
  stepstats::WireReader line_{"", ""};
  int64_t timestamp_ns_ = 0;
  std::string place_;
  std::string text_;

  // Of the event.
  std::vector<Argument> arguments_;
  size_t num_arguments_ = 0;
  std::vector<size_t> argument_of_key_;  // by key: place + 1 among the arguments, or 0
};

}  // namespace collector::write
