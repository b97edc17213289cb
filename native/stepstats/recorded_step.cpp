#include "stepstats/recorded_step.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "kinds/generated/activities.h"
#include "stepstats/activity_encoder.h"
#include "stepstats/distinct_rows.h"
#include "stepstats/label_writer.h"
#include "stepstats/row_order.h"
#include "stepstats/run_metadata.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {
namespace {

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
constexpr uint32_t kOpEnd = 100003;
// Fields of the enclosing messages.
constexpr uint32_t kDevices = 1;     // of StepStats
constexpr uint32_t kDeviceName = 1;  // of DeviceStepStats
constexpr uint32_t kNodes = 2;
constexpr uint32_t kRowsKind = 1;  // of Rows
constexpr uint32_t kRowsColumns = 2;
constexpr uint32_t kColumnField = 1;  // of Column
constexpr uint32_t kColumnValues = 2;

// Between the path at the launch of a graph and that at the capture of its node. Proton writes the same.
constexpr std::string_view kCapturedAt = "<captured_at>/";

int64_t floor_micros(int64_t ns) {
  const int64_t micros = ns / 1000;
  return ns % 1000 < 0 ? micros - 1 : micros;
}

// Times that exceed 64 bits wrap around, so that reading them back restores them.
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

std::string_view text_at(const std::vector<std::string>& texts, int64_t index) {
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

EncodedFields encoded_texts(uint32_t field, const std::vector<std::string>& texts) {
  EncodedFields fields;
  for (const std::string& text : texts) fields.add_text(field, text);
  return fields;
}

EncodedFields encoded_call_labels(const std::vector<std::string>& names) {
  EncodedFields labels;
  for (const std::string& name : names) {
    labels.add_label([&name](auto& text) { put_call_label(text, name); });
  }
  return labels;
}

// Encodes rows that have no node, column by column.
class RowsEncoder {
 public:
  explicit RowsEncoder(const RecordedTable& table) : table_(table) {
    put_number(content_, kRowsKind, table.kind);
    for (const RecordedTable::Field& field : table.fields) {
      const bool is_first = &field == &table.fields.front();  // its size gives the number of rows
      const bool has_values =
          table.num_rows != 0 && (!field.column.is_constant(table.num_rows) || field.column[0] != 0);
      if (!is_first && !has_values) continue;
      Measure values;
      put_values(values, field);
      Measure column;
      put_number(column, kColumnField, field.number);
      put_head(column, kColumnValues, values.num_bytes());
      columns_.push_back({&field, values.num_bytes(), column.num_bytes() + values.num_bytes()});
      put_head(content_, kRowsColumns, columns_.back().num_bytes);
      content_bytes_ += columns_.back().num_bytes;
    }
    content_bytes_ += content_.num_bytes();
  }

  size_t num_bytes() const {
    Measure head;
    put_head(head, kCaptureRows, content_bytes_);
    return head.num_bytes() + content_bytes_;
  }

  char* write(char* to) const {
    WireWriter writer(to);
    put_head(writer, kCaptureRows, content_bytes_);
    put_number(writer, kRowsKind, table_.kind);
    for (const Column& column : columns_) {
      put_head(writer, kRowsColumns, column.num_bytes);
      put_number(writer, kColumnField, column.field->number);
      put_head(writer, kColumnValues, column.value_bytes);
      put_values(writer, *column.field);
    }
    return writer.to();
  }

 private:
  struct Column {
    const RecordedTable::Field* field;
    size_t value_bytes;
    size_t num_bytes;
  };

  template <typename Sink>
  static void put_head(Sink& sink, uint32_t field, size_t num_bytes) {
    sink.put_varint(make_tag(field, kBytes));
    sink.put_varint(num_bytes);
  }

  template <typename Sink>
  void put_values(Sink& sink, const RecordedTable::Field& field) const {
    Sink own = sink;  // a local copy, which the compiler keeps in registers
    field.column.for_each(0, table_.num_rows, [&own](int64_t value) { own.put_varint(static_cast<uint64_t>(value)); });
    sink = own;
  }

  const RecordedTable& table_;
  Measure content_;
  std::vector<Column> columns_;
  size_t content_bytes_ = 0;
};

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

uint32_t checked(size_t num_bytes) {
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
    return {sum(start_ns[row], offset_ns), difference(end_ns[row], start_ns[row])};
  }
};

// Writes the activity of a node, after the fields with smaller numbers.
char* write_activity(WireWriter writer, const ActivityEncoder& activities, size_t row) {
  writer.put_varint(make_tag(kActivity, kBytes));
  writer.put_varint(activities.num_bytes(row));
  return activities.write(row, writer.to());
}

// The devices of the host: annotations, API calls, and the ranges that files of other programs have besides.
class HostDevices {
 public:
  explicit HostDevices(const RecordedStep& step)
      : step_(step),
        first_call_(step.annotations.num_rows),
        first_range_(first_call_ + step.api_calls.num_rows),
        path_id_(step.annotations["name_id"]),
        annotation_thread_(step.annotations["thread_id"]),
        call_name_id_(step.api_calls["name_id"]),
        call_thread_(step.api_calls["thread_id"]),
        call_correlation_(step.api_calls["correlation_id"]),
        range_name_id_(step.other_ranges["name_id"]),
        range_thread_(step.other_ranges["thread_id"]),
        range_correlation_(step.other_ranges["correlation_id"]),
        paths_(encoded_texts(kNodeName, step.paths)),
        annotation_labels_(encoded_texts(kLabel, step.annotation_labels)),
        call_names_(encoded_texts(kNodeName, step.api_names)),
        call_labels_(encoded_call_labels(step.api_names)),
        range_names_(encoded_texts(kNodeName, step.other_range_names)),
        annotation_op_ends_(step.annotation_op_ends),
        annotation_activities_(step.annotations),
        call_activities_(step.api_calls),
        range_activities_(step.other_ranges) {
    paths_.check_places(path_id_, first_call_);
    annotation_labels_.check_places({reinterpret_cast<const char*>(step.annotation_label), sizeof(uint32_t), false},
                                    first_call_);
    call_names_.check_places(call_name_id_, step.api_calls.num_rows);
    range_names_.check_places(range_name_id_, step.other_ranges.num_rows);
    times_.add(step.annotations, true);
    times_.add(step.api_calls, true);
    times_.add(step.other_ranges, true);
    devices_.resize(step.host_devices.size());
    for (const uint32_t index : times_.host_order()) device_of(index).order.push_back(index);
    for (size_t place = 0; place < devices_.size(); ++place) measure(step.host_devices[place], devices_[place]);
  }

