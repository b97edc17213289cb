// What the nodes of all devices of a recorded step have in common: their fields, and how they are measured and written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stepstats/activity_encoder.h"
#include "stepstats/recorded_table.h"
#include "stepstats/row_order.h"
#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {

// Fields of NodeExecStats.
inline constexpr uint32_t kNodeName = 1;
inline constexpr uint32_t kStartMicros = 2;
inline constexpr uint32_t kOpEndMicros = 4;
inline constexpr uint32_t kEndMicros = 5;
inline constexpr uint32_t kMemory = 6;
inline constexpr uint32_t kOutput = 7;
inline constexpr uint32_t kLabel = 8;
inline constexpr uint32_t kScheduledMicros = 9;
inline constexpr uint32_t kThreadId = 10;
inline constexpr uint32_t kStartNanos = 13;
inline constexpr uint32_t kOpEndNanos = 15;
inline constexpr uint32_t kEndNanos = 16;
inline constexpr uint32_t kScheduledNanos = 17;
inline constexpr uint32_t kCorrelationId = 100001;
inline constexpr uint32_t kActivity = 100002;
inline constexpr uint32_t kOpEnd = 100003;
// Fields of the enclosing messages.
inline constexpr uint32_t kDevices = 1;     // of StepStats
inline constexpr uint32_t kDeviceName = 1;  // of DeviceStepStats
inline constexpr uint32_t kNodes = 2;

inline int64_t floor_micros(int64_t ns) {
  const int64_t micros = ns / 1000;
  return ns % 1000 < 0 ? micros - 1 : micros;
}

// Times that exceed 64 bits wrap around, so that reading them back restores them.
inline int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

inline std::string_view text_at(const std::vector<std::string>& texts, int64_t index) {
  if (index < 0 || static_cast<uint64_t>(index) >= texts.size())
    throw std::invalid_argument("a name that is not there");
  return texts[static_cast<size_t>(index)];
}

// Texts and messages encoded with tag and length, ready to be copied into nodes.
class EncodedFields {
 public:
  size_t size() const { return ends_.size() - 1; }

  // An empty text is left out.
  void add_text(uint32_t field, std::string_view text) {
    add([&](auto& sink) { put_text(sink, field, text); });
  }
  // Adds a label with the text that `put(sink)` writes.
  template <typename Put>
  void add_label(const Put& put) {
    add([&](auto& sink) { put_message(sink, kLabel, put); });
  }
  // Adds the fields that `put(sink)` writes.
  template <typename Put>
  void add(const Put& put) {
    Measure measure;
    put(measure);
    bytes_.resize(bytes_.size() + measure.num_bytes());
    WireWriter writer(bytes_.data() + ends_.back());
    put(writer);
    ends_.push_back(bytes_.size());
  }

  std::string_view operator[](size_t place) const {
    return {bytes_.data() + ends_[place], ends_[place + 1] - ends_[place]};
  }

  // Throws std::invalid_argument if one of the first `num_rows` places is out of range.
  void check_places(const ColumnView& places, size_t num_rows) const {
    places.for_each(0, num_rows, [this](int64_t place) {
      if (place < 0 || static_cast<uint64_t>(place) >= size()) throw std::invalid_argument("a name that is not there");
    });
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_{0};
};

inline EncodedFields encoded_texts(uint32_t field, const std::vector<std::string>& texts) {
  EncodedFields fields;
  for (const std::string& text : texts) fields.add_text(field, text);
  return fields;
}

// The times of a node: the fields before its label, and those between label and thread.
struct NodeTimes {
  int64_t wall_ns;
  int64_t duration_ns;

  template <typename Sink>
  void put_micros(Sink& sink) const {
    const int64_t micros = std::max<int64_t>(floor_micros(duration_ns), 1);
    put_number(sink, kStartMicros, floor_micros(wall_ns));
    put_number(sink, kOpEndMicros, micros);
    put_number(sink, kEndMicros, micros);
  }
  template <typename Sink>
  void put_nanos(Sink& sink) const {
    put_number(sink, kStartNanos, wall_ns);
    put_number(sink, kOpEndNanos, duration_ns);
    put_number(sink, kEndNanos, duration_ns);
  }
};

// The size of one node without its activity, and of the activity's content, in bytes.
struct NodeBytes {
  uint32_t plain;
  uint32_t activity;

  size_t typed() const { return plain + varint_bytes(make_tag(kActivity, kBytes)) + varint_bytes(activity) + activity; }
  static size_t element_bytes(size_t node) {
    return varint_bytes(make_tag(kNodes, kBytes)) + varint_bytes(node) + node;
  }
};

inline uint32_t checked_node_bytes(size_t num_bytes) {
  if (num_bytes > std::numeric_limits<int32_t>::max()) throw std::length_error("a node of more than 2 GiB");
  return static_cast<uint32_t>(num_bytes);
}

// A DeviceStepStats without its nodes.
struct DeviceHead {
  std::string name;
  std::string thread_names;  // in wire format
  size_t node_bytes = 0;

  size_t content() const {
    Measure name_field;
    put_text(name_field, kDeviceName, name);
    return name_field.num_bytes() + node_bytes + thread_names.size();
  }
  size_t element() const { return varint_bytes(make_tag(kDevices, kBytes)) + varint_bytes(content()) + content(); }
  char* write_head(char* to) const {
    WireWriter writer(to);
    writer.put_varint(make_tag(kDevices, kBytes));
    writer.put_varint(content());
    put_text(writer, kDeviceName, name);
    return writer.to();
  }
  char* write_tail(char* to) const { return std::copy(thread_names.begin(), thread_names.end(), to); }
};

// Starts and ends of rows, one table after another.
struct RowTimes {
  std::vector<int64_t> start_ns, end_ns;

  void add(const RecordedTable& table, bool has_end) {
    const ColumnView start = table["start_ns"];
    const ColumnView end = has_end ? table["end_ns"] : start;
    start_ns.reserve(start_ns.size() + table.num_rows);
    end_ns.reserve(end_ns.size() + table.num_rows);
    start.for_each(0, table.num_rows, [this](int64_t time) { start_ns.push_back(time); });
    end.for_each(0, table.num_rows, [this](int64_t time) { end_ns.push_back(time); });
  }
  // An enclosing row comes before the rows that it encloses.
  std::vector<uint32_t> host_order() const {
    return stable_order(start_ns.size(), [this](uint32_t a, uint32_t b) {
      return start_ns[a] != start_ns[b] ? start_ns[a] < start_ns[b] : end_ns[a] > end_ns[b];
    });
  }
  NodeTimes of(size_t row, int64_t offset_ns) const {
    return {wrapping_sum(start_ns[row], offset_ns), wrapping_difference(end_ns[row], start_ns[row])};
  }
};

// Writes the activity of a node, after the fields with smaller numbers.
inline char* write_activity(WireWriter writer, const ActivityEncoder& activities, size_t row) {
  writer.put_varint(make_tag(kActivity, kBytes));
  writer.put_varint(activities.num_bytes(row));
  return activities.write(row, writer.to());
}

}  // namespace collector::stepstats
