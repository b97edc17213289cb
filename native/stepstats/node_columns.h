// The nodes of one device as columns: chosen fields of all NodeExecStats, read in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stepstats/wire.h"

namespace collector::profile {

// Fields are told apart by a table: TensorFlow's that can be asked for, then ours, whose numbers are above 100000.
constexpr uint32_t kTheirFields = 32;
constexpr uint32_t kFirstOfOurs = 100001;
constexpr uint32_t kMaxFields = kTheirFields + 2;

// The place of a field in the table; kMaxFields for one that cannot be asked for.
constexpr uint32_t place_of(uint32_t field) {
  if (field < kTheirFields) return field;
  return field - kFirstOfOurs < kMaxFields - kTheirFields ? field - kFirstOfOurs + kTheirFields : kMaxFields;
}

// Where a text begins and ends in each node, in bytes from the start of the device. Not there: 0, 0.
struct Spans {
  int64_t* begins;
  int64_t* ends;
};

// Where the fields go, by their places; null: not asked for. Each column has room for all nodes and is zero.
struct Columns {
  std::array<int64_t*, kMaxFields> numbers{};
  std::array<Spans, kMaxFields> texts{};
};

// How many nodes there are in a DeviceStepStats message. Throws WireError.
size_t count_nodes(std::string_view device);

// Reads all nodes into `columns`; of a field that comes twice the last counts. `num_nodes` is what count_nodes said:
// should the bytes have changed since, then this throws rather than write beyond the columns. Throws WireError.
void read_nodes(std::string_view device, size_t num_nodes, const Columns& columns);

// Where a field of a message goes.
struct MessageColumn {
  uint32_t field;
  int64_t* values;
};

// Fields that are numbers of the messages in spans, which lie within `data`; an empty span is an empty message. What is
// not in a message stays as it is. Throws WireError.
void read_messages(std::string_view data, const int64_t* begins, const int64_t* ends, size_t count,
                   const std::vector<MessageColumn>& columns);

// Distinct texts in order of first use, and for each span the number of its text. The spans lie within `data`.
std::vector<std::string_view> distinct_texts(std::string_view data, const int64_t* begins, const int64_t* ends,
                                             size_t count, int64_t* numbers);

}  // namespace collector::profile
