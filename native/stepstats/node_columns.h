// The nodes of one device as columns: chosen fields of all NodeExecStats, read in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stepstats/wire.h"

namespace collector::stepstats {

// A table of fields: TensorFlow's fields, then ours, whose numbers are above 100000.
constexpr uint32_t kTheirFields = 32;
constexpr uint32_t kFirstOfOurs = 100001;
constexpr uint32_t kMaxFields = kTheirFields + 2;

// The place of a field in the table; kMaxFields for a field that cannot be requested.
constexpr uint32_t place_of(uint32_t field) {
  if (field < kTheirFields) return field;
  return field - kFirstOfOurs < kMaxFields - kTheirFields ? field - kFirstOfOurs + kTheirFields : kMaxFields;
}

// The begin and end of a text in each node, in bytes from the start of the device; 0, 0 if the text is absent.
struct Spans {
  int64_t* begins;
  int64_t* ends;
};

// The target column of each field, by its place; null if not requested. Each column has room for all nodes and is zero.
struct Columns {
  std::array<int64_t*, kMaxFields> numbers{};
  std::array<Spans, kMaxFields> texts{};
};

// The number of nodes in a DeviceStepStats message. Throws WireError.
size_t count_nodes(std::string_view device);

// Reads all nodes into `columns`; if a field occurs twice, the last occurrence counts. `num_nodes` is the result of
// count_nodes: if the bytes have changed since, this throws instead of writing beyond the columns. Throws WireError.
void read_nodes(std::string_view device, size_t num_nodes, const Columns& columns);

// The target column of a field of a message.
struct MessageColumn {
  uint32_t field;
  int64_t* values;
};

// Reads numeric fields of the messages in spans, which lie within `data`; an empty span is an empty message. Values of
// absent fields are left unchanged. Throws WireError.
void read_messages(std::string_view data, const int64_t* begins, const int64_t* ends, size_t count,
                   const std::vector<MessageColumn>& columns);

// The distinct texts in order of first use; `numbers` receives the number of each span's text. The spans lie within
// `data`.
std::vector<std::string_view> distinct_texts(std::string_view data, const int64_t* begins, const int64_t* ends,
                                             size_t count, int64_t* numbers);

}  // namespace collector::stepstats
