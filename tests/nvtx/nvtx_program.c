/* A program that includes NVTX's header, as a library whose functions a test calls. */
#include <nvtx3/nvToolsExt.h>
#include <wchar.h>

typedef void (*Launch)(const char* kernel);

void name_everything(Launch launch) {
  nvtxRangePushA("ascii");
  launch("ascii");
  nvtxRangePop();

  nvtxRangePushW(L"wide \u00e9");
  launch("wide");
  nvtxRangePop();

  nvtxDomainHandle_t domain = nvtxDomainCreateA("program");
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = 0.5;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringW(domain, L"registered");
  nvtxDomainRangePushEx(domain, &event);
  nvtxRangePushEx(&event);
  launch("registered");
  nvtxDomainRangePop(domain);
  launch("other domain");
  nvtxRangePop();
  nvtxDomainDestroy(domain);

  nvtxMarkA("mark");
  nvtxRangeEnd(nvtxRangeStartA("started"));
  nvtxNameCategoryA(7, "category");
}
