#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/activity_encoder.h"
#include "stepstats/device_encoder.h"
#include "stepstats/encoded_nodes.h"
#include "stepstats/label_writer.h"

namespace collector::stepstats {
namespace {

// What the devices of a table share: there can be as many of them as rows.
struct SideRows {
  SideRows(const RecordedTable& table, bool has_end) : activities(table) { times.add(table, has_end); }

  ActivityEncoder activities;
  RowTimes times;
};

// The device of a table with neither calls nor GPU work: a side table, or launches of graphs.
class SideDevice final : public DeviceEncoder {
 public:
  SideDevice(const RecordedStep& step, const std::shared_ptr<const SideRows>& table, std::string_view device,
             std::function<std::string_view(uint32_t)> name_of, ColumnView correlation)
      : SideDevice(step, table, device, std::move(name_of), correlation, table->times.host_order()) {}
  // `order`: the rows of the device.
  SideDevice(const RecordedStep& step, std::shared_ptr<const SideRows> table, std::string_view device,
             std::function<std::string_view(uint32_t)> name_of, ColumnView correlation, std::vector<uint32_t> order)
      : table_(std::move(table)),
        offset_ns_(step.offset_ns),
        correlation_(correlation),
        name_of_(std::move(name_of)),
        order_(std::move(order)) {
    bytes_.reserve(order_.size());
    head_.name = step.device_prefix;
    head_.name.append(device);
    for (const uint32_t row : order_) {
      Measure plain;
      put(plain, row);
      bytes_.push_back({checked_node_bytes(plain.num_bytes()), table_->activities.num_bytes(row)});
      head_.node_bytes += NodeBytes::element_bytes(bytes_.back().typed());
    }
  }

  size_t num_bytes() const override { return order_.empty() ? 0 : head_.element(); }

  char* write(char* to) const override {
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

  std::shared_ptr<const SideRows> table_;
  int64_t offset_ns_;
  ColumnView correlation_;
  std::function<std::string_view(uint32_t)> name_of_;  // the text holds until the next call
  std::vector<uint32_t> order_;
  std::vector<NodeBytes> bytes_;
  DeviceHead head_;
};

}  // namespace

void add_side_devices(const RecordedStep& step, DeviceEncoders& encoders) {
  for (size_t place = 0; place < step.side_tables.size(); ++place) {
    const SideTable& side = kSideTables[place];
    const RecordedTable& table = step.side_tables[place];
    const auto name_of = [&step, text_of = side.text_of, name = table[side.name_column]](uint32_t row) {
      return text_of != nullptr ? text_of(name[row]) : text_at(step.side_names, name[row]);
    };
    encoders.push_back(std::make_unique<SideDevice>(step, std::make_shared<const SideRows>(table, side.has_end),
                                                    side.device, name_of,
                                                    side.has_correlation ? table["correlation_id"] : ColumnView{}));
  }
}

void add_graph_devices(const RecordedStep& step, DeviceEncoders& encoders) {
  const RecordedTable& table = step.graph_launches;
  const auto shared = std::make_shared<const SideRows>(table, true);
  const ColumnView device_id = table["device_id"];
  std::map<int64_t, std::vector<uint32_t>> rows_of;
  for (const uint32_t row : shared->times.host_order()) rows_of[device_id[row]].push_back(row);
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
    encoders.push_back(
        std::make_unique<SideDevice>(step, shared, name, name_of, table["correlation_id"], std::move(rows)));
  }
}

}  // namespace collector::stepstats