  size_t num_bytes() const {
    size_t num_bytes = 0;
    for (const Device& device : devices_) num_bytes += device.order.empty() ? 0 : device.head.element();
    return num_bytes;
  }

  char* write(char* to) const {
    for (const Device& device : devices_) {
      if (!device.order.empty()) to = write(device, to);
    }
    return to;
  }

 private:
  enum class Kind : uint8_t { kAnnotation, kCall, kRange };
  // A row of one of the tables.
  struct Row {
    Kind kind;
    size_t row;
  };
  struct Device {
    std::vector<uint32_t> order;  // its rows, counted over all tables
    std::vector<NodeBytes> bytes;
    DeviceHead head;
  };

  Row at(uint32_t index) const {
    if (index < first_call_) return {Kind::kAnnotation, index};
    if (index < first_range_) return {Kind::kCall, index - first_call_};
    return {Kind::kRange, index - first_range_};
  }
  Device& device_of(uint32_t index) {
    const Row row = at(index);
    const uint32_t* const places = row.kind == Kind::kAnnotation ? step_.host_device_of_annotation
                                   : row.kind == Kind::kCall     ? step_.host_device_of_call
                                                                 : step_.host_device_of_other_range;
    const uint32_t place = places == nullptr ? 0 : places[row.row];
    if (place >= devices_.size()) throw std::invalid_argument("a device that is not there");
    return devices_[place];
  }
  uint32_t op_end_of(const Row& row) const {
    return row.kind == Kind::kAnnotation ? annotation_op_ends_.at(step_.annotation_label[row.row]) : 0;
  }
  const ActivityEncoder& activities_of(const Row& row) const {
    if (row.kind == Kind::kAnnotation) return annotation_activities_;
    return row.kind == Kind::kCall ? call_activities_ : range_activities_;
  }

