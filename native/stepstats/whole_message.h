// Whether protobuf would parse wire bytes, without parsing them: a message of a million nodes takes protobuf many times
// its bytes in memory, and drawing needs none of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace collector::convert {

enum class FieldKind : uint8_t { kUnknown, kVarint, kFixed32, kFixed64, kText, kBytes, kMessage };

struct FieldSchema {
  FieldKind kind = FieldKind::kUnknown;
  uint32_t message = 0;  // of kMessage: its place among the schemas
};

// The fields of one message, by number.
class MessageSchema {
 public:
  void add(uint32_t number, const FieldSchema& field);
  FieldSchema find(uint32_t number) const { return number < direct_.size() ? direct_[number] : find_other(number); }

 private:
  FieldSchema find_other(uint32_t number) const;

  static constexpr uint32_t kDirect = 128;  // below, a field's number is its place

  std::vector<FieldSchema> direct_;
  std::vector<std::pair<uint32_t, FieldSchema>> others_;
};

// How often each message occurs, by its place among the schemas, in bytes that are whole as a message of `root`. None:
// protobuf may refuse the bytes, or may read them in a way that only protobuf knows (groups, other wire types).
std::optional<std::vector<uint64_t>> count_if_whole(std::string_view bytes, const std::vector<MessageSchema>& schemas,
                                                    uint32_t root);

}  // namespace collector::convert
