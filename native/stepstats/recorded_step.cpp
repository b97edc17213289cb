#include "stepstats/recorded_step.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "kinds/generated/activities.h"
#include "stepstats/label_writer.h"
#include "stepstats/wire_sink.h"

namespace collector::convert {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Fields of NodeExecStats.
constexpr uint32_t kNodeName = 1;
constexpr uint32_t kStartMicros = 2;
constexpr uint32_t kOpEndMicros = 4;
constexpr uint32_t kEndMicros = 5;
constexpr uint32_t kMemory = 6;
constexpr uint32_t kOutput = 7;
constexpr uint32_t kLabel = 8;
constexpr uint32_t kScheduledMicros = 9;
constexpr uint32_t kThreadId = 10;
constexpr uint32_t kStartNanos = 13;
constexpr uint32_t kOpEndNanos = 15;
constexpr uint32_t kEndNanos = 16;
constexpr uint32_t kScheduledNanos = 17;
constexpr uint32_t kCorrelationId = 100001;
constexpr uint32_t kActivity = 100002;
// Of the messages around it.
constexpr uint32_t kDevices = 1;     // of StepStats
constexpr uint32_t kDeviceName = 1;  // of DeviceStepStats
constexpr uint32_t kNodes = 2;
constexpr uint32_t kCaptureRows = 8;  // of Capture
constexpr uint32_t kRowsKind = 1;     // of Rows
constexpr uint32_t kRowsColumns = 2;
constexpr uint32_t kColumnField = 1;  // of Column
constexpr uint32_t kColumnValues = 2;

int64_t floor_micros(int64_t ns) {
  const int64_t micros = ns / 1000;
  return ns % 1000 < 0 ? micros - 1 : micros;
}

// Times beyond 64 bits wrap around, so that they come back as they were.
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// The stable order of `size` rows. Rows come in few runs that are in order already, one for each stream, so runs are
// found and merged.
template <typename Less>
std::vector<uint32_t> stable_order(size_t size, Less less) {
  std::vector<uint32_t> order(size);
  for (size_t i = 0; i < size; ++i) order[i] = static_cast<uint32_t>(i);
  std::vector<size_t> runs{0};
  for (size_t i = 1; i < size; ++i) {
    if (less(static_cast<uint32_t>(i), static_cast<uint32_t>(i - 1))) runs.push_back(i);
  }
  runs.push_back(size);
  std::vector<uint32_t> merged(runs.size() > 2 ? size : 0);
  while (runs.size() > 2) {
    std::vector<size_t> fewer{0};
    for (size_t run = 0; run + 1 < runs.size(); run += 2) {
      const size_t middle = runs[run + 1];
      const size_t end = run + 2 < runs.size() ? runs[run + 2] : middle;
      const auto at = [&order](size_t place) { return order.begin() + static_cast<std::ptrdiff_t>(place); };
      std::merge(at(runs[run]), at(middle), at(middle), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(runs[run]), less);
      fewer.push_back(end);
    }
    order.swap(merged);
    runs.swap(fewer);
  }
  return order;
}

// For each key a number, the one that was given last. Key 0 stands for none. Ids mostly come one after the other, so
// that an array with a place for each serves; others are sorted.
class NumberByKey {
 public:
  template <typename KeyOf>
  NumberByKey(size_t size, KeyOf key_of) {
    uint64_t largest = 0;
    smallest_ = std::numeric_limits<uint64_t>::max();
    for (size_t row = 0; row < size; ++row) {
      const uint64_t key = key_of(row);
      if (key == 0) continue;
      smallest_ = std::min(smallest_, key);
      largest = std::max(largest, key);
    }
    if (largest == 0) return;
    is_dense_ = largest - smallest_ < 4 * size + 4096;
    if (is_dense_) dense_.assign(largest - smallest_ + 1, kNone);
  }

  void set(uint64_t key, uint32_t number) {
    if (key == 0) return;
    if (is_dense_)
      dense_[key - smallest_] = number;
    else
      sparse_[key] = number;
  }

