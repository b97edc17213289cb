#include "nvtx/payload_schemas.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "nvtx/texts.h"

namespace collector::nvtx {
namespace {

constexpr int kMostDepth = 4;                      // of schemas inside schemas
constexpr size_t kLargestArray = size_t{1} << 32;  // bytes; sums of sizes do not overflow

template <typename Attributes, typename Field>
bool has(const Attributes& attributes, Field field) {
  return (attributes.field_mask & static_cast<uint64_t>(field)) != 0;
}

std::string text_of(const char* text) { return std::string(text_at(text)); }

size_t size_of_number(uint64_t type) {
  switch (type) {
    case kChar:
    case kUchar:
    case kInt8Entry:
    case kUint8Entry:
      return 1;
    case kShort:
    case kUshort:
    case kInt16Entry:
    case kUint16Entry:
      return 2;
    case kInt:
    case kUint:
    case kInt32Entry:
    case kUint32Entry:
    case kFloatEntry:
    case kFloat32Entry:
    case kCategory:
    case kColorArgb:
    case kPid32:
    case kTid32:
      return 4;
    case kLong:
    case kUlong:
    case kLonglong:
    case kUlonglong:
    case kInt64Entry:
    case kUint64Entry:
    case kDoubleEntry:
    case kFloat64Entry:
    case kSizeEntry:
    case kAddress:
    case kRangeId:
    case kScopeId:
    case kPid64:
    case kTid64:
      return 8;
    default:
      return 0;
  }
}

bool is_signed(uint64_t type) {
  switch (type) {
    case kShort:
    case kInt:
    case kLong:
    case kLonglong:
    case kInt8Entry:
    case kInt16Entry:
    case kInt32Entry:
    case kInt64Entry:
      return true;
    default:
      return false;
  }
}

template <typename Value>
Value read(const unsigned char* at) {
  Value value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

uint64_t read_unsigned(const unsigned char* at, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, at, std::min(size, sizeof(value)));  // little-endian
  return value;
}

template <typename Number>
void append_number(Number number, std::string& to) {
  std::array<char, 24> text{};
  to.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void append_formatted(const char* format, double number, std::string& to) {
  std::array<char, 32> text{};
  to.append(text.data(), static_cast<size_t>(std::max(0, std::snprintf(text.data(), text.size(), format, number))));
}

void append_number_of(uint64_t type, const unsigned char* at, std::string& to) {
  const size_t size = size_of_number(type);
  if (type == kFloatEntry || type == kFloat32Entry) return append_formatted("%.9g", read<float>(at), to);
  if (type == kDoubleEntry || type == kFloat64Entry) return append_formatted("%.17g", read<double>(at), to);
  const uint64_t value = read_unsigned(at, size);
  if (type == kChar) {
    to.push_back(static_cast<char>(value));
  } else if (type == kAddress || type == kColorArgb) {
    std::array<char, 24> text{};
    to.append("0x").append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value, 16).ptr);
  } else if (is_signed(type)) {
    const auto unused = 64 - 8 * size;
    append_number(static_cast<int64_t>(value << unused) >> unused, to);
  } else {
    append_number(value, to);
  }
}

// The text of a payload that ends with `size`, if not before.
std::string_view text_within(const unsigned char* at, size_t size) {
  const auto* const text = reinterpret_cast<const char*>(at);
  return beginning_of({text, ::strnlen(text, std::min(size, kLongestRead + 1))});
}

// Line breaks, of which XLA's texts have many, are spaces in one line; those at the ends are left out. A text that is
// too long keeps its length, by which it is known as cut.
void append_line(std::string_view text, std::string& to) {
  constexpr std::string_view kBreaks = "\n\r\t ";
  if (text.size() <= store::kLongestName) {
    const size_t first = text.find_first_not_of(kBreaks);
    if (first == std::string_view::npos) return;
    text = text.substr(first, text.find_last_not_of(kBreaks) - first + 1);
  }
  for (const char letter : text) to.push_back(static_cast<unsigned char>(letter) < ' ' ? ' ' : letter);
}

}  // namespace

bool PayloadSchemas::take_room(size_t num_entries) {
  // Later ones may contain the first one that was not kept.
  if (is_full_ || schemas_.size() == kMostSchemas || num_entries > kMostEntries - num_entries_) {
    is_full_ = true;
    return false;
  }
  num_entries_ += num_entries;
  return true;
}

