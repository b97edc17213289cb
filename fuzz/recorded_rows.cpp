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

using namespace collector::convert;  // NOLINT(google-build-using-namespace): all of it is under test

constexpr uint32_t kStepStats = 1;  // of RunMetadata
constexpr uint32_t kCapture = 100002;
constexpr int64_t kAnnotationExternalKind = 5;
constexpr uint64_t kNames = 4;

bool IsWork(TableKind kind) {
  return kind == TableKind::kKernel || kind == TableKind::kMemcpy || kind == TableKind::kMemset;
}

// Whether the nodes of a table say the column of activities that have no such column.
bool IsOfNode(TableKind kind, ActivityField field) {
  return (IsWork(kind) && field == ActivityField::kThreadId) ||
         (kind == TableKind::kMemoryOperation && field == ActivityField::kEndNs);
}

// Whether the node has the column, so that its activity has not.
bool IsCarried(TableKind kind, ActivityField field) {
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

std::string_view NameOf(uint32_t field) {
  const auto* const found =
      std::find_if(std::begin(kActivityColumns), std::end(kActivityColumns),
                   [field](const ActivityColumn& column) { return static_cast<uint32_t>(column.field) == field; });
  return found->name;
}

int64_t ValueAt(const TypedTable::Column& column, size_t row) {
  int64_t value;
  std::memcpy(&value, column.values.data() + row * sizeof value, sizeof value);
  return value;
}

template <typename Change>
void ChangeAll(TypedTable::Column& column, const Change& change) {
  for (size_t at = 0; at < column.values.size(); at += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, column.values.data() + at, sizeof value);
    value = change(value);
    std::memcpy(column.values.data() + at, &value, sizeof value);
  }
}

std::vector<std::vector<int64_t>> SortedRows(const TypedTable& table) {
  std::vector<std::vector<int64_t>> rows(table.num_rows);
  for (size_t row = 0; row < table.num_rows; ++row) {
    for (const TypedTable::Column& column : table.columns) rows[row].push_back(ValueAt(column, row));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

RecordedTable Recorded(const TypedTable& table) {
  const auto kind = static_cast<TableKind>(table.kind);
  RecordedTable recorded;
  recorded.kind = table.kind;
  recorded.num_rows = table.num_rows;
  for (const TypedTable::Column& column : table.columns) {
    const ColumnView view{column.values.data(), sizeof(int64_t), true};
    recorded.columns.emplace_back(NameOf(column.field), view);
    if (!IsCarried(kind, static_cast<ActivityField>(column.field))) recorded.fields.push_back({column.field, view});
  }
  return recorded;
}

// What `put` writes to memory that has not a byte more than it needs.
template <typename Write>
std::string Exactly(size_t num_bytes, const Write& write) {
  const auto bytes = std::make_unique<char[]>(num_bytes);
  Require(write(bytes.get()) == bytes.get() + num_bytes, "another length than announced");
  return std::string(bytes.get(), num_bytes);
}

void AppendMessage(std::string& to, uint32_t field, std::string_view message) {
  char head[20];
  char* end = WriteVarint(Tag(field, kBytes), head);
  end = WriteVarint(message.size(), end);
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
      if (IsOfNode(static_cast<TableKind>(kind), column.field)) continue;
      table.columns.push_back({static_cast<uint32_t>(column.field), sizeof(int64_t), {}});
    }
  }
  ReadTypedRows(message, is_run_metadata, offset_ns, rows_);
  for (TypedTable& table : rows_.tables) {
    for (TypedTable::Column& column : table.columns) {
      Require(column.values.size() == table.num_rows * sizeof(int64_t), "columns of different lengths");
      const auto field = static_cast<ActivityField>(column.field);
      if (field == ActivityField::kNameId) ChangeAll(column, [](uint64_t id) { return id % kNames; });
      if (field == ActivityField::kCorrelationId || field == ActivityField::kThreadId) {  // as nodes have them
        ChangeAll(column, [](uint64_t id) { return id & UINT32_MAX; });
      }
    }
  }
}

std::string RecordedRows::Written() const {
  const auto table_of = [this](TableKind kind) -> const TypedTable& {
    return rows_.tables[static_cast<size_t>(kind) - 1];
  };
  const auto recorded = [&](TableKind kind) { return Recorded(table_of(kind)); };
  RecordedStep step;
  step.kernels = recorded(TableKind::kKernel);
  step.memcpys = recorded(TableKind::kMemcpy);
  step.memsets = recorded(TableKind::kMemset);
  step.api_calls = recorded(TableKind::kApiCall);
  step.external_correlations = recorded(TableKind::kExternalCorrelation);
  step.synchronizations = recorded(TableKind::kSynchronization);
  step.overheads = recorded(TableKind::kOverhead);
  step.memory_operations = recorded(TableKind::kMemoryOperation);
  step.annotations = recorded(TableKind::kAnnotation);
  if (step.external_correlations.num_rows != 0) step.without_node.push_back(step.external_correlations);
  step.device_prefix = choice_ % 2 != 0 ? "/job:w/replica:0/task:1" : "";
  step.offset_ns = offset_ns_;
  step.short_names = {"add<float>", "", "a:b", "/"};
  step.whole_names = {"void add<float>(float*)", "", "a regs:1", "\xFF"};
  step.api_names = {"cudaLaunchKernel", "", "a/b/", "//"};
  step.paths = {"layer1/conv", "", "a:b", "é"};
  step.ops = {"layer1/conv", "", "a.b", "é"};
  step.annotation_labels = {"layer1/conv = Conv2D(layer1/input)", ""};
  std::vector<uint32_t> alternating(std::max(step.annotations.num_rows, step.api_calls.num_rows));
  for (size_t row = 0; row < alternating.size(); ++row) alternating[row] = row % 2;
  step.annotation_label = alternating.data();
  if (choice_ / 2 % 2 != 0) step.outputs = {{"", std::string("\x1A\0", 2)}, alternating.data()};
  if (choice_ / 4 % 2 != 0) step.memory = {{"", "\x0A\x05gpu:0"}, alternating.data()};
  if (choice_ / 8 % 2 != 0) AppendMessage(step.thread_names, 3, "\x08\x07\x12\x01t");
  step.num_known_annotations = step.annotations.num_rows;
  step.known_external_id = step.annotations["external_id"];
  step.known_name_id = step.annotations["name_id"];
  step.annotation_external_kind = kAnnotationExternalKind;

  const RecordedStepEncoder encoder(step);
  std::string written;
  AppendMessage(written, kStepStats,
                Exactly(encoder.step_bytes(), [&encoder](char* to) { return encoder.WriteStep(to); }));
  AppendMessage(written, kCapture,
                Exactly(encoder.capture_bytes(), [&encoder](char* to) { return encoder.WriteCapture(to); }));
  return written;
}

bool RecordedRows::operator==(const RecordedRows& other) const {
  for (size_t place = 0; place < rows_.tables.size(); ++place) {
    if (SortedRows(rows_.tables[place]) != SortedRows(other.rows_.tables[place])) return false;
  }
  return true;
}

}  // namespace collector::fuzz
