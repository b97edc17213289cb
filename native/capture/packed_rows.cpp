#include "capture/packed_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "capture/journal_format.h"

namespace collector::capture {
namespace {

using journal_format::Coding;

template <typename Value>
void gather(const char* at, size_t stride, size_t count, uint64_t* values) {
  for (size_t i = 0; i < count; ++i, at += stride) {
    Value value;
    std::memcpy(&value, at, sizeof(value));
    if constexpr (std::is_signed_v<Value>) {
      values[i] = static_cast<uint64_t>(static_cast<int64_t>(value));
    } else {
      values[i] = value;
    }
  }
}

void gather(const store::Column& column, const RowRun& run, uint64_t* values) {
  const char* const at = run.rows + column.offset;
  switch (column.bytes) {
    case 1:
      return column.is_signed ? gather<int8_t>(at, run.row_bytes, run.count, values)
                              : gather<uint8_t>(at, run.row_bytes, run.count, values);
    case 2:
      return column.is_signed ? gather<int16_t>(at, run.row_bytes, run.count, values)
                              : gather<uint16_t>(at, run.row_bytes, run.count, values);
    case 4:
      return column.is_signed ? gather<int32_t>(at, run.row_bytes, run.count, values)
                              : gather<uint32_t>(at, run.row_bytes, run.count, values);
    default:
      return gather<uint64_t>(at, run.row_bytes, run.count, values);
  }
}

// The smallest and the largest of some numbers, which are compared as signed ones.
struct Range {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = std::numeric_limits<int64_t>::min();

  void add(uint64_t number) {
    const auto value = static_cast<int64_t>(number);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  uint64_t base() const { return static_cast<uint64_t>(least); }
  // Bytes of the largest residual.
  int width() const {
    int bytes = 0;
    for (uint64_t rest = static_cast<uint64_t>(most) - static_cast<uint64_t>(least); rest != 0; rest >>= 8) ++bytes;
    return bytes;
  }
};

struct Choice {
  Coding coding = Coding::kValues;
  int width = 0;
  uint64_t base = 0;
};

// `before`: null for the first column.
Choice choose(const uint64_t* values, const uint64_t* before, size_t count) {
  Range plain;
  for (size_t i = 0; i < count; ++i) plain.add(values[i]);
  Choice best{Coding::kValues, plain.width(), plain.base()};
  if (best.width <= 1 || count < 2) return best;
  Range steps;
  for (size_t i = 1; i < count; ++i) steps.add(values[i] - values[i - 1]);
  if (steps.width() < best.width) best = {Coding::kDifferences, steps.width(), steps.base()};
  if (before == nullptr || best.width == 0) return best;
  Range from_column;
  for (size_t i = 0; i < count; ++i) from_column.add(values[i] - before[i]);
  if (from_column.width() < best.width) best = {Coding::kFromColumn, from_column.width(), from_column.base()};
  return best;
}

template <typename Value>
void append(std::vector<char>& out, Value value) {
  const auto* const begin = reinterpret_cast<const char*>(&value);
  out.insert(out.end(), begin, begin + sizeof(value));
}

template <typename ResidualOf>
void append_residuals(std::vector<char>& out, size_t first, size_t count, int width, const ResidualOf& residual_of) {
  const size_t at = out.size();
  const auto bytes = static_cast<size_t>(width);
  // Whole words are stored, each over the end of the one before; the room behind the last one is removed.
  out.resize(at + (count - first) * bytes + sizeof(uint64_t));
  char* place = out.data() + at;
  for (size_t i = first; i < count; ++i, place += bytes) {
    const uint64_t residual = residual_of(i);
    std::memcpy(place, &residual, sizeof(residual));
  }
  out.resize(at + (count - first) * bytes);
}

void append_column(std::vector<char>& out, const uint64_t* values, const uint64_t* before, size_t count) {
  const Choice choice = choose(values, before, count);
  append(out, choice.coding);
  append(out, static_cast<uint8_t>(choice.width));
  append(out, choice.base);
  if (choice.coding == Coding::kDifferences) append(out, values[0]);
  if (choice.width == 0) return;
  switch (choice.coding) {
    case Coding::kValues:
      return append_residuals(out, 0, count, choice.width, [&](size_t i) { return values[i] - choice.base; });
    case Coding::kDifferences:
      return append_residuals(out, 1, count, choice.width,
                              [&](size_t i) { return values[i] - values[i - 1] - choice.base; });
    case Coding::kFromColumn:
      return append_residuals(out, 0, count, choice.width,
                              [&](size_t i) { return values[i] - before[i] - choice.base; });
  }
}

}  // namespace

bool RowPacker::pack(const RowRun& run, std::vector<char>& out) {
  const size_t begin = out.size();
  const size_t raw_bytes = run.count * run.row_bytes;
  if (raw_bytes <= head_bytes(run.num_columns)) return false;
  values_.resize(run.count);
  before_.resize(run.count);
  for (size_t i = 0; i < run.num_columns; ++i) {
    gather(run.columns[i], run, values_.data());
    append_column(out, values_.data(), i == 0 ? nullptr : before_.data(), run.count);
    values_.swap(before_);
  }
  if (out.size() - begin < raw_bytes) return true;
  out.resize(begin);
  return false;
}

}  // namespace collector::capture
