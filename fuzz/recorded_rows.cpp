#include "recorded_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "checks.h"
#include "kinds/generated/activities.h"
#include "stepstats/recorded_step.h"
#include "stepstats/wire_sink.h"

namespace collector::fuzz {
namespace {

using namespace collector::stepstats;  // NOLINT(google-build-using-namespace): all of it is under test

constexpr uint32_t kStepStats = 1;  // of RunMetadata
constexpr uint32_t kCapture = 100002;
constexpr int64_t kAnnotationExternalKind = 5;
constexpr uint64_t kNames = 4;

bool is_work(TableKind kind) {
  return kind == TableKind::kKernel || kind == TableKind::kMemcpy || kind == TableKind::kMemset;
}

// Whether a table's nodes contain a column that its activities lack.
bool is_of_node(TableKind kind, ActivityField field) {
  return (is_work(kind) && field == ActivityField::kThreadId) ||
         (kind == TableKind::kMemoryOperation && field == ActivityField::kEndNs);
}

// Whether the node contains the column, so that its activity does not.
bool is_carried(TableKind kind, ActivityField field) {
  switch (field) {
    case ActivityField::kStartNs:
    case ActivityField::kEndNs:
      return kind != TableKind::kExternalCorrelation;
    case ActivityField::kCorrelationId:
      return kind != TableKind::kExternalCorrelation && kind != TableKind::kAnnotation;
    case ActivityField::kThreadId:
      return kind == TableKind::kApiCall || kind == TableKind::kAnnotation;
    default:
      return false;
  }
}

std::string_view name_of(uint32_t field) {
  const auto* const found =
      std::find_if(std::begin(kActivityColumns), std::end(kActivityColumns),
                   [field](const ActivityColumn& column) { return static_cast<uint32_t>(column.field) == field; });
  return found->name;
}

int64_t value_at(const TypedTable::Column& column, size_t row) {
  int64_t value;
  std::memcpy(&value, column.values.data() + row * sizeof value, sizeof value);
  return value;
}

template <typename Change>
void change_all(TypedTable::Column& column, const Change& change) {
  for (size_t at = 0; at < column.values.size(); at += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, column.values.data() + at, sizeof value);
    value = change(value);
    std::memcpy(column.values.data() + at, &value, sizeof value);
  }
}

std::vector<std::vector<int64_t>> sorted_rows(const TypedTable& table) {
  std::vector<std::vector<int64_t>> rows(table.num_rows);
  for (size_t row = 0; row < table.num_rows; ++row) {
    for (const TypedTable::Column& column : table.columns) rows[row].push_back(value_at(column, row));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

RecordedTable recorded_table(const TypedTable& table) {
  const auto kind = static_cast<TableKind>(table.kind);
  RecordedTable recorded;
  recorded.kind = table.kind;
  recorded.num_rows = table.num_rows;
  for (const TypedTable::Column& column : table.columns) {
    const ColumnView view{column.values.data(), sizeof(int64_t), true};
    recorded.columns.emplace_back(name_of(column.field), view);
    if (!is_carried(kind, static_cast<ActivityField>(column.field))) recorded.fields.push_back({column.field, view});
  }
  return recorded;
}

// A table whose rows are not made up here: those of CUDA graphs, of NVTX ranges, of compilations and of other programs.
RecordedTable without_rows(TableKind kind) {
  RecordedTable recorded;
  recorded.kind = static_cast<uint32_t>(kind);
  for (const ActivityColumn& column : kActivityColumns) recorded.columns.emplace_back(column.name, ColumnView{});
  return recorded;
}

// The output of `put`, written to memory of exactly the required size.
template <typename Write>
std::string write_exactly(size_t num_bytes, const Write& write) {
  const auto bytes = std::make_unique<char[]>(num_bytes);
  require(write(bytes.get()) == bytes.get() + num_bytes, "another length than announced");
  return std::string(bytes.get(), num_bytes);
}

void append_message(std::string& to, uint32_t field, std::string_view message) {
  char head[20];
  char* end = write_varint(make_tag(field, kBytes), head);
  end = write_varint(message.size(), end);
  to.append(head, static_cast<size_t>(end - head)).append(message);
}

}  // namespace

RecordedRows::RecordedRows(std::string_view message, bool is_run_metadata, int64_t offset_ns, uint32_t choice)
    : offset_ns_(offset_ns), choice_(choice) {
  constexpr auto kLastKind = static_cast<uint32_t>(TableKind::kAnnotation);
  for (uint32_t kind = 1; kind <= kLastKind; ++kind) {
    TypedTable& table = rows_.tables.emplace_back();
    table.kind = kind;
    for (const ActivityColumn& column : kActivityColumns) {
      if (is_of_node(static_cast<TableKind>(kind), column.field)) continue;
      table.columns.push_back({static_cast<uint32_t>(column.field), sizeof(int64_t), {}});
    }
  }
  read_typed_rows(message, is_run_metadata, offset_ns, rows_);
  for (TypedTable& table : rows_.tables) {
    for (TypedTable::Column& column : table.columns) {
      if (column.values.empty()) column.values.resize(table.num_rows * sizeof(int64_t));  // zeros take no memory
      require(column.values.size() == table.num_rows * sizeof(int64_t), "columns of different lengths");
      const auto field = static_cast<ActivityField>(column.field);
      if (field == ActivityField::kNameId) change_all(column, [](uint64_t id) { return id % kNames; });
      if (field == ActivityField::kCorrelationId || field == ActivityField::kThreadId) {  // nodes store 32 bits
        change_all(column, [](uint64_t id) { return id & UINT32_MAX; });
      }
    }
  }
}

std::string RecordedRows::to_message() const {
  const auto table_of = [this](TableKind kind) -> const TypedTable& {
    return rows_.tables[static_cast<size_t>(kind) - 1];
  };
  const auto recorded = [&](TableKind kind) { return recorded_table(table_of(kind)); };
  RecordedStep step;
  step.kernels = recorded(TableKind::kKernel);
  step.memcpys = recorded(TableKind::kMemcpy);
  step.memsets = recorded(TableKind::kMemset);
  step.api_calls = recorded(TableKind::kApiCall);
  step.external_correlations = recorded(TableKind::kExternalCorrelation);
  step.annotations = recorded(TableKind::kAnnotation);
  step.graph_launches = without_rows(TableKind::kGraphLaunch);
  step.other_ranges = without_rows(TableKind::kOtherRange);
  for (size_t place = 0; place < step.side_tables.size(); ++place) {
    const TableKind kind = kSideTables[place].kind;
    step.side_tables[place] = static_cast<size_t>(kind) <= rows_.tables.size() ? recorded(kind) : without_rows(kind);
  }
  if (step.external_correlations.num_rows != 0) step.without_node.push_back(step.external_correlations);
  step.device_prefix = choice_ % 2 != 0 ? "/job:w/replica:0/task:1" : "";
  step.offset_ns = offset_ns_;
  step.short_names = {"add<float>", "", "a:b", "/"};
  step.whole_names = {"void add<float>(float*)", "", "a regs:1", "\xFF"};
  step.api_names = {"cudaLaunchKernel", "", "a/b/", "//"};
  step.paths = {"layer1/conv", "", "a:b", "é"};
  step.ops = {"layer1/conv", "", "a.b", "é"};
  step.annotation_labels = {"layer1/conv = Conv2D(layer1/input)", ""};
  step.annotation_op_ends = {11, 0};
  std::vector<uint32_t> alternating(std::max(step.annotations.num_rows, step.api_calls.num_rows));
  for (size_t row = 0; row < alternating.size(); ++row) alternating[row] = row % 2;
  step.annotation_label = alternating.data();
  if (choice_ / 2 % 2 != 0) step.outputs = {{"", std::string("\x1A\0", 2)}, alternating.data()};
  if (choice_ / 4 % 2 != 0) step.memory = {{"", "\x0A\x05gpu:0"}, alternating.data()};
  step.host_devices = {{"/cpu:0", ""}};
  if (choice_ / 8 % 2 != 0) append_message(step.host_devices[0].thread_names, 3, "\x08\x07\x12\x01t");
  step.num_known_annotations = step.annotations.num_rows;
  step.known_external_id = step.annotations["external_id"];
  step.known_name_id = step.annotations["name_id"];
  step.annotation_external_kind = kAnnotationExternalKind;

  const RecordedStepEncoder encoder(step);
  std::string written;
  append_message(written, kStepStats,
                 write_exactly(encoder.step_bytes(), [&encoder](char* to) { return encoder.write_step(to); }));
  append_message(written, kCapture,
                 write_exactly(encoder.capture_bytes(), [&encoder](char* to) { return encoder.write_capture(to); }));
  return written;
}

bool RecordedRows::operator==(const RecordedRows& other) const {
  for (size_t place = 0; place < rows_.tables.size(); ++place) {
    if (sorted_rows(rows_.tables[place]) != sorted_rows(other.rows_.tables[place])) return false;
  }
  return true;
}

}  // namespace collector::fuzz