uint64_t PayloadSchemas::keep(const Domain& domain, uint64_t wanted_id, Schema schema) {
  const uint64_t id = wanted_id != 0 ? wanted_id : kFirstDynamicId + schemas_.size();
  schemas_.push_back(std::move(schema));
  by_id_[{domain.owner, id}] = &schemas_.back();
  return id;
}

const PayloadSchemas::Schema* PayloadSchemas::find(const Domain& domain, uint64_t id) {
  const auto found = by_id_.find({domain.owner, id});
  if (found != by_id_.end()) return found->second;
  const bool may_be_registered = id >= kFirstStaticId || id == 0;  // 0 is given to those that are not kept
  lacks_schema_ = lacks_schema_ || (is_full_ && may_be_registered);
  return nullptr;
}

PayloadSchemas::Layout PayloadSchemas::layout_of(const Domain& domain, const Entry& entry) {
  if ((entry.flags & kIsPointer) != 0) return {sizeof(void*), alignof(void*)};
  Layout layout;
  if (entry.type == kCstring || entry.type == kCstringUtf8) {
    if ((entry.flags & kArrayMask) != 0) return {};
    layout = entry.length > 0 ? Layout{entry.length, 1} : Layout{sizeof(void*), alignof(void*)};
    return layout;
  }
  if (entry.type == kRegisteredString) {
    layout = {sizeof(void*), alignof(void*)};
  } else if (const size_t size = size_of_number(entry.type); size != 0) {
    layout = {size, size};
  } else if (const Schema* const inner = find(domain, entry.type); inner != nullptr) {
    layout = {inner->size, inner->alignment};
  }
  if ((entry.flags & kArrayMask) == kFixedArray) {
    if (layout.size != 0 && entry.length > kLargestArray / layout.size) return {};
    layout.size *= entry.length;
  }
  return layout;
}

uint64_t PayloadSchemas::add_schema(const Domain& domain, const SchemaAttributes* attributes) {
  if (attributes == nullptr || !has(*attributes, SchemaField::kEntries) ||
      !has(*attributes, SchemaField::kNumEntries) || attributes->entries == nullptr) {
    return 0;
  }
  const threads::MutexLock lock(mutex_);
  if (!take_room(attributes->num_entries)) return 0;
  Schema schema;
  if (has(*attributes, SchemaField::kType)) schema.type = attributes->type;
  const size_t pack = has(*attributes, SchemaField::kAlignment) ? attributes->pack_align : 0;
  size_t end = 0;
  for (size_t i = 0; i < attributes->num_entries; ++i) {
    const SchemaEntry& given = attributes->entries[i];
    Entry entry{given.flags, given.type, text_of(given.name), given.array_or_union_detail, given.offset};
    Layout layout = layout_of(domain, entry);
    if (pack != 0) layout.alignment = std::min(layout.alignment, pack);
    if (i > 0 && entry.offset == 0) entry.offset = (end + layout.alignment - 1) / layout.alignment * layout.alignment;
    end = entry.offset + layout.size;
    schema.alignment = std::max(schema.alignment, layout.alignment);
    schema.size = std::max(schema.size, end);
    schema.entries.push_back(std::move(entry));
  }
  schema.size = (schema.size + schema.alignment - 1) / schema.alignment * schema.alignment;
  if (has(*attributes, SchemaField::kStaticSize) && attributes->static_size != 0) schema.size = attributes->static_size;
  return keep(domain, has(*attributes, SchemaField::kSchemaId) ? attributes->schema_id : 0, std::move(schema));
}

uint64_t PayloadSchemas::add_enum(const Domain& domain, const EnumAttributes* attributes) {
  if (attributes == nullptr || !has(*attributes, EnumField::kEntries) || !has(*attributes, EnumField::kNumEntries) ||
      !has(*attributes, EnumField::kSize) || attributes->entries == nullptr || attributes->size > sizeof(uint64_t)) {
    return 0;
  }
  const threads::MutexLock lock(mutex_);
  if (!take_room(attributes->num_entries)) return 0;
  Schema schema;
  schema.size = schema.alignment = std::max<size_t>(attributes->size, 1);
  for (size_t i = 0; i < attributes->num_entries; ++i) {
    schema.values.emplace_back(attributes->entries[i].value, text_of(attributes->entries[i].name));
  }
  return keep(domain, has(*attributes, EnumField::kSchemaId) ? attributes->schema_id : 0, std::move(schema));
}