  void measure(const HostDevice& host, Device& device) const {
    device.bytes.reserve(device.order.size());
    device.head.name = step_.device_prefix + host.name;
    device.head.thread_names = host.thread_names;
    for (const uint32_t index : device.order) {
      const Row row = at(index);
      Measure plain;
      put(plain, index);
      put_number(plain, kOpEnd, op_end_of(row));
      device.bytes.push_back({checked(plain.num_bytes()), activities_of(row).num_bytes(row.row)});
      device.head.node_bytes += NodeBytes::element_bytes(device.bytes.back().typed());
    }
  }

  char* write(const Device& device, char* to) const {
    WireWriter writer(device.head.write_head(to));
    for (size_t place = 0; place < device.order.size(); ++place) {
      const uint32_t index = device.order[place];
      const Row row = at(index);
      writer.put_varint(make_tag(kNodes, kBytes));
      writer.put_varint(device.bytes[place].typed());
      put(writer, index);
      writer = WireWriter(write_activity(writer, activities_of(row), row.row));
      put_number(writer, kOpEnd, op_end_of(row));
    }
    return device.head.write_tail(writer.to());
  }

  template <typename Sink>
  void put(Sink& sink, uint32_t index) const {
    const NodeTimes times = times_.of(index, step_.offset_ns);
    const auto [kind, row] = at(index);
    if (kind == Kind::kAnnotation) {
      sink.put_raw(paths_[static_cast<size_t>(path_id_[row])]);
      times.put_micros(sink);
      put_message_of(sink, kOutput, step_.outputs, row);
      sink.put_raw(annotation_labels_[step_.annotation_label[row]]);
      put_number(sink, kThreadId, annotation_thread_[row]);
      times.put_nanos(sink);
    } else if (kind == Kind::kCall) {
      const auto name_id = static_cast<size_t>(call_name_id_[row]);
      sink.put_raw(call_names_[name_id]);
      times.put_micros(sink);
      put_message_of(sink, kMemory, step_.memory, row);
      sink.put_raw(call_labels_[name_id]);
      put_number(sink, kThreadId, call_thread_[row]);
      times.put_nanos(sink);
      put_number(sink, kCorrelationId, call_correlation_[row]);
    } else {  // without a label, which would be read as an op and its inputs
      sink.put_raw(range_names_[static_cast<size_t>(range_name_id_[row])]);
      times.put_micros(sink);
      put_number(sink, kThreadId, range_thread_[row]);
      times.put_nanos(sink);
      put_number(sink, kCorrelationId, range_correlation_[row]);
    }
  }

  template <typename Sink>
  static void put_message_of(Sink& sink, uint32_t field, const RowMessages& messages, size_t row) {
    if (messages.index != nullptr) put_text(sink, field, text_at(messages.messages, messages.index[row]));
  }

  const RecordedStep& step_;
  size_t first_call_, first_range_;  // of all rows, which are counted over the tables
  ColumnView path_id_, annotation_thread_, call_name_id_, call_thread_, call_correlation_;
  ColumnView range_name_id_, range_thread_, range_correlation_;
  EncodedFields paths_, annotation_labels_, call_names_, call_labels_, range_names_;  // by name_id
  const std::vector<uint32_t>& annotation_op_ends_;
  ActivityEncoder annotation_activities_, call_activities_, range_activities_;
  RowTimes times_;
  std::vector<Device> devices_;
};

// What the devices of a table share: there can be as many of them as rows.
struct SideTable {
  SideTable(const RecordedTable& table, bool has_end) : activities(table) { times.add(table, has_end); }

