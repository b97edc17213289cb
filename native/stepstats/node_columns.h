// The nodes of one device as columns: chosen fields of all NodeExecStats, read in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stepstats/wire.h"

namespace collector::profile {

// Fields are told apart by a table: those that can be asked for have numbers below this.
constexpr uint32_t kMaxField = 32;

// Where a text begins and ends in each node, in bytes from the start of the device. Not there: 0, 0.
struct Spans {
  int64_t* begins;
  int64_t* ends;
};

// Where the fields go, by their numbers; null: not asked for. Each column has room for all nodes and is zero.
struct Columns {
  std::array<int64_t*, kMaxField> numbers{};
  std::array<Spans, kMaxField> texts{};
};

// How many nodes there are in a DeviceStepStats message. Throws WireError.
size_t count_nodes(std::string_view device);

// Reads all nodes into `columns`; of a field that comes twice the last counts. `num_nodes` is what count_nodes said:
// should the bytes have changed since, then this throws rather than write beyond the columns. Throws WireError.
void read_nodes(std::string_view device, size_t num_nodes, const Columns& columns);

// Distinct texts in order of first use, and for each span the number of its text. The spans lie within `data`.
std::vector<std::string_view> distinct_texts(std::string_view data, const int64_t* begins, const int64_t* ends,
                                             size_t count, int64_t* numbers);

}  // namespace collector::profile
