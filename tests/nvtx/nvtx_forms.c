/* Every form of NVTX's calls, through NVIDIA's header. Each is made once, around a launch that has the form's name. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

typedef void (*Launch)(const char* kernel);

static nvtxEventAttributes_t empty_event(void) {
  nvtxEventAttributes_t event;
  memset(&event, 0, sizeof(event));
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff336699;
  event.category = 5;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = 42;
  return event;
}

static nvtxEventAttributes_t ascii(const char* message) {
  nvtxEventAttributes_t event = empty_event();
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

static nvtxEventAttributes_t wide(const wchar_t* message) {
  nvtxEventAttributes_t event = empty_event();
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  event.message.unicode = message;
  return event;
}

static nvtxEventAttributes_t registered(nvtxStringHandle_t message) {
  nvtxEventAttributes_t event = empty_event();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = message;
  return event;
}

void first_call(void) { nvtxMarkA("first call"); }

void every_push(Launch launch) {
  nvtxNameCategoryA(5, "ascii category");
  nvtxRangePushA("push A");
  launch("push A");
  nvtxRangePop();
  nvtxRangePushW(L"push W");
  launch("push W");
  nvtxRangePop();
  nvtxEventAttributes_t event = ascii("push Ex");
  nvtxRangePushEx(&event);
  launch("push Ex");
  nvtxRangePop();
  event = wide(L"push Ex wide");
  nvtxRangePushEx(&event);
  launch("push Ex wide");
  nvtxRangePop();

  nvtxDomainHandle_t one = nvtxDomainCreateA("one");
  nvtxDomainHandle_t two = nvtxDomainCreateW(L"two");
  nvtxDomainNameCategoryA(one, 5, "of one");
  nvtxDomainNameCategoryW(two, 5, L"of two");
  event = ascii("domain A");
  nvtxDomainRangePushEx(one, &event);
  launch("domain A");
  nvtxDomainRangePop(one);
  event = wide(L"domain W");
  nvtxDomainRangePushEx(two, &event);
  launch("domain W");
  nvtxDomainRangePop(two);
  event = registered(nvtxDomainRegisterStringA(one, "registered A"));
  nvtxDomainRangePushEx(one, &event);
  launch("registered A");
  nvtxDomainRangePop(one);
  event = registered(nvtxDomainRegisterStringW(two, L"registered W"));
  nvtxDomainRangePushEx(two, &event);
  launch("registered W");
  nvtxDomainRangePop(two);
  nvtxDomainDestroy(two);
  nvtxDomainDestroy(one);
}

void every_mark_and_start(void) {
  nvtxNameCategoryW(5, L"wide category");
  nvtxMarkA("mark A");
  nvtxMarkW(L"mark W");
  nvtxEventAttributes_t event = ascii("mark Ex");
  nvtxMarkEx(&event);
  nvtxRangeEnd(nvtxRangeStartA("start A"));
  nvtxRangeEnd(nvtxRangeStartW(L"start W"));
  event = wide(L"start Ex");
  nvtxRangeEnd(nvtxRangeStartEx(&event));
  nvtxDomainHandle_t one = nvtxDomainCreateA("one");
  event = ascii("domain mark");
  nvtxDomainMarkEx(one, &event);
  event = registered(nvtxDomainRegisterStringA(one, "domain start"));
  nvtxDomainRangeEnd(one, nvtxDomainRangeStartEx(one, &event));
  nvtxDomainDestroy(one);
}

void every_name(uint32_t thread) {
  nvtxNameOsThreadW(thread, L"overwritten");
  nvtxNameOsThreadA(thread, "main");
  nvtxNameCuDeviceW(0, L"overwritten");
  nvtxNameCuDeviceA(0, "device");
  nvtxNameCudaDeviceW(0, L"overwritten");
  nvtxNameCudaDeviceA(0, "device");
  nvtxNameCuStreamA((CUstream)(intptr_t)11, "driver A");
  nvtxNameCuStreamW((CUstream)(intptr_t)12, L"driver W");
  nvtxNameCudaStreamA((cudaStream_t)(intptr_t)13, "runtime A");
  nvtxNameCudaStreamW((cudaStream_t)(intptr_t)14, L"runtime W");
  nvtxNameCuEventA((CUevent)(intptr_t)1, "event");
  nvtxNameCuEventW((CUevent)(intptr_t)1, L"event");
  nvtxNameCudaEventA((cudaEvent_t)(intptr_t)1, "event");
  nvtxNameCudaEventW((cudaEvent_t)(intptr_t)1, L"event");
}