  ActivityEncoder activities;
  RowTimes times;
};

// The device of a table with neither calls nor GPU work: waits, overheads, JIT operations, memory operations, NVTX
// ranges, graphs.
class SideDevice {
 public:
  SideDevice(const RecordedStep& step, const RecordedTable& table, const char* device, const char* kind_column,
             const std::function<std::string_view(int64_t)>& text_of, bool has_end, bool has_correlation = true)
      : SideDevice(
            step, std::make_shared<const SideTable>(table, has_end), device,
            [kind = table[kind_column], text_of](uint32_t row) { return text_of(kind[row]); },
            has_correlation ? table["correlation_id"] : ColumnView{}) {}
  SideDevice(const RecordedStep& step, const std::shared_ptr<const SideTable>& table, const char* device,
             std::function<std::string_view(uint32_t)> name_of, ColumnView correlation)
      : SideDevice(step, table, device, std::move(name_of), correlation, table->times.host_order()) {}
  // `order`: the rows of the device.
  SideDevice(const RecordedStep& step, std::shared_ptr<const SideTable> table, const char* device,
             std::function<std::string_view(uint32_t)> name_of, ColumnView correlation, std::vector<uint32_t> order)
      : table_(std::move(table)),
        offset_ns_(step.offset_ns),
        correlation_(correlation),
        name_of_(std::move(name_of)),
        order_(std::move(order)) {
    bytes_.reserve(order_.size());
    head_.name = step.device_prefix + device;
    for (const uint32_t row : order_) {
      Measure plain;
      put(plain, row);
      bytes_.push_back({checked(plain.num_bytes()), table_->activities.num_bytes(row)});
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
      writer = WireWriter(write_activity(writer, table_->activities, order_[place]));
    }
    return head_.write_tail(writer.to());
  }

 private:
  template <typename Sink>
  void put(Sink& sink, uint32_t row) const {
    const NodeTimes times = table_->times.of(row, offset_ns_);
    const std::string_view name = name_of_(row);
    put_text(sink, kNodeName, name);
    times.put_micros(sink);
    put_message(sink, kLabel, [name](auto& text) { put_call_label(text, name); });
    times.put_nanos(sink);
    if (correlation_.data != nullptr) put_number(sink, kCorrelationId, correlation_[row]);
  }

  std::shared_ptr<const SideTable> table_;
  int64_t offset_ns_;
  ColumnView correlation_;
  std::function<std::string_view(uint32_t)> name_of_;  // the text holds until the next call
  std::vector<uint32_t> order_;
  std::vector<NodeBytes> bytes_;
  DeviceHead head_;
};

// The launches of graphs, one device for each GPU.
std::vector<SideDevice> graph_devices(const RecordedStep& step) {
  const RecordedTable& table = step.graph_launches;
  const auto shared = std::make_shared<const SideTable>(table, true);
  const ColumnView device_id = table["device_id"];
  std::map<int64_t, std::vector<uint32_t>> rows_of;
  for (const uint32_t row : shared->times.host_order()) rows_of[device_id[row]].push_back(row);
  std::vector<SideDevice> devices;
  devices.reserve(rows_of.size());
  for (auto& [id, rows] : rows_of) {
    const std::string name = "/gpu:" + std::to_string(static_cast<uint32_t>(id)) + "/graphs";
    const auto name_of = [&step, graph = table["graph_id"], name_id = table["name_id"],
                          text = std::string()](uint32_t row) mutable -> std::string_view {
      const std::string_view given = text_at(step.graph_names, name_id[row]);
      text = given;
      text.append(given.empty() ? "graph " : " (graph ").append(std::to_string(graph[row]));
      if (!given.empty()) text.push_back(')');
      return text;
    };
    devices.emplace_back(step, shared, name.c_str(), name_of, table["correlation_id"], std::move(rows));
  }
  return devices;
}

// The devices of GPUs: per GPU all its work, the work of each stream, and its copies and memsets.
class GpuDevices {
 public:
  explicit GpuDevices(const RecordedStep& step)
      : step_(step),
        kernels_(step.kernels),
        copies_(step.memcpys),
        memsets_(step.memsets),
        call_start_(step.api_calls["start_ns"]),
        call_thread_(step.api_calls["thread_id"]) {
    size_t num_rows = 0;
    for (const Work* work : works()) num_rows += work->table.num_rows;
    for (std::vector<uint32_t>* of_rows : {&device_id_, &calls_, &ops_, &names_of_, &labels_of_}) {
      of_rows->reserve(num_rows);
    }
    for (const Work* work : works()) {
      times_.add(work->table, true);
      work->device_id.for_each(0, work->table.num_rows,
                               [this](int64_t id) { device_id_.push_back(static_cast<uint32_t>(id)); });
    }
    order_ = stable_order(device_id_.size(), [this](uint32_t a, uint32_t b) {
      if (device_id_[a] != device_id_[b]) return device_id_[a] < device_id_[b];
      if (times_.start_ns[a] != times_.start_ns[b]) return times_.start_ns[a] < times_.start_ns[b];
      return times_.end_ns[a] < times_.end_ns[b];
    });
    link_calls();
    name_kernels();
    name_copies();
    name_memsets();
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
      put(writer, activity);
      const std::string_view repeated(body, static_cast<size_t>(writer.to() - body));
      const uint32_t op_end = op_ends_[names_of_[activity.index]];
      writer = WireWriter(write_activity(writer, activity.work->activities, activity.row));
      put_number(writer, kOpEnd, op_end);
      nodes[places.all] = writer.to();
      const auto repeat = [&](size_t device) {
        WireWriter again(nodes[device]);
        again.put_varint(make_tag(kNodes, kBytes));
        again.put_varint(bytes.plain);
        again.put_raw(repeated);
        put_number(again, kOpEnd, op_end);
        nodes[device] = again.to();
      };
      repeat(places.stream);
      if (activity.work != &kernels_) repeat(places.copies);
    }
    return to;
  }

