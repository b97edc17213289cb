#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "stepstats/activity_encoder.h"
#include "stepstats/device_encoder.h"
#include "stepstats/encoded_nodes.h"
#include "stepstats/label_writer.h"

namespace collector::stepstats {
namespace {

EncodedFields encoded_call_labels(const std::vector<std::string>& names) {
  EncodedFields labels;
  for (const std::string& name : names) {
    labels.add_label([&name](auto& text) { put_call_label(text, name); });
  }
  return labels;
}

class HostDevices final : public DeviceEncoder {
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

  size_t num_bytes() const override {
    size_t num_bytes = 0;
    for (const Device& device : devices_) num_bytes += device.order.empty() ? 0 : device.head.element();
    return num_bytes;
  }

  char* write(char* to) const override {
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
      device.bytes.push_back({checked_node_bytes(plain.num_bytes()), activities_of(row).num_bytes(row.row)});
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

}  // namespace

void add_host_devices(const RecordedStep& step, DeviceEncoders& encoders) {
  encoders.push_back(std::make_unique<HostDevices>(step));
}

}  // namespace collector::stepstats
