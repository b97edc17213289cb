// Which columns a row has, as data: what tables are built from, and what the reader of a journal is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "store/rows.h"

namespace collector::store {

// An integer in a row. The names are those of collector.recording.schema.SCHEMA.
struct Column {
  std::string_view name;
  uint32_t offset;
  uint8_t bytes;  // 1, 2, 4 or 8
  bool is_signed;
};

template <typename Row>
class Layout {
 public:
  template <typename Value>
  Layout& column(std::string_view name, Value Row::* member) {
    static_assert(std::is_integral_v<Value>);
    const Row row{};
    const auto* const begin = reinterpret_cast<const char*>(&row);
    const auto* const at = reinterpret_cast<const char*>(&(row.*member));
    columns_.push_back({name, static_cast<uint32_t>(at - begin), sizeof(Value), std::is_signed_v<Value>});
    return *this;
  }

  const std::vector<Column>& columns() const { return columns_; }

 private:
  std::vector<Column> columns_;
};

// What the rows hold themselves: not the device, context and stream that a chain of them shares, nor names that are
// looked up in the library.
template <typename Row>
const std::vector<Column>& columns_of();

template <>
const std::vector<Column>& columns_of<KernelRow>();
template <>
const std::vector<Column>& columns_of<MemcpyRow>();
template <>
const std::vector<Column>& columns_of<MemsetRow>();
template <>
const std::vector<Column>& columns_of<ApiCallRow>();
template <>
const std::vector<Column>& columns_of<ExternalCorrelationRow>();
template <>
const std::vector<Column>& columns_of<SynchronizationRow>();
template <>
const std::vector<Column>& columns_of<OverheadRow>();
template <>
const std::vector<Column>& columns_of<MemoryOperationRow>();
template <>
const std::vector<Column>& columns_of<AnnotationRow>();

}  // namespace collector::store