  uint32_t find(uint64_t key) const {
    if (key == 0) return kNone;
    if (is_dense_) return key - smallest_ < dense_.size() ? dense_[key - smallest_] : kNone;
    const auto found = sparse_.find(key);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  uint64_t smallest_ = 0;
  bool is_dense_ = false;
  std::vector<uint32_t> dense_;
  std::unordered_map<uint64_t, uint32_t> sparse_;
};

std::string_view text_at(const std::vector<std::string>& texts, int64_t index) {
  if (index < 0 || static_cast<uint64_t>(index) >= texts.size())
    throw std::invalid_argument("a name that is not there");
  return texts[static_cast<size_t>(index)];
}

template <typename Sink>
void put_activity_content(Sink& sink, const RecordedTable& table, size_t row) {
  put_number(sink, static_cast<uint32_t>(ActivityField::kKind), table.kind);
  for (const RecordedTable::Field& field : table.fields) put_number(sink, field.number, field.column[row]);
}

size_t activity_bytes(const RecordedTable& table, size_t row) {
  Measure content;
  put_activity_content(content, table, row);
  return content.num_bytes();
}

template <typename Sink>
void put_activity(Sink& sink, uint32_t number, const RecordedTable& table, size_t row, size_t content_bytes) {
  sink.put_varint(make_tag(number, kBytes));
  sink.put_varint(content_bytes);
  put_activity_content(sink, table, row);
}

bool has_values(const RecordedTable::Field& field, size_t num_rows) {
  for (size_t row = 0; row < num_rows; ++row) {
    if (field.column[row] != 0) return true;
  }
  return false;
}

// A column of rows without a node.
template <typename Sink>
void put_column(Sink& sink, const RecordedTable::Field& field, size_t num_rows) {
  put_message(sink, kRowsColumns, [&](auto& column) {
    put_number(column, kColumnField, field.number);
    put_message(column, kColumnValues, [&](auto& values) {
      for (size_t each = 0; each < num_rows; ++each) values.put_varint(static_cast<uint64_t>(field.column[each]));
    });
  });
}

// The fields of a node that every device has, up to its label, from it to its thread, and behind.
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

// The bytes of one node up to its activity, and of the activity's content.
struct NodeBytes {
  uint32_t plain;
  uint32_t activity;

  size_t typed() const { return plain + varint_bytes(make_tag(kActivity, kBytes)) + varint_bytes(activity) + activity; }
  static size_t element_bytes(size_t node) {
    return varint_bytes(make_tag(kNodes, kBytes)) + varint_bytes(node) + node;
  }
};

uint32_t checked(size_t num_bytes) {
  if (num_bytes > std::numeric_limits<int32_t>::max()) throw std::length_error("a node of more than 2 GiB");
  return static_cast<uint32_t>(num_bytes);
}

// A DeviceStepStats but for its nodes.
struct DeviceHead {
  std::string name;
  std::string thread_names;  // as on the wire
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

// Start and end of some rows, one table after another.
struct RowTimes {
  std::vector<int64_t> start_ns, end_ns;

  void add(const RecordedTable& table, bool has_end) {
    const ColumnView start = table["start_ns"];
    const ColumnView end = has_end ? table["end_ns"] : start;
    start_ns.reserve(start_ns.size() + table.num_rows);
    end_ns.reserve(end_ns.size() + table.num_rows);
    for (size_t row = 0; row < table.num_rows; ++row) {
      start_ns.push_back(start[row]);
      end_ns.push_back(end[row]);
    }
  }
  // What encloses comes before what it encloses.
  std::vector<uint32_t> host_order() const {
    return stable_order(start_ns.size(), [this](uint32_t a, uint32_t b) {
      return start_ns[a] != start_ns[b] ? start_ns[a] < start_ns[b] : end_ns[a] > end_ns[b];
    });
  }
  NodeTimes of(size_t row, int64_t offset_ns) const {
    return {sum(start_ns[row], offset_ns), difference(end_ns[row], start_ns[row])};
  }
};

// /cpu:0: annotations and API calls.
class HostDevice {
 public:
  explicit HostDevice(const RecordedStep& step)
      : step_(step),
        num_annotations_(step.annotations.num_rows),
        path_id_(step.annotations["name_id"]),
        annotation_thread_(step.annotations["thread_id"]),
        call_name_id_(step.api_calls["name_id"]),
        call_thread_(step.api_calls["thread_id"]),
        call_correlation_(step.api_calls["correlation_id"]) {
    times_.add(step.annotations, true);
    times_.add(step.api_calls, true);
    order_ = times_.host_order();
    bytes_.reserve(order_.size());
    head_.name = step.device_prefix + "/cpu:0";
    head_.thread_names = step.thread_names;
    for (const uint32_t index : order_) {
      Measure plain;
      put(plain, index);
      bytes_.push_back({checked(plain.num_bytes()), checked(activity_bytes(table_of(index), row_of(index)))});
      head_.node_bytes += NodeBytes::element_bytes(bytes_.back().typed());
    }
  }

