// Checks whether protobuf would parse wire bytes, without parsing them: protobuf needs many times a message's bytes in
// memory for a message of a million nodes, and drawing does not need the parsed message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace collector::stepstats {

enum class FieldKind : uint8_t { kUnknown, kVarint, kFixed32, kFixed64, kText, kBytes, kMessage };

struct FieldSchema {
  FieldKind kind = FieldKind::kUnknown;
  uint32_t message = 0;  // of kMessage: index of the schema
};

// The fields of one message, by number.
class MessageSchema {
 public:
  void add(uint32_t number, const FieldSchema& field);
  FieldSchema find(uint32_t number) const { return number < kDirect ? direct_[number] : find_other(number); }

 private:
  FieldSchema find_other(uint32_t number) const;

  static constexpr uint32_t kDirect = 128;  // smaller field numbers are their own index

  std::array<FieldSchema, kDirect> direct_{};
  std::vector<std::pair<uint32_t, FieldSchema>> others_;
};

// The number of occurrences of each message, by schema, in bytes that form a whole `root` message. No value if protobuf
// might refuse the bytes, or might read them in a way that only protobuf implements (groups, other wire types).
std::optional<std::vector<uint64_t>> count_if_whole(std::string_view bytes, const std::vector<MessageSchema>& schemas,
                                                    uint32_t root);

}  // namespace collector::stepstats
