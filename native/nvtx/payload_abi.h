// The binary interface of NVTX's extension for structured payloads. Names and values are those of nvToolsExtPayload.h
// and nvtxExtTypes.h.
//
// Each shared object that includes the extension has a copy of it. At the copy's first call it loads the library that
// NVTX_INJECTION64_PATH names and calls the library's InitializeInjectionNvtxExtension, which writes its functions into
// the slots of the copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::nvtx {

constexpr uint16_t kPayloadModule = 2;
// Both have these layouts: 0x0103 is that of NVTX 3.1 and 3.2, 0x0104 that of the headers of CUDA 13.5.
constexpr uint16_t kFirstCompatibility = 0x0103;
constexpr uint16_t kLastCompatibility = 0x0104;

struct ExtensionSegment {
  size_t id;
  size_t num_slots;
  intptr_t* slots;
};

// nvtxExtModuleInfo_t.
struct ExtensionModule {
  uint16_t version;
  uint16_t struct_size;
  uint16_t module_id;
  uint16_t compatibility;
  size_t num_segments;
  ExtensionSegment* segments;
  intptr_t (*get_export_function)(uint32_t);
  const void* info;
};

// The numbers of the functions in the slots.
enum class PayloadFunction : size_t { kSchemaRegister = 0, kEnumRegister = 1 };

// The type of an event's payload that is an array of PayloadData; the attribute `reserved` is their number.
constexpr auto kExtendedPayload = static_cast<int32_t>(0xDFBD0009U);

// nvtxPayloadData_t.
struct PayloadData {
  uint64_t schema_id;
  size_t size;
  const void* payload;
};

// nvtxPayloadSchemaEntry_t.
struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t array_or_union_detail;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};

// nvtxPayloadSchemaAttr_t; later versions have a further field, which is reserved.
struct SchemaAttributes {
  uint64_t field_mask;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t num_entries;
  size_t static_size;
  size_t pack_align;
  uint64_t schema_id;
};

// nvtxPayloadEnum_t.
struct EnumValue {
  const char* name;
  uint64_t value;
  int8_t is_flag;
};

// nvtxPayloadEnumAttr_t, likewise.
struct EnumAttributes {
  uint64_t field_mask;
  const char* name;
  const EnumValue* entries;
  size_t num_entries;
  size_t size;
  uint64_t schema_id;
};

static_assert(sizeof(ExtensionModule) == 40);
static_assert(sizeof(PayloadData) == 24);
static_assert(sizeof(SchemaEntry) == 64);
static_assert(sizeof(SchemaAttributes) == 72);
static_assert(sizeof(EnumValue) == 24);
static_assert(sizeof(EnumAttributes) == 48);

// Bits of `field_mask`: the fields that a program has set.
enum class SchemaField : uint64_t {
  kName = 1U << 1,
  kType = 1U << 2,
  kFlags = 1U << 3,
  kEntries = 1U << 4,
  kNumEntries = 1U << 5,
  kStaticSize = 1U << 6,
  kAlignment = 1U << 7,
  kSchemaId = 1U << 8,
};
enum class EnumField : uint64_t {
  kName = 1U << 1,
  kEntries = 1U << 2,
  kNumEntries = 1U << 3,
  kSize = 1U << 4,
  kSchemaId = 1U << 5,
};

constexpr uint64_t kStaticSchema = 1;  // the type of a schema whose entries have fixed places

// Flags of an entry.
constexpr uint64_t kIsPointer = 1U << 1;
constexpr uint64_t kIsOffset = 3U << 2;  // from the payload's base, or from the entry
constexpr uint64_t kArrayMask = 7U << 4;
constexpr uint64_t kFixedArray = 1U << 4;  // of `array_or_union_detail` values
constexpr uint64_t kIsHidden = 1U << 9;

// Types of entries, and schemas of payloads without a registered one. Numbers from kFirstStaticId on are those of
// registered schemas and enums: a program chooses one below kFirstDynamicId, or the tool gives one from there on.
enum PayloadEntryType : uint64_t {
  kChar = 1,
  kUchar,
  kShort,
  kUshort,
  kInt,
  kUint,
  kLong,
  kUlong,
  kLonglong,
  kUlonglong,
  kInt8Entry,
  kUint8Entry,
  kInt16Entry,
  kUint16Entry,
  kInt32Entry,
  kUint32Entry,
  kInt64Entry,
  kUint64Entry,
  kFloatEntry,
  kDoubleEntry,
  kLongDoubleEntry,
  kSizeEntry,
  kAddress,
  kFloat32Entry = 43,
  kFloat64Entry = 44,
  kRangeId = 67,
  kCategory = 68,
  kColorArgb = 69,
  kScopeId = 70,
  kPid32 = 71,
  kPid64 = 72,
  kTid32 = 73,
  kTid64 = 74,
  kCstring = 75,
  kCstringUtf8 = 76,
  kRegisteredString = 80,
};
constexpr uint64_t kFirstStaticId = 1U << 24;
constexpr uint64_t kFirstDynamicId = uint64_t{1} << 32;

}  // namespace collector::nvtx