  size_t num_bytes() const { return order_.empty() ? 0 : head_.element(); }

  char* write(char* to) const {
    if (order_.empty()) return to;
    WireWriter writer(head_.write_head(to));
    for (size_t place = 0; place < order_.size(); ++place) {
      const uint32_t index = order_[place];
      writer.put_varint(make_tag(kNodes, kBytes));
      writer.put_varint(bytes_[place].typed());
      put(writer, index);
      put_activity(writer, kActivity, table_of(index), row_of(index), bytes_[place].activity);
    }
    return head_.write_tail(writer.to());
  }

 private:
  bool is_annotation(uint32_t index) const { return index < num_annotations_; }
  size_t row_of(uint32_t index) const { return is_annotation(index) ? index : index - num_annotations_; }
  const RecordedTable& table_of(uint32_t index) const {
    return is_annotation(index) ? step_.annotations : step_.api_calls;
  }

  template <typename Sink>
  void put(Sink& sink, uint32_t index) const {
    const NodeTimes times = times_.of(index, step_.offset_ns);
    const size_t row = row_of(index);
    if (is_annotation(index)) {
      put_text(sink, kNodeName, text_at(step_.paths, path_id_[row]));
      times.put_micros(sink);
      put_message_of(sink, kOutput, step_.outputs, row);
      put_text(sink, kLabel, text_at(step_.annotation_labels, step_.annotation_label[row]));
      put_number(sink, kThreadId, annotation_thread_[row]);
      times.put_nanos(sink);
    } else {
      const std::string_view name = text_at(step_.api_names, call_name_id_[row]);
      put_text(sink, kNodeName, name);
      times.put_micros(sink);
      put_message_of(sink, kMemory, step_.memory, row);
      put_message(sink, kLabel, [name](auto& text) { put_call_label(text, name); });
      put_number(sink, kThreadId, call_thread_[row]);
      times.put_nanos(sink);
      put_number(sink, kCorrelationId, call_correlation_[row]);
    }
  }

  template <typename Sink>
  static void put_message_of(Sink& sink, uint32_t field, const RowMessages& messages, size_t row) {
    if (messages.index != nullptr) put_text(sink, field, text_at(messages.messages, messages.index[row]));
  }

  const RecordedStep& step_;
  size_t num_annotations_;
  ColumnView path_id_, annotation_thread_, call_name_id_, call_thread_, call_correlation_;
  RowTimes times_;
  std::vector<uint32_t> order_;
  std::vector<NodeBytes> bytes_;
  DeviceHead head_;
};

// A device of its own for a table of what is neither a call nor work of a GPU: waits, overheads, memory operations.
class SideDevice {
 public:
  SideDevice(const RecordedStep& step, const RecordedTable& table, const char* device, const char* kind_column,
             std::string_view (*text_of)(int64_t), bool has_end)
      : table_(table),
        offset_ns_(step.offset_ns),
        kind_(table[kind_column]),
        correlation_(table["correlation_id"]),
        text_of_(text_of) {
    times_.add(table, has_end);
    order_ = times_.host_order();
    bytes_.reserve(order_.size());
    head_.name = step.device_prefix + device;
    for (const uint32_t row : order_) {
      Measure plain;
      put(plain, row);
      bytes_.push_back({checked(plain.num_bytes()), checked(activity_bytes(table, row))});
      head_.node_bytes += NodeBytes::element_bytes(bytes_.back().typed());
    }
  }

  size_t num_bytes() const { return order_.empty() ? 0 : head_.element(); }

  char* write(char* to) const {
    if (order_.empty()) return to;
    WireWriter writer(head_.write_head(to));
    for (size_t place = 0; place < order_.size(); ++place) {
      writer.put_varint(make_tag(kNodes, kBytes));
      writer.put_varint(bytes_[place].typed());
      put(writer, order_[place]);
      put_activity(writer, kActivity, table_, order_[place], bytes_[place].activity);
    }
    return head_.write_tail(writer.to());
  }