 private:
  // The columns that kernels, copies and memsets have in common.
  struct Work {
    explicit Work(const RecordedTable& of)
        : table(of),
          device_id(of["device_id"]),
          context_id(of["context_id"]),
          stream_id(of["stream_id"]),
          correlation_id(of["correlation_id"]),
          captured_external_id(of["captured_external_id"]),
          activities(of) {}

    const RecordedTable& table;
    ColumnView device_id, context_id, stream_id, correlation_id, captured_external_id;
    ActivityEncoder activities;
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
  // The indices into `heads_` of the devices that contain a group's nodes.
  struct Places {
    uint32_t all;
    uint32_t stream;
    uint32_t copies;
  };

  // The part of a node's name after the colon.
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
    // Backwards, so that the first one counts: of several calls with one id, the outer call starts first.
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
      if (name_id != kNoNumber) ops.set(correlation_of(row), name_id);
    }
    const auto has_captured = [](const Work* work) {
      const size_t num_rows = work->table.num_rows;
      return num_rows > 0 && (work->captured_external_id[0] != 0 || !work->captured_external_id.is_constant(num_rows));
    };
    const auto all_works = works();
    if (std::any_of(all_works.begin(), all_works.end(), has_captured)) {
      for (const Work* work : all_works) {
        work->captured_external_id.for_each(0, work->table.num_rows, [&](int64_t id) {
          captured_.push_back(id == 0 ? kNoNumber : annotations.find(static_cast<uint64_t>(id)));
        });
      }
    }
    for (const Work* work : all_works) {
      work->correlation_id.for_each(0, work->table.num_rows, [&](int64_t correlation) {
        calls_.push_back(calls.find(static_cast<uint64_t>(correlation)));
        ops_.push_back(ops.find(static_cast<uint64_t>(correlation)));
      });
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
      put(plain, activity);
      put_number(plain, kOpEnd, op_ends_[names_of_[activity.index]]);
      bytes_.push_back({checked(plain.num_bytes()), activity.work->activities.num_bytes(activity.row)});
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
    std::map<uint32_t, uint32_t> all_of;  // by device id: index into the heads
    std::vector<bool> has_copies(group_numbers_.size());
    for (size_t place = 0; place < order_.size(); ++place) {
      if (at(order_[place]).work != &kernels_) has_copies[groups_[place]] = true;
    }
    auto next = group_numbers_.begin();
    while (next != group_numbers_.end()) {  // sorted by device, stream and context
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
        places_[number] = {all, static_cast<uint32_t>(heads_.size()), kNoNumber};
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

  std::array<const Work*, 3> works() const { return {&kernels_, &copies_, &memsets_}; }

  // The annotations around the launches of a table's rows; `first` is the index of its first row.
  ColumnView ops_from(size_t first) const {
    return {reinterpret_cast<const char*>(ops_.data() + first), sizeof(uint32_t), false};
  }
  // A table's columns that decide about the op in a node's name: those annotations, and where graphs were captured
  // inside annotations, these.
  struct OpColumns {
    ColumnView launched;
    ColumnView captured;  // no data: none

    std::vector<ColumnView> with(std::initializer_list<ColumnView> others) const {
      std::vector<ColumnView> columns(others);
      columns.push_back(launched);
      if (captured.data != nullptr) columns.push_back(captured);
      return columns;
    }
  };
  OpColumns op_columns_from(size_t first) const {
    if (captured_.empty()) return {ops_from(first), {}};
    return {ops_from(first), {reinterpret_cast<const char*>(captured_.data() + first), sizeof(uint32_t), false}};
  }

  // The path of a row's annotation; of a graph's node that at its launch, kCapturedAt, and that at its capture.
  std::optional<std::string> op_of(const OpColumns& ops, uint32_t row) const {
    const auto launched = static_cast<uint32_t>(ops.launched[row]);
    const auto captured = ops.captured.data == nullptr ? kNoNumber : static_cast<uint32_t>(ops.captured[row]);
    std::optional<std::string> op;
    if (launched != kNoNumber) op = text_at(step_.ops, launched);
    const std::string_view inner = captured == kNoNumber ? std::string_view() : text_at(step_.ops, captured);
    if (inner.empty()) return op;
    std::string path = op.value_or("");
    if (!path.empty()) path += '/';
    return path.append(kCapturedAt).append(inner);
  }

  void name_kernels() {
    const size_t num_rows = kernels_.table.num_rows;
    const OpColumns ops = op_columns_from(0);
    add_names(find_distinct_rows(ops.with({kernels_.name_id}), num_rows), ops,
              [this](size_t row) { return NameParts{{}, text_at(step_.short_names, kernels_.name_id[row])}; });
    std::vector<ColumnView> columns{kernels_.name_id, kernels_.registers, kernels_.static_shared,
                                    kernels_.dynamic_shared};
    columns.insert(columns.end(), kernels_.shape.begin(), kernels_.shape.end());
    add_labels(find_distinct_rows(columns, num_rows), [this](size_t row) { return kernel_label_of(row); });
  }

  void name_copies() {
    const size_t num_rows = copies_.table.num_rows;
    const OpColumns ops = op_columns_from(kernels_.table.num_rows);
    add_names(find_distinct_rows(ops.with({copies_.copy_kind}), num_rows), ops,
              [this](size_t row) { return NameParts{"MEMCPY", copy_kind_text(copies_.copy_kind[row])}; });
    add_labels(find_distinct_rows({copies_.copy_kind, copies_.num_bytes, copies_.src_kind, copies_.dst_kind,
                                   copies_.src_device, copies_.dst_device},
                                  num_rows),
               [this](size_t row) { return copy_label_of(row); });
  }

  void name_memsets() {
    const size_t num_rows = memsets_.table.num_rows;
    const OpColumns ops = op_columns_from(kernels_.table.num_rows + copies_.table.num_rows);
    add_names(find_distinct_rows(ops.with({}), num_rows), ops, [](size_t) { return NameParts{{}, "MEMSET"}; });
    add_labels(find_distinct_rows({memsets_.num_bytes, memsets_.memory_kind}, num_rows), [this](size_t row) {
      return MemsetLabel{memsets_.num_bytes[row], memory_kind_text(memsets_.memory_kind[row])};
    });
  }

  // Adds the node names of a table's distinct rows: the op, followed by `part_of(row)`.
  template <typename PartOf>
  void add_names(const DistinctRows& rows, const OpColumns& ops, const PartOf& part_of) {
    const auto before = static_cast<uint32_t>(names_.size());
    for (const uint32_t row : rows.firsts) {
      const NameParts part = part_of(row);
      const std::optional<std::string> op = op_of(ops, row);
      op_ends_.push_back(checked(op ? op->size() : 0));
      names_.add([&](auto& sink) {
        put_message(sink, kNodeName, [&](auto& name) {
          if (op) {
            name.put_raw(*op);
          } else {
            name.put_raw(part.kind);
            name.put_raw(part.rest);
          }
          name.put_char(':');
          name.put_raw(part.kind);
          name.put_raw(part.rest);
        });
      });
    }
    for (const uint32_t place : rows.places) names_of_.push_back(before + place);
  }

  template <typename LabelOf>
  void add_labels(const DistinctRows& rows, const LabelOf& label_of) {
    const auto before = static_cast<uint32_t>(labels_.size());
    for (const uint32_t row : rows.firsts) {
      labels_.add_label([label = label_of(row)](auto& text) { label.put(text); });
    }
    for (const uint32_t place : rows.places) labels_of_.push_back(before + place);
  }

  template <typename Sink>
  void put(Sink& sink, const Activity& activity) const {
    const NodeTimes times = times_.of(activity.index, step_.offset_ns);
    const uint32_t call = calls_[activity.index];
    sink.put_raw(names_[names_of_[activity.index]]);
    times.put_micros(sink);
    sink.put_raw(labels_[labels_of_[activity.index]]);
    const int64_t scheduled_ns = call == kNoNumber ? 0 : sum(call_start_[call], step_.offset_ns);
    put_number(sink, kScheduledMicros, floor_micros(scheduled_ns));
    if (call != kNoNumber) put_number(sink, kThreadId, call_thread_[call]);
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
  std::vector<uint32_t> calls_;  // the calls that launched the activities
  std::vector<uint32_t> ops_;    // the annotations around these calls
  // The annotations around the captures of graph nodes; empty if no activity has one.
  std::vector<uint32_t> captured_;
  EncodedFields names_, labels_;
  std::vector<uint32_t> op_ends_;  // of the names
  std::vector<uint32_t> names_of_, labels_of_;
  // In the order of the nodes.
  std::vector<uint32_t> order_;
  std::vector<NodeBytes> bytes_;
  std::vector<uint32_t> groups_;

  std::map<Group, uint32_t> group_numbers_;
  std::vector<Places> places_;
  std::vector<DeviceHead> heads_;
};

}  // namespace

struct RecordedStepEncoder::Parts {
  explicit Parts(const RecordedStep& of)
      : hosts(of),
        jit_operations(of, of.jit_operations, "/cpu:0/jit", "jit_operation_type", jit_operation_type_text, true),
        memory_operations(of, of.memory_operations, "/cpu:0/memory", "operation", memory_operation_text, false),
        nvtx_ranges(
            of, of.nvtx_ranges, "/cpu:0/nvtx", "name_id",
            [&of](int64_t name_id) { return text_at(of.range_names, name_id); }, true, false),
        overheads(of, of.overheads, "/cpu:0/overheads", "overhead_kind", overhead_kind_text, true),
        waits(of, of.synchronizations, "/cpu:0/waits", "sync_type", sync_type_text, true),
        gpus(of),
        graphs(graph_devices(of)) {
    for (const RecordedTable& table : of.without_node) rows.emplace_back(table);
  }

  HostDevices hosts;
  SideDevice jit_operations, memory_operations, nvtx_ranges, overheads, waits;
  GpuDevices gpus;
  std::vector<SideDevice> graphs;
  std::vector<RowsEncoder> rows;  // rows that have no node
};

RecordedStepEncoder::RecordedStepEncoder(const RecordedStep& step) : parts_(std::make_unique<Parts>(step)) {}
RecordedStepEncoder::~RecordedStepEncoder() = default;

size_t RecordedStepEncoder::step_bytes() const {
  size_t num_bytes = parts_->hosts.num_bytes() + parts_->jit_operations.num_bytes() +
                     parts_->memory_operations.num_bytes() + parts_->nvtx_ranges.num_bytes() +
                     parts_->overheads.num_bytes() + parts_->waits.num_bytes() + parts_->gpus.num_bytes();
  for (const SideDevice& graphs : parts_->graphs) num_bytes += graphs.num_bytes();
  return num_bytes;
}

char* RecordedStepEncoder::write_step(char* to) const {
  to = parts_->hosts.write(to);
  to = parts_->jit_operations.write(to);
  to = parts_->memory_operations.write(to);
  to = parts_->nvtx_ranges.write(to);
  to = parts_->overheads.write(to);
  to = parts_->waits.write(to);
  to = parts_->gpus.write(to);
  for (const SideDevice& graphs : parts_->graphs) to = graphs.write(to);
  return to;
}

size_t RecordedStepEncoder::capture_bytes() const {
  size_t num_bytes = 0;
  for (const RowsEncoder& rows : parts_->rows) num_bytes += rows.num_bytes();
  return num_bytes;
}

char* RecordedStepEncoder::write_capture(char* to) const {
  for (const RowsEncoder& rows : parts_->rows) to = rows.write(to);
  return to;
}

}  // namespace collector::stepstats
