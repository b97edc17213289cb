#include "stepstats/node_columns.h"

#include "stepstats/name_table.h"
#include "stepstats/step_stats.h"

namespace collector::stepstats {
namespace {

// Steps contain no groups, as proto3 has none: bytes that look like a group are another message or damaged.
void skip(WireReader& reader, uint32_t tag) {
  if ((tag & 7) == kGroupStart) throw WireError("a group, which no step has", 0);
  reader.skip(tag);
}

template <typename Visit>
void for_each_node(std::string_view device, Visit visit) {
  WireReader reader(device, device);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == kNodeTag) {
      visit(reader.read_bytes());
    } else {
      skip(reader, tag);
    }
  }
}

void read_node(std::string_view node, std::string_view device, size_t row, const Columns& columns) {
  WireReader reader(node, device);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    const uint32_t place = place_of(tag >> 3);
    const uint32_t type = tag & 7;
    if (type == kVarint) {
      const int64_t value = reader.read_int64();
      if (place < kMaxFields && columns.numbers[place] != nullptr) columns.numbers[place][row] = value;
    } else if (type == kBytes) {
      const std::string_view text = reader.read_bytes();
      if (place < kMaxFields && columns.texts[place].begins != nullptr) {
        columns.texts[place].begins[row] = text.data() - device.data();
        columns.texts[place].ends[row] = text.data() + text.size() - device.data();
      }
    } else {
      skip(reader, tag);
    }
  }
}

}  // namespace

size_t count_nodes(std::string_view device) {
  size_t count = 0;
  for_each_node(device, [&](std::string_view) { ++count; });
  return count;
}

void read_nodes(std::string_view device, size_t num_nodes, const Columns& columns) {
  size_t row = 0;
  for_each_node(device, [&](std::string_view node) {
    if (row == num_nodes) throw WireError("bytes that change while they are read", 0);
    read_node(node, device, row++, columns);
  });
}

void read_messages(std::string_view data, const int64_t* begins, const int64_t* ends, size_t count,
                   const std::vector<MessageColumn>& columns) {
  for (size_t row = 0; row < count; ++row) {
    const auto begin = static_cast<size_t>(begins[row]);
    WireReader reader(data.substr(begin, static_cast<size_t>(ends[row]) - begin), data);
    while (!reader.at_end()) {
      const uint32_t tag = reader.read_tag();
      if ((tag & 7) != kVarint) {
        skip(reader, tag);
        continue;
      }
      const int64_t value = reader.read_int64();
      for (const MessageColumn& column : columns) {
        if (column.field == tag >> 3) column.values[row] = value;
      }
    }
  }
}

std::vector<std::string_view> distinct_texts(std::string_view data, const int64_t* begins, const int64_t* ends,
                                             size_t count, int64_t* numbers) {
  NameTable table;
  for (size_t row = 0; row < count; ++row) {
    const auto begin = static_cast<size_t>(begins[row]);
    numbers[row] = table.insert(data.substr(begin, static_cast<size_t>(ends[row]) - begin)).number;
  }
  std::vector<std::string_view> texts;
  texts.reserve(table.size());
  for (size_t number = 0; number < table.size(); ++number) texts.push_back(table[static_cast<uint32_t>(number)]);
  return texts;
}

}  // namespace collector::stepstats