 private:
  template <typename Sink>
  void put(Sink& sink, uint32_t row) const {
    const NodeTimes times = times_.of(row, offset_ns_);
    const std::string_view name = text_of_(kind_[row]);
    put_text(sink, kNodeName, name);
    times.put_micros(sink);
    put_message(sink, kLabel, [name](auto& text) { put_call_label(text, name); });
    times.put_nanos(sink);
    put_number(sink, kCorrelationId, correlation_[row]);
  }

  const RecordedTable& table_;
  int64_t offset_ns_;
  ColumnView kind_, correlation_;
  std::string_view (*text_of_)(int64_t);
  RowTimes times_;
  std::vector<uint32_t> order_;
  std::vector<NodeBytes> bytes_;
  DeviceHead head_;
};

// What GPUs did: of each device all of it, that of each stream, and its copies and memsets.
class GpuDevices {
 public:
  explicit GpuDevices(const RecordedStep& step)
      : step_(step),
        kernels_(step.kernels),
        copies_(step.memcpys),
        memsets_(step.memsets),
        call_start_(step.api_calls["start_ns"]),
        call_thread_(step.api_calls["thread_id"]) {
    for (const Work* work : {static_cast<const Work*>(&kernels_), static_cast<const Work*>(&copies_),
                             static_cast<const Work*>(&memsets_)}) {
      times_.add(work->table, true);
      for (size_t row = 0; row < work->table.num_rows; ++row) {
        device_id_.push_back(static_cast<uint32_t>(work->device_id[row]));
      }
    }
    order_ = stable_order(device_id_.size(), [this](uint32_t a, uint32_t b) {
      if (device_id_[a] != device_id_[b]) return device_id_[a] < device_id_[b];
      if (times_.start_ns[a] != times_.start_ns[b]) return times_.start_ns[a] < times_.start_ns[b];
      return times_.end_ns[a] < times_.end_ns[b];
    });
    link_calls();
    measure_nodes();
    name_devices();
  }

  size_t num_bytes() const {
    size_t num_bytes = 0;
    for (const DeviceHead& head : heads_) num_bytes += head.element();
    return num_bytes;
  }

  char* write(char* to) const {
    std::vector<char*> nodes(heads_.size());
    for (size_t device = 0; device < heads_.size(); ++device) {
      nodes[device] = heads_[device].write_head(to);
      to = heads_[device].write_tail(nodes[device] + heads_[device].node_bytes);
    }
    for (size_t place = 0; place < order_.size(); ++place) {
      const Activity activity = at(order_[place]);
      const NodeBytes& bytes = bytes_[place];
      const Places& places = places_[groups_[place]];
      WireWriter writer(nodes[places.all]);
      writer.put_varint(make_tag(kNodes, kBytes));
      writer.put_varint(bytes.typed());
      const char* const body = writer.to();
      put(writer, activity, launches_[place]);
      put_activity(writer, kActivity, activity.work->table, activity.row, bytes.activity);
      nodes[places.all] = writer.to();
      const auto repeat = [&](size_t device) {
        WireWriter again(nodes[device]);
        again.put_varint(make_tag(kNodes, kBytes));
        again.put_varint(bytes.plain);
        again.put_raw({body, bytes.plain});
        nodes[device] = again.to();
      };
      repeat(places.stream);
      if (activity.work != &kernels_) repeat(places.copies);
    }
    return to;
  }

 private:
  // The columns that kernels, copies and memsets share.
  struct Work {
    explicit Work(const RecordedTable& of)
        : table(of),
          device_id(of["device_id"]),
          context_id(of["context_id"]),
          stream_id(of["stream_id"]),
          correlation_id(of["correlation_id"]) {}

    const RecordedTable& table;
    ColumnView device_id, context_id, stream_id, correlation_id;
  };
  struct Kernels : Work {
    explicit Kernels(const RecordedTable& of)
        : Work(of),
          name_id(of["name_id"]),
          registers(of["registers_per_thread"]),
          static_shared(of["static_shared_bytes"]),
          dynamic_shared(of["dynamic_shared_bytes"]),
          shape{of["grid_x"], of["grid_y"], of["grid_z"], of["block_x"], of["block_y"], of["block_z"]} {}

