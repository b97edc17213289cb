#include "nvtx/event_attributes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "nvtx/payload_abi.h"
#include "nvtx/texts.h"
#include "nvtx/thread_text.h"

namespace collector::nvtx {
namespace {

// The types of payloads, nvtxPayloadType_t.
enum PayloadType : int32_t { kUint64 = 1, kInt64 = 2, kDouble = 3, kUint32 = 4, kInt32 = 5, kFloat = 6 };

template <typename Value>
Value payload_as(uint64_t bytes) {
  Value value;
  std::memcpy(&value, &bytes, sizeof(value));
  return value;
}

using NumberText = std::array<char, 32>;  // for any number

template <typename Value>
std::string_view written(NumberText& text, Value value) {
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), static_cast<size_t>(end - text.data())};
}

// With so many digits that the number can be read back.
std::string_view written(NumberText& text, const char* format, double value) {
  const int size = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<size_t>(std::max(size, 0))};
}

// The texts of structured payloads, behind the whole text of a title of which only a part is the range's name.
// `is_whole` becomes false if one of them cannot be read because there are too many schemas.
std::string_view structured_payload_in(const Domain& domain, const EventAttributes& attributes, Domains& domains,
                                       PayloadSchemas& schemas, bool& is_whole) {
  thread_local ThreadText buffer;
  if (ThreadText::are_all_gone()) return {};
  std::string& text = buffer.text;
  text.clear();
  if (const RegisteredString* const string = registered_in(attributes)) text = string->title;
  const auto* const data = reinterpret_cast<const PayloadData*>(attributes.payload);
  if (attributes.payload_type != kExtendedPayload || data == nullptr) return text;
  for (int32_t i = 0; i < attributes.reserved && text.size() <= store::kLongestName; ++i) {
    const size_t before = text.size();
    if (before > 0) text.append(", ");
    const size_t begin = text.size();
    if (!schemas.append_text(domain, data[i], domains, text)) is_whole = false;
    if (text.size() == begin) text.resize(before);
  }
  return beginning_of(text);
}

}  // namespace

// The attributes that a program gave, with zero for those beyond its `size`.
EventAttributes given(const EventAttributes* attributes) noexcept {
  EventAttributes copy{};
  if (attributes != nullptr) std::memcpy(&copy, attributes, std::min<size_t>(attributes->size, sizeof(copy)));
  return copy;
}

std::string_view StatedTexts::payload_in(const Domain& domain, const EventAttributes& attributes, Domains& domains,
                                         PayloadSchemas& schemas) {
  const uint64_t bytes = attributes.payload;
  switch (attributes.payload_type) {
    case kUint64:
      return written(payload_, bytes);
    case kInt64:
      return written(payload_, payload_as<int64_t>(bytes));
    case kUint32:
      return written(payload_, payload_as<uint32_t>(bytes));
    case kInt32:
      return written(payload_, payload_as<int32_t>(bytes));
    case kDouble:
      return written(payload_, "%.17g", payload_as<double>(bytes));
    case kFloat:
      return written(payload_, "%.9g", static_cast<double>(payload_as<float>(bytes)));
    default:  // a structured one, or a title alone
      break;
  }
  bool is_whole = true;
  const std::string_view text = structured_payload_in(domain, attributes, domains, schemas, is_whole);
  if (!is_whole) texts_.is_shared = true;
  return text;
}

std::string_view StatedTexts::category_in(const Domain& domain, uint32_t category, Domains& domains) {
  const std::string* const name = domains.category(domain, category);
  if (name == nullptr && domains.have_dropped_categories()) texts_.is_shared = true;
  return name != nullptr ? std::string_view(*name) : written(category_, category);
}

}  // namespace collector::nvtx
