#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/activity_encoder.h"
#include "stepstats/device_encoder.h"
#include "stepstats/distinct_rows.h"
#include "stepstats/encoded_nodes.h"
#include "stepstats/label_writer.h"

namespace collector::stepstats {
namespace {

// Between the path at the launch of a graph and that at the capture of its node. Proton writes the same.
constexpr std::string_view kCapturedAt = "<captured_at>/";

class GpuDevices final : public DeviceEncoder {
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

  size_t num_bytes() const override {
    size_t num_bytes = 0;
    for (const DeviceHead& head : heads_) num_bytes += head.element();
    return num_bytes;
  }

  char* write(char* to) const override {
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
      bytes_.push_back({checked_node_bytes(plain.num_bytes()), activity.work->activities.num_bytes(activity.row)});
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
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> lowest_contexts = step_.first_contexts;
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
      for (; next != group_numbers_.end() && next->first.device_id == device; ++next) {
        const auto& [group, number] = *next;
        std::string name = unit + "/stream:" + std::to_string(group.stream_id);
        const uint32_t lowest = lowest_contexts.try_emplace({device, group.stream_id}, group.context_id).first->second;
        if (group.context_id != lowest) name += "." + std::to_string(group.context_id);
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
      op_ends_.push_back(checked_node_bytes(op ? op->size() : 0));
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
    const int64_t scheduled_ns = call == kNoNumber ? 0 : wrapping_sum(call_start_[call], step_.offset_ns);
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

void add_gpu_devices(const RecordedStep& step, DeviceEncoders& encoders) {
  encoders.push_back(std::make_unique<GpuDevices>(step));
}

}  // namespace collector::stepstats
