#include "stepstats/node_encoder.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "stepstats/wire.h"

namespace collector::convert {
namespace {

constexpr uint32_t kNodeStatsField = 2;
constexpr char kNodeTag = static_cast<char>(Tag(kNodeStatsField, kBytes));
constexpr size_t kLongestVarint = 10;

size_t VarintBytes(uint64_t value) {
  const int bits = 64 - __builtin_clzll(value | 1);
  return static_cast<size_t>(bits * 9 + 64) / 64;  // a seventh of the bits, rounded up, without a division
}

char* WriteVarint(uint64_t value, char* to) {
  for (; value > 0x7F; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

std::string Varint(uint64_t value) {
  char bytes[kLongestVarint];
  return std::string(bytes, static_cast<size_t>(WriteVarint(value, bytes) - bytes));
}

char* WriteBytes(const std::string& bytes, char* to) { return std::copy(bytes.begin(), bytes.end(), to); }

}  // namespace

NodeEncoder::NodeEncoder(const std::vector<NodeColumn>& columns, const int64_t* rows, size_t num_rows) : rows_(rows) {
  for (const NodeColumn& given : columns) {
    Column column{Varint(Tag(given.field, given.is_text ? kBytes : kVarint)), given.values, {}, given.is_text};
    for (const std::string& text : given.texts) {
      column.encoded.push_back(text.empty() ? "" : column.tag + Varint(text.size()) + text);
    }
    columns_.push_back(std::move(column));
  }
  body_bytes_.reserve(num_rows);
  for (size_t at = 0; at < num_rows; ++at) {
    const size_t body = BodyBytes(rows[at]);
    if (body > std::numeric_limits<int32_t>::max()) throw std::length_error("a node of more than 2 GiB");
    body_bytes_.push_back(static_cast<uint32_t>(body));
    num_bytes_ += sizeof kNodeTag + VarintBytes(body) + body;
  }
}

char* NodeEncoder::Write(char* to) const {
  const int64_t* row = rows_;
  for (const uint32_t body : body_bytes_) {
    *to++ = kNodeTag;
    to = WriteBody(*row++, WriteVarint(body, to));
  }
  return to;
}

size_t NodeEncoder::BodyBytes(int64_t row) const {
  size_t num_bytes = 0;
  for (const Column& column : columns_) {
    const int64_t value = column.values[row];
    if (column.is_text) {
      num_bytes += column.encoded[static_cast<size_t>(value)].size();
    } else if (value != 0) {
      num_bytes += column.tag.size() + VarintBytes(static_cast<uint64_t>(value));
    }
  }
  return num_bytes;
}

char* NodeEncoder::WriteBody(int64_t row, char* to) const {
  for (const Column& column : columns_) {
    const int64_t value = column.values[row];
    if (column.is_text) {
      to = WriteBytes(column.encoded[static_cast<size_t>(value)], to);
    } else if (value != 0) {
      to = WriteVarint(static_cast<uint64_t>(value), WriteBytes(column.tag, to));
    }
  }
  return to;
}

}  // namespace collector::convert