    ColumnView name_id, registers, static_shared, dynamic_shared;
    std::array<ColumnView, 6> shape;
  };
  struct Copies : Work {
    explicit Copies(const RecordedTable& of)
        : Work(of),
          num_bytes(of["num_bytes"]),
          copy_kind(of["copy_kind"]),
          src_kind(of["src_kind"]),
          dst_kind(of["dst_kind"]),
          src_device(of["src_device_id"]),
          dst_device(of["dst_device_id"]) {}

    ColumnView num_bytes, copy_kind, src_kind, dst_kind, src_device, dst_device;
  };
  struct Memsets : Work {
    explicit Memsets(const RecordedTable& of) : Work(of), num_bytes(of["num_bytes"]), memory_kind(of["memory_kind"]) {}

    ColumnView num_bytes, memory_kind;
  };

  struct Activity {
    const Work* work;
    size_t row;
    uint32_t index;  // over all tables
  };
  // The call that launched an activity, and the annotation around it.
  struct Launch {
    uint32_t call;
    uint32_t op;
  };
  // Of a group's nodes: where they go among `heads_`.
  struct Places {
    uint32_t all;
    uint32_t stream;
    uint32_t copies;
  };

  // What stands behind the colon of a node's name.
  struct NameParts {
    std::string_view kind;
    std::string_view rest;
  };

  Activity at(uint32_t index) const {
    size_t row = index;
    if (row < kernels_.table.num_rows) return {&kernels_, row, index};
    row -= kernels_.table.num_rows;
    if (row < copies_.table.num_rows) return {&copies_, row, index};
    return {&memsets_, row - copies_.table.num_rows, index};
  }

  void link_calls() {
    const ColumnView call_correlation = step_.api_calls["correlation_id"];
    const auto correlation_of_call = [&](size_t row) { return static_cast<uint64_t>(call_correlation[row]); };
    NumberByKey calls(step_.api_calls.num_rows, correlation_of_call);
    // Backwards, so that the first counts: of the calls of one id the outer one, which starts first.
    for (size_t row = step_.api_calls.num_rows; row-- > 0;) {
      calls.set(correlation_of_call(row), static_cast<uint32_t>(row));
    }
    const auto known_id = [&](size_t row) { return static_cast<uint64_t>(step_.known_external_id[row]); };
    NumberByKey annotations(step_.num_known_annotations, known_id);
    for (size_t row = step_.num_known_annotations; row-- > 0;) {
      annotations.set(known_id(row), static_cast<uint32_t>(step_.known_name_id[row]));
    }
    const RecordedTable& external = step_.external_correlations;
    const ColumnView external_kind = external["external_kind"];
    const ColumnView external_id = external["external_id"];
    const ColumnView correlation_id = external["correlation_id"];
    const auto correlation_of = [&](size_t row) { return static_cast<uint64_t>(correlation_id[row]); };
    NumberByKey ops(external.num_rows, correlation_of);
    for (size_t row = external.num_rows; row-- > 0;) {
      if (external_kind[row] != step_.annotation_external_kind) continue;
      const uint32_t name_id = annotations.find(static_cast<uint64_t>(external_id[row]));
      if (name_id != kNone) ops.set(correlation_of(row), name_id);
    }
    launches_.reserve(order_.size());
    for (const uint32_t index : order_) {
      const Activity activity = at(index);
      const auto correlation = static_cast<uint64_t>(activity.work->correlation_id[activity.row]);
      launches_.push_back({calls.find(correlation), ops.find(correlation)});
    }
  }

  void measure_nodes() {
    bytes_.reserve(order_.size());
    groups_.reserve(order_.size());
    uint32_t group = 0;
    Group last{};
    for (size_t place = 0; place < order_.size(); ++place) {
      const Activity activity = at(order_[place]);
      Measure plain;
      put(plain, activity, launches_[place]);
      bytes_.push_back({checked(plain.num_bytes()), checked(activity_bytes(activity.work->table, activity.row))});
      const Group own{device_id_[activity.index], static_cast<uint32_t>(activity.work->stream_id[activity.row]),
                      static_cast<uint32_t>(activity.work->context_id[activity.row])};
      if (group_numbers_.empty() || own < last || last < own) {
        group = group_numbers_.try_emplace(own, static_cast<uint32_t>(group_numbers_.size())).first->second;
        last = own;
      }
      groups_.push_back(group);
    }
  }

