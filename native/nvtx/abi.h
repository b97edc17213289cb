// The binary interface between NVTX 3, a header that is compiled into each program, and a tool. Names and values are
// those of nvtxTypes.h and nvToolsExt.h.
//
// Each shared object that includes NVTX has a copy of it. At the copy's first call it loads the library that
// NVTX_INJECTION64_PATH names and calls the library's InitializeInjectionNvtx2, which writes its functions into the
// tables of the copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::nvtx {

using GetExportTable = const void* (*)(uint32_t table);
using InitializeInjection = int (*)(GetExportTable);

constexpr uint32_t kCallbackTables = 1;  // for GetExportTable
constexpr int kNoPushPopTracking = -2;   // of nvtxRangePush and nvtxRangePop

enum class Module : uint32_t { kCore = 1, kCuda = 2, kCudaRuntime = 4, kCore2 = 5 };

// The numbers of the functions in each module's table. Every function of a pair `A`, `W` takes a text of char or
// wchar_t.
enum class Core : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
  kCount
};
enum class Cuda : uint32_t {
  kNameDeviceA = 1,
  kNameDeviceW,
  kNameContextA,
  kNameContextW,
  kNameStreamA,
  kNameStreamW,
  kNameEventA,
  kNameEventW,
  kCount
};
enum class CudaRuntime : uint32_t {
  kNameDeviceA = 1,
  kNameDeviceW,
  kNameStreamA,
  kNameStreamW,
  kNameEventA,
  kNameEventW,
  kCount
};
enum class Core2 : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize,
  kCount
};

using Function = void (*)();

struct CallbackTables {
  size_t struct_size;
  // Sets `table` to the copy's function pointers of a module, and `size` to their number. Returns 0 if it has none.
  int (*get_module_function_table)(Module module, Function*** table, unsigned* size);
};

enum class MessageType : int32_t { kNone = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

union Message {
  const char* ascii;
  const wchar_t* unicode;
  void* registered;
};

// nvtxEventAttributes_t. A program that was compiled with an older NVTX may give a smaller `size`.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;  // 1: ARGB
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  MessageType message_type;
  Message message;
};
static_assert(sizeof(EventAttributes) == 48);

}  // namespace collector::nvtx
