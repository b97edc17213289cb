// The mutations of libFuzzer for fuzz_converter: usually one field of the message, at any depth, while the enclosing
// lengths stay correct. libFuzzer's own byte mutations would rarely leave a readable message.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr size_t kHeaderBytes = 8;
constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
constexpr size_t kBytesOfOneField = 64;  // the limit for changes to fields that are not messages
constexpr int kDeepest = 8;

using Random = std::minstd_rand;

struct Field {
  std::string head;     // the tag, and the value if it is a number
  std::string payload;  // of length-delimited fields
  bool has_length;
};

void put_varint(std::string& to, uint64_t value) {
  for (; value > 0x7F; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

bool take_varint(std::string_view& from, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The fields of a message; none if the bytes are not a message.
std::vector<Field> fields_of(std::string_view rest) {
  std::vector<Field> fields;
  while (!rest.empty()) {
    const std::string_view whole = rest;
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!take_varint(rest, tag) || tag >> 3 == 0) return {};
    size_t skipped = 0;
    if ((tag & 7) == kVarint || (tag & 7) == kBytes) {
      if (!take_varint(rest, value)) return {};
      if ((tag & 7) == kBytes) skipped = value;
    } else if ((tag & 7) == kFixed64 || (tag & 7) == kFixed32) {
      skipped = (tag & 7) == kFixed64 ? 8 : 4;
    } else {
      return {};
    }
    if (skipped > rest.size()) return {};
    Field field{std::string(whole.substr(0, whole.size() - rest.size())), {}, (tag & 7) == kBytes};
    (field.has_length ? field.payload : field.head).append(rest.substr(0, skipped));
    if (field.has_length) {
      field.head.clear();
      put_varint(field.head, tag);
    }
    rest.remove_prefix(skipped);
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string joined(const std::vector<Field>& fields) {
  std::string message;
  for (const Field& field : fields) {
    message += field.head;
    if (!field.has_length) continue;
    put_varint(message, field.payload.size());
    message += field.payload;
  }
  return message;
}

void mutate_bytes(std::string& bytes, size_t room) {
  const size_t size = bytes.size();
  bytes.resize(std::max(size, room));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
}

void mutate_message(std::string& message, size_t room, Random& random, int depth) {
  std::vector<Field> fields = depth < kDeepest ? fields_of(message) : std::vector<Field>();
  const auto chance = [&random](size_t of) { return random() / 7 % of; };
  if (fields.empty() || chance(8) == 0) return mutate_bytes(message, std::min(room, message.size() + kBytesOfOneField));
  const auto at = fields.begin() + static_cast<std::ptrdiff_t>(chance(fields.size()));
  const auto other = fields.begin() + static_cast<std::ptrdiff_t>(chance(fields.size()));
  switch (chance(8)) {
    case 0:
      fields.insert(other, Field(*at));
      break;
    case 1:
      fields.erase(at);
      break;
    case 2:
      std::iter_swap(at, other);
      break;
    case 3:
      if (at->has_length && other->has_length) {
        at->payload = other->payload;
        break;
      }
      [[fallthrough]];
    default:
      if (at->has_length) {
        mutate_message(at->payload, room, random, depth + 1);
      } else {
        mutate_bytes(at->head, at->head.size() + 2);
      }
  }
  message = joined(fields);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  if (size < kHeaderBytes || max_size <= kHeaderBytes || random() / 7 % 16 == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  if (random() / 7 % 6 == 0) {
    LLVMFuzzerMutate(data, kHeaderBytes, kHeaderBytes);
    return size;
  }
  std::string message(reinterpret_cast<const char*>(data) + kHeaderBytes, size - kHeaderBytes);
  mutate_message(message, max_size - kHeaderBytes, random, 0);
  message.resize(std::min(message.size(), max_size - kHeaderBytes));
  std::copy(message.begin(), message.end(), data + kHeaderBytes);
  return kHeaderBytes + message.size();
}