bool PayloadSchemas::append_value(const Domain& domain, const Entry& entry, const unsigned char* at, size_t size,
                                  Domains& known, int depth, std::string& to) {
  if (entry.type == kCstring || entry.type == kCstringUtf8) {
    if (entry.length > 0) {
      append_line(text_within(at, size), to);
    } else {
      append_line(text_at(read<const char*>(at)), to);
    }
    return true;
  }
  if (entry.type == kRegisteredString) {
    const std::string_view text = known.text_of(read<void*>(at));
    const size_t before = to.size();
    append_line(text, to);
    return to.size() > before;
  }
  if (const size_t number = size_of_number(entry.type); number != 0) {
    if ((entry.flags & kArrayMask) != kFixedArray) {
      append_number_of(entry.type, at, to);
      return true;
    }
    if (entry.type != kChar) to.push_back('[');
    for (size_t i = 0; i < entry.length && to.size() <= kLongestRead; ++i) {
      if (entry.type == kChar && at[i] == 0) break;
      if (entry.type != kChar && i > 0) to.append(", ");
      append_number_of(entry.type, at + i * number, to);
    }
    if (entry.type != kChar) to.push_back(']');
    return true;
  }
  const Schema* const inner = find(domain, entry.type);
  if (inner == nullptr || (entry.flags & kArrayMask) != 0) return false;
  if (inner->values.empty()) {
    to.push_back('{');
    append_part(domain, {*inner, at, size}, known, depth + 1, to);
    to.push_back('}');
    return true;
  }
  const uint64_t value = read_unsigned(at, inner->size);
  const auto named = std::find_if(inner->values.begin(), inner->values.end(),
                                  [value](const auto& each) { return each.first == value; });
  if (named == inner->values.end()) {
    append_number(value, to);
  } else {
    append_line(named->second, to);
  }
  return true;
}

void PayloadSchemas::append_part(const Domain& domain, const Part& part, Domains& known, int depth, std::string& to) {
  if (part.schema.type != kStaticSchema || depth > kMostDepth) return;
  const size_t begin = to.size();
  for (const Entry& entry : part.schema.entries) {
    if (to.size() > kLongestRead) return;
    const Layout layout = layout_of(domain, entry);
    const bool is_elsewhere = (entry.flags & (kIsPointer | kIsOffset)) != 0;
    const bool is_inside = layout.size != 0 && entry.offset <= part.size && layout.size <= part.size - entry.offset;
    if (is_elsewhere || !is_inside || (entry.flags & kIsHidden) != 0) continue;
    const size_t before = to.size();
    if (before != begin) to.append(", ");
    if (!entry.name.empty()) to.append(entry.name).append(": ");
    if (!append_value(domain, entry, part.data + entry.offset, layout.size, known, depth, to)) to.resize(before);
  }
}

bool PayloadSchemas::append_text(const Domain& domain, const PayloadData& data, Domains& known, std::string& to) {
  if (data.payload == nullptr || data.size == 0) return true;
  const auto* const bytes = static_cast<const unsigned char*>(data.payload);
  const threads::MutexLock lock(mutex_);
  lacks_schema_ = false;
  if (data.schema_id >= kFirstStaticId || data.schema_id == 0) {
    const Schema* const schema = find(domain, data.schema_id);
    if (schema != nullptr && data.size != SIZE_MAX) append_part(domain, {*schema, bytes, data.size}, known, 0, to);
  } else if (data.schema_id == kCstring || data.schema_id == kCstringUtf8) {
    append_line(text_within(bytes, data.size), to);
  } else if (const size_t number = size_of_number(data.schema_id); number != 0 && data.size != SIZE_MAX) {
    for (size_t at = 0; data.size - at >= number && to.size() <= kLongestRead; at += number) {
      if (at > 0) to.append(", ");
      append_number_of(data.schema_id, bytes + at, to);
    }
  }
  to.resize(beginning_of(to).size());
  return !lacks_schema_;
}

}  // namespace collector::nvtx
