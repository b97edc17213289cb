// The types that the generated descriptions of record kinds use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace collector::store {

// An integer in a row. The names are those of collector.recording.schema.SCHEMA.
struct Column {
  std::string_view name;
  uint32_t offset;
  uint8_t bytes;  // 1, 2, 4 or 8
  bool is_signed;
};

// Name and columns of the table that consists of these rows. The columns are those stored in the rows, without the
// device, context and stream that a list of rows shares, and without names that are looked up in the library.
template <typename Row>
struct Table;

template <typename... Rows>
struct RowTypes {};

template <typename Row>
struct RowType {
  using Type = Row;
};

// Calls visit(RowType<Row>()) for each type in order.
template <typename... Rows, typename Visit>
void each_row_type(RowTypes<Rows...> /*types*/, const Visit& visit) {
  (visit(RowType<Rows>()), ...);
}

// The value, or the nearest value of the narrower type.
template <typename To, typename From>
constexpr To saturated(From value) {
  if constexpr (std::is_signed_v<From>) {
    return static_cast<To>(std::clamp<From>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    return static_cast<To>(std::min<From>(value, std::numeric_limits<To>::max()));
  }
}

template <typename Enum, typename... More>
constexpr bool is_one_of(uint32_t value, Enum first, More... more) {
  return value == static_cast<uint32_t>(first) || (... || (value == static_cast<uint32_t>(more)));
}

}  // namespace collector::store