  void name_devices() {
    places_.resize(group_numbers_.size());
    std::map<uint32_t, uint32_t> all_of;  // by device id: its place among the heads
    std::vector<bool> has_copies(group_numbers_.size());
    for (size_t place = 0; place < order_.size(); ++place) {
      if (at(order_[place]).work != &kernels_) has_copies[groups_[place]] = true;
    }
    auto next = group_numbers_.begin();
    while (next != group_numbers_.end()) {  // in order of device, stream and context
      const uint32_t device = next->first.device_id;
      const std::string unit = step_.device_prefix + "/gpu:" + std::to_string(device);
      const auto all = static_cast<uint32_t>(heads_.size());
      heads_.emplace_back().name = unit + "/stream:all";
      bool any_copies = false;
      const auto first = next;
      uint32_t last_stream = 0;
      for (; next != group_numbers_.end() && next->first.device_id == device; ++next) {
        const auto& [group, number] = *next;
        std::string name = unit + "/stream:" + std::to_string(group.stream_id);
        if (next != first && group.stream_id == last_stream) name += "." + std::to_string(group.context_id);
        last_stream = group.stream_id;
        places_[number] = {all, static_cast<uint32_t>(heads_.size()), kNone};
        heads_.emplace_back().name = std::move(name);
        any_copies = any_copies || has_copies[number];
      }
      if (!any_copies) continue;
      for (auto each = first; each != next; ++each) {
        places_[each->second].copies = static_cast<uint32_t>(heads_.size());
      }
      heads_.emplace_back().name = unit + "/memcpy";
    }
    for (size_t place = 0; place < order_.size(); ++place) {
      const Places& places = places_[groups_[place]];
      heads_[places.all].node_bytes += NodeBytes::element_bytes(bytes_[place].typed());
      heads_[places.stream].node_bytes += NodeBytes::element_bytes(bytes_[place].plain);
      if (at(order_[place]).work != &kernels_) {
        heads_[places.copies].node_bytes += NodeBytes::element_bytes(bytes_[place].plain);
      }
    }
  }

  template <typename Sink>
  void put(Sink& sink, const Activity& activity, const Launch& launch) const {
    const NodeTimes times = times_.of(activity.index, step_.offset_ns);
    if (activity.work == &kernels_) {
      const std::string_view name = text_at(step_.short_names, kernels_.name_id[activity.row]);
      put_node(sink, activity, launch, times, {{}, name}, kernel_label_of(activity.row));
    } else if (activity.work == &copies_) {
      const CopyLabel label = copy_label_of(activity.row);
      put_node(sink, activity, launch, times, {"MEMCPY", label.kind}, label);
    } else {
      const MemsetLabel label{memsets_.num_bytes[activity.row], memory_kind_text(memsets_.memory_kind[activity.row])};
      put_node(sink, activity, launch, times, {{}, "MEMSET"}, label);
    }
  }

  template <typename Sink, typename Label>
  void put_node(Sink& sink, const Activity& activity, const Launch& launch, const NodeTimes& times,
                const NameParts& name, const Label& label) const {
    const size_t name_bytes = name.kind.size() + name.rest.size();
    const std::string_view op = launch.op == kNone ? std::string_view() : text_at(step_.ops, launch.op);
    sink.put_varint(make_tag(kNodeName, kBytes));
    sink.put_varint((launch.op == kNone ? name_bytes : op.size()) + 1 + name_bytes);
    if (launch.op == kNone) {
      sink.put_raw(name.kind);
      sink.put_raw(name.rest);
    }
    sink.put_raw(op);
    sink.put_char(':');
    sink.put_raw(name.kind);
    sink.put_raw(name.rest);
    times.put_micros(sink);
    put_message(sink, kLabel, [&label](auto& text) { label.put(text); });
    const int64_t scheduled_ns = launch.call == kNone ? 0 : sum(call_start_[launch.call], step_.offset_ns);
    put_number(sink, kScheduledMicros, floor_micros(scheduled_ns));
    if (launch.call != kNone) put_number(sink, kThreadId, call_thread_[launch.call]);
    times.put_nanos(sink);
    put_number(sink, kScheduledNanos, scheduled_ns);
    put_number(sink, kCorrelationId, activity.work->correlation_id[activity.row]);
  }

