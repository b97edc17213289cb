#include "stepstats/typed_rows.h"

#include <algorithm>
#include <utility>

#include "stepstats/devices.h"
#include "stepstats/name_table.h"
#include "stepstats/run_metadata.h"
#include "stepstats/typed_activity.h"

namespace collector::stepstats {

TypedRowsReader::TypedRowsReader(TypedRows& rows, std::string_view whole)
    : whole_(whole), bytes_left_(kMostBytes + kMostBytesPerByte * whole.size()) {
  for (TypedTable& table : rows.tables) {
    Target& target = targets_.emplace_back(Target{&table, {}, std::vector<int64_t>(table.columns.size()), 0});
    for (size_t place = 0; place < table.columns.size(); ++place) {
      const uint32_t field = table.columns[place].field;
      if (field >= target.place_of_field.size()) target.place_of_field.resize(field + 1, kNowhere);
      target.place_of_field[field] = static_cast<uint32_t>(place);
    }
  }
}

int64_t TypedRowsReader::read(std::string_view activity, const Node& node, int64_t offset_ns) {
  Target* const target = target_of(static_cast<uint32_t>(kind_of(activity)));
  if (target == nullptr) return kNoRow;
  read_ = activity;
  std::fill(target->row.begin(), target->row.end(), 0);
  const auto start = static_cast<uint64_t>(node.start_ns) - static_cast<uint64_t>(offset_ns);
  target->set(ActivityField::kStartNs, static_cast<int64_t>(start));
  target->set(ActivityField::kEndNs, static_cast<int64_t>(start + static_cast<uint64_t>(node.end_rel_ns)));
  target->set(ActivityField::kCorrelationId, node.correlation_id);
  target->set(ActivityField::kThreadId, node.thread_id);
  WireReader reader(activity, whole_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if ((tag & 7) == kVarint) {
      target->set(tag >> 3, reader.read_int64());
    } else {
      reader.skip(tag);
    }
  }
  append(*target);
  return static_cast<int64_t>(target->table->num_rows) - 1;
}

void TypedRowsReader::read_rows(std::string_view message) {
  read_ = message;
  std::vector<std::pair<uint32_t, WireReader>> columns;
  uint32_t kind = 0;
  WireReader reader(message, whole_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(1, kVarint)) {
      kind = static_cast<uint32_t>(reader.read_varint());
    } else if (tag == make_tag(2, kBytes)) {
      const auto [field, packed] = read_column(reader.read_bytes());
      columns.emplace_back(field, WireReader(packed, whole_));
    } else {
      reader.skip(tag);
    }
  }
  Target* const target = target_of(kind);
  if (target == nullptr || columns.empty()) return;  // a table of a later version
  // A field twice, or columns of other lengths, are no file of ours; without them each row costs what its bytes do.
  std::vector<uint32_t> fields;
  fields.reserve(columns.size());
  for (const auto& column : columns) fields.push_back(column.first);
  std::sort(fields.begin(), fields.end());
  if (std::adjacent_find(fields.begin(), fields.end()) != fields.end()) {
    refuse("rows with one field twice");
  }
  while (!columns.front().second.at_end()) {
    std::fill(target->row.begin(), target->row.end(), 0);
    for (auto& [field, values] : columns) {
      if (values.at_end()) refuse("rows with columns of different lengths");
      target->set(field, values.read_int64());
    }
    append(*target);
  }
  const auto is_read = [](const auto& column) { return column.second.at_end(); };
  if (!std::all_of(columns.begin(), columns.end(), is_read)) {
    refuse("rows with columns of different lengths");
  }
}

void TypedRowsReader::append(Target& target) {
  TypedTable& table = *target.table;
  for (size_t place = 0; place < target.row.size(); ++place) {
    TypedTable::Column& column = table.columns[place];
    if (column.values.empty()) {
      if (target.row[place] == 0) continue;
      take(table.num_rows * column.width);
      target.row_bytes += column.width;
      column.values.resize(table.num_rows * column.width);
    }
    const char* const bytes = reinterpret_cast<const char*>(&target.row[place]);  // the lowest bytes come first
    column.values.insert(column.values.end(), bytes, bytes + column.width);
  }
  take(target.row_bytes);
  ++table.num_rows;
}

void TypedRowsReader::take(size_t num_bytes) {
  if (num_bytes > bytes_left_) refuse("more columns and rows than the bytes of the file can hold");
  bytes_left_ -= num_bytes;
}

void TypedRowsReader::refuse(const char* what) const {
  throw WireError(what, static_cast<size_t>(read_.data() - whole_.data()));
}

std::pair<uint32_t, std::string_view> TypedRowsReader::read_column(std::string_view message) const {
  std::pair<uint32_t, std::string_view> column{0, {}};
  WireReader reader(message, whole_);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(1, kVarint)) {
      column.first = static_cast<uint32_t>(reader.read_varint());
    } else if (tag == make_tag(2, kBytes)) {
      column.second = reader.read_bytes();
    } else {
      reader.skip(tag);
    }
  }
  return column;
}

TypedRowsReader::Target* TypedRowsReader::target_of(uint32_t kind) {
  for (Target& target : targets_) {
    if (target.table->kind == kind) return &target;
  }
  return nullptr;
}

namespace {

void read_capture(std::string_view message, std::string_view whole, TypedRowsReader& activities, TypedRows& rows) {
  WireReader reader(message, whole);
  const char* field = message.data();
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(kCaptureRows, kBytes)) {
      activities.read_rows(reader.read_bytes());
    } else {
      reader.skip(tag);
      rows.capture.append(field, static_cast<size_t>(reader.position() - field));
    }
    field = reader.position();
  }
}

}  // namespace

void read_typed_rows(std::string_view bytes, bool is_run_metadata, int64_t offset_ns, TypedRows& rows) {
  TypedRowsReader activities(rows, bytes);
  const StepStats step(bytes, is_run_metadata);
  NameTable whole_units;  // GPUs that have a `stream:all` device
  for (const Device& device : step.devices()) {
    const DeviceName name = parse_device_name(device.name);
    if (name.kind == DeviceKind::kAllStreams) whole_units.insert(name.unit);
  }
  for (const Device& device : step.devices()) {
    const DeviceName name = parse_device_name(device.name);
    const bool is_part = name.kind == DeviceKind::kStream || name.kind == DeviceKind::kCopies;
    if (is_part && whole_units.find(name.unit) != NameTable::kNone) continue;
    step.for_each_node(device, [&](const Node& node) {
      const bool is_row =
          !node.activity.empty() && activities.read(node.activity, node, offset_ns) != TypedRowsReader::kNoRow;
      if (!is_row) ++rows.without_columns;
    });
  }
  if (!is_run_metadata) return;
  WireReader reader(bytes, bytes);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(kRunMetadataCapture, kBytes))
      read_capture(reader.read_bytes(), bytes, activities, rows);
    else
      reader.skip(tag);
  }
}

}  // namespace collector::stepstats
