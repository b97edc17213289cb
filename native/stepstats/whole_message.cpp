#include "stepstats/whole_message.h"

#include <cstring>

#include "stepstats/utf8.h"
#include "stepstats/wire.h"

namespace collector::stepstats {
namespace {

constexpr int kMaxDepth = 60;           // protobuf's limit is 100
constexpr int kLongestShortVarint = 5;  // protobuf refuses longer tags

class Check {
 public:
  Check(const std::vector<MessageSchema>& schemas, std::string_view whole)
      : schemas_(schemas), limit_(whole.data() + whole.size()), counts_(schemas.size(), 0) {}

  bool is_whole(std::string_view message, uint32_t schema, int depth);
  std::vector<uint64_t> take_counts() { return std::move(counts_); }

 private:
  // Positions are passed and returned by value, so that they stay in registers. Null: the bytes are invalid.
  struct Short {
    const char* next;
    uint32_t value;
  };
  // Reads a tag or a length.
  static Short read_short(const char* next, const char* end);
  static Short read_long(const char* next, const char* end);
  const char* skip_varint(const char* next, const char* end) const;
  bool is_packed(std::string_view numbers, FieldKind kind) const;
  bool is_value(std::string_view value, const FieldSchema& field, int depth);

  const std::vector<MessageSchema>& schemas_;
  const char* limit_;  // the end of all bytes; up to it, bytes behind a message can be read
  std::vector<uint64_t> counts_;
};

// Nearly all have one or two bytes.
inline Check::Short Check::read_short(const char* next, const char* end) {
  if (end - next >= 2) {
    const uint32_t first = static_cast<unsigned char>(next[0]);
    const uint32_t second = static_cast<unsigned char>(next[1]);
    if (first < 0x80) return {next + 1, first};
    if (second < 0x80) return {next + 2, (first & 0x7F) | second << 7};
  }
  return read_long(next, end);
}

Check::Short Check::read_long(const char* next, const char* end) {
  uint64_t read = 0;
  for (int at = 0; at < kLongestShortVarint && next != end; ++at) {
    const auto byte = static_cast<unsigned char>(*next++);
    read |= static_cast<uint64_t>(byte & 0x7F) << (7 * at);
    if (byte < 0x80) return {read <= UINT32_MAX ? next : nullptr, static_cast<uint32_t>(read)};
  }
  return {nullptr, 0};
}

inline const char* Check::skip_varint(const char* next, const char* end) const {
  if (limit_ - next >= 8) {  // most end within eight bytes, which are tested together
    uint64_t eight;
    std::memcpy(&eight, next, 8);
    const uint64_t ends = ~eight & 0x8080808080808080u;
    if (ends != 0) {
      next += __builtin_ctzll(ends) / 8 + 1;
      return next <= end ? next : nullptr;
    }
  }
  for (int at = 0; at < kLongestVarint; ++at) {
    if (next == end) return nullptr;
    if (static_cast<unsigned char>(*next++) < 0x80) return next;
  }
  return nullptr;
}

bool Check::is_packed(std::string_view numbers, FieldKind kind) const {
  if (kind == FieldKind::kFixed32) return numbers.size() % 4 == 0;
  if (kind == FieldKind::kFixed64) return numbers.size() % 8 == 0;
  const char* next = numbers.data();
  const char* const end = next + numbers.size();
  while (next != end) {
    next = skip_varint(next, end);
    if (next == nullptr) return false;
  }
  return true;
}

// Whether a length-delimited value is valid.
inline bool Check::is_value(std::string_view value, const FieldSchema& field, int depth) {
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
    const Short tag = read_short(next, end);
    if (tag.next == nullptr || tag.value >> 3 == 0) return false;
    next = tag.next;
    const FieldSchema field = fields.find(tag.value >> 3);
    const auto is = [&](FieldKind kind) { return field.kind == kind || field.kind == FieldKind::kUnknown; };
    switch (tag.value & 7) {
      case kVarint:
        if (!is(FieldKind::kVarint)) return false;
        next = skip_varint(next, end);
        if (next == nullptr) return false;
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
        const Short length = read_short(next, end);
        if (length.next == nullptr || length.value > static_cast<uint64_t>(end - length.next)) return false;
        if (!is_value({length.next, length.value}, field, depth)) return false;
        next = length.next + length.value;
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
  Check check(schemas, bytes);
  if (bytes.size() > INT32_MAX || !check.is_whole(bytes, root, 0)) return std::nullopt;
  return check.take_counts();
}

}  // namespace collector::stepstats
