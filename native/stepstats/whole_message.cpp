#include "stepstats/whole_message.h"

#include <cstring>

#include "stepstats/utf8.h"
#include "stepstats/wire.h"

namespace collector::stepstats {
namespace {

constexpr int kMaxDepth = 60;           // protobuf's limit is 100
constexpr int kLongestShortVarint = 5;  // protobuf refuses longer tags
constexpr int kLongestVarint = 10;

class Check {
 public:
  explicit Check(const std::vector<MessageSchema>& schemas) : schemas_(schemas), counts_(schemas.size(), 0) {}

  bool is_whole(std::string_view message, uint32_t schema, int depth);
  std::vector<uint64_t> take_counts() { return std::move(counts_); }

 private:
  // Reads a tag or a length.
  static bool read_short(const char*& next, const char* end, uint32_t& value);
  static bool skip_varint(const char*& next, const char* end);
  static bool is_packed(std::string_view numbers, FieldKind kind);
  bool is_value(std::string_view value, const FieldSchema& field, int depth);

  const std::vector<MessageSchema>& schemas_;
  std::vector<uint64_t> counts_;
};

bool Check::read_short(const char*& next, const char* end, uint32_t& value) {
  if (next != end && static_cast<unsigned char>(*next) < 0x80) {
    value = static_cast<unsigned char>(*next++);
    return true;
  }
  uint64_t read = 0;
  for (int at = 0; at < kLongestShortVarint; ++at) {
    if (next == end) return false;
    const auto byte = static_cast<unsigned char>(*next++);
    read |= static_cast<uint64_t>(byte & 0x7F) << (7 * at);
    if (byte < 0x80) {
      value = static_cast<uint32_t>(read);
      return read <= UINT32_MAX;
    }
  }
  return false;
}

bool Check::skip_varint(const char*& next, const char* end) {
  if (end - next >= 8) {  // most end within eight bytes, which are tested together
    uint64_t eight;
    std::memcpy(&eight, next, 8);
    const uint64_t ends = ~eight & 0x8080808080808080u;
    if (ends != 0) {
      next += __builtin_ctzll(ends) / 8 + 1;
      return true;
    }
  }
  for (int at = 0; at < kLongestVarint; ++at) {
    if (next == end) return false;
    if (static_cast<unsigned char>(*next++) < 0x80) return true;
  }
  return false;
}

bool Check::is_packed(std::string_view numbers, FieldKind kind) {
  if (kind == FieldKind::kFixed32) return numbers.size() % 4 == 0;
  if (kind == FieldKind::kFixed64) return numbers.size() % 8 == 0;
  const char* next = numbers.data();
  const char* const end = next + numbers.size();
  while (next != end) {
    if (!skip_varint(next, end)) return false;
  }
  return true;
}

// Whether a length-delimited value is valid.
bool Check::is_value(std::string_view value, const FieldSchema& field, int depth) {
  switch (field.kind) {
    case FieldKind::kText:
      return is_utf8(value);
    case FieldKind::kMessage:
      return depth < kMaxDepth && is_whole(value, field.message, depth + 1);
    case FieldKind::kUnknown:
    case FieldKind::kBytes:
      return true;
    default:
      return is_packed(value, field.kind);  // protobuf keeps a non-repeated field's bytes as an unknown field
  }
}

bool Check::is_whole(std::string_view message, uint32_t schema, int depth) {
  ++counts_[schema];
  const MessageSchema& fields = schemas_[schema];
  const char* next = message.data();
  const char* const end = next + message.size();
  while (next != end) {
    uint32_t tag = 0;
    if (!read_short(next, end, tag) || tag >> 3 == 0) return false;
    const FieldSchema field = fields.find(tag >> 3);
    const auto is = [&](FieldKind kind) { return field.kind == kind || field.kind == FieldKind::kUnknown; };
    switch (tag & 7) {
      case kVarint:
        if (!is(FieldKind::kVarint) || !skip_varint(next, end)) return false;
        break;
      case kFixed64:
        if (!is(FieldKind::kFixed64) || end - next < 8) return false;
        next += 8;
        break;
      case kFixed32:
        if (!is(FieldKind::kFixed32) || end - next < 4) return false;
        next += 4;
        break;
      case kBytes: {
        uint32_t length = 0;
        if (!read_short(next, end, length) || length > static_cast<uint64_t>(end - next)) return false;
        if (!is_value({next, length}, field, depth)) return false;
        next += length;
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

}  // namespace

void MessageSchema::add(uint32_t number, const FieldSchema& field) {
  if (number >= kDirect) {
    others_.emplace_back(number, field);
    return;
  }
  if (number >= direct_.size()) direct_.resize(number + 1);
  direct_[number] = field;
}

FieldSchema MessageSchema::find_other(uint32_t number) const {
  for (const auto& [other, field] : others_) {
    if (other == number) return field;
  }
  return {};
}

std::optional<std::vector<uint64_t>> count_if_whole(std::string_view bytes, const std::vector<MessageSchema>& schemas,
                                                    uint32_t root) {
  Check check(schemas);
  if (bytes.size() > INT32_MAX || !check.is_whole(bytes, root, 0)) return std::nullopt;
  return check.take_counts();
}

}  // namespace collector::stepstats