  KernelLabel kernel_label_of(size_t row) const {
    KernelLabel label{text_at(step_.whole_names, kernels_.name_id[row]),
                      kernels_.registers[row],
                      kernels_.static_shared[row] + kernels_.dynamic_shared[row],
                      {}};
    for (size_t i = 0; i < label.shape.size(); ++i) label.shape[i] = kernels_.shape[i][row];
    return label;
  }

  CopyLabel copy_label_of(size_t row) const {
    return {copy_kind_text(copies_.copy_kind[row]),  copies_.num_bytes[row],  memory_kind_text(copies_.src_kind[row]),
            memory_kind_text(copies_.dst_kind[row]), copies_.src_device[row], copies_.dst_device[row]};
  }

  struct Group {
    uint32_t device_id;
    uint32_t stream_id;
    uint32_t context_id;

    bool operator<(const Group& other) const {
      return std::tie(device_id, stream_id, context_id) < std::tie(other.device_id, other.stream_id, other.context_id);
    }
  };

  const RecordedStep& step_;
  Kernels kernels_;
  Copies copies_;
  Memsets memsets_;
  ColumnView call_start_, call_thread_;
  RowTimes times_;
  std::vector<uint32_t> device_id_;
  // In the order of the nodes.
  std::vector<uint32_t> order_;
  std::vector<Launch> launches_;
  std::vector<NodeBytes> bytes_;
  std::vector<uint32_t> groups_;

  std::map<Group, uint32_t> group_numbers_;
  std::vector<Places> places_;
  std::vector<DeviceHead> heads_;
};

}  // namespace

ColumnView RecordedTable::operator[](std::string_view name) const {
  for (const auto& [own, column] : columns) {
    if (own == name) return column;
  }
  throw std::invalid_argument("a table has no column " + std::string(name));
}

struct RecordedStepEncoder::Parts {
  explicit Parts(const RecordedStep& of)
      : step(of),
        host(of),
        memory_operations(of, of.memory_operations, "/cpu:0/memory", "operation", memory_operation_text, false),
        overheads(of, of.overheads, "/cpu:0/overheads", "overhead_kind", overhead_kind_text, true),
        waits(of, of.synchronizations, "/cpu:0/waits", "sync_type", sync_type_text, true),
        gpus(of) {
    Measure measure;
    put_rows(measure);
    capture_bytes = measure.num_bytes();
  }

  template <typename Sink>
  void put_rows(Sink& sink) const {
    for (const RecordedTable& table : step.without_node) {
      put_message(sink, kCaptureRows, [&table](auto& rows) {
        put_number(rows, kRowsKind, table.kind);
        for (const RecordedTable::Field& field : table.fields) {
          const bool is_first = &field == &table.fields.front();  // from which the number of rows is known
          if (is_first || has_values(field, table.num_rows)) put_column(rows, field, table.num_rows);
        }
      });
    }
  }

  const RecordedStep& step;
  HostDevice host;
  SideDevice memory_operations, overheads, waits;
  GpuDevices gpus;
  size_t capture_bytes = 0;
};

RecordedStepEncoder::RecordedStepEncoder(const RecordedStep& step) : parts_(std::make_unique<Parts>(step)) {}
RecordedStepEncoder::~RecordedStepEncoder() = default;

size_t RecordedStepEncoder::step_bytes() const {
  return parts_->host.num_bytes() + parts_->memory_operations.num_bytes() + parts_->overheads.num_bytes() +
         parts_->waits.num_bytes() + parts_->gpus.num_bytes();
}

char* RecordedStepEncoder::write_step(char* to) const {
  to = parts_->host.write(to);
  to = parts_->memory_operations.write(to);
  to = parts_->overheads.write(to);
  to = parts_->waits.write(to);
  return parts_->gpus.write(to);
}

size_t RecordedStepEncoder::capture_bytes() const { return parts_->capture_bytes; }

char* RecordedStepEncoder::write_capture(char* to) const {
  WireWriter writer(to);
  parts_->put_rows(writer);
  return writer.to();
}

}  // namespace collector::convert
