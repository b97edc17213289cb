/* Loops around NVTX's push and pop as a program compiles them, and around what they are compared with. Each returns the
   processor time of one turn in ns. The library stands in for libcupti, too. */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <time.h>

static double now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#define TIMED(count, turn)                                    \
  const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);       \
  for (int i = 0; i < (count); ++i) {                         \
    turn;                                                     \
  }                                                           \
  return (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (count);

double push_pop(int count) { TIMED(count, nvtxRangePushA("forward/layer1"); nvtxRangePop()) }

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t event;

void create_domain(void) {
  domain = nvtxDomainCreateA("benchmark");
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "forward/layer1");
}

double domain_push_pop(int count) { TIMED(count, nvtxDomainRangePushEx(domain, &event); nvtxDomainRangePop(domain)) }

static nvtxEventAttributes_t stated;

void create_statement(void) {
  stated = event;
  stated.category = 7;
  stated.colorType = NVTX_COLOR_ARGB;
  stated.color = 0xff336699;
  stated.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  stated.payload.ullValue = 64;
  nvtxDomainNameCategoryA(domain, 7, "loading");
}

double stated_push_pop(int count) { TIMED(count, nvtxDomainRangePushEx(domain, &stated); nvtxDomainRangePop(domain)) }

double two_clocks(int count) {
  struct timespec now;
  TIMED(count, clock_gettime(CLOCK_REALTIME, &now); clock_gettime(CLOCK_REALTIME, &now))
}

/* A libcupti that records nothing and whose calls cost nothing, except that the time is clock_gettime's. What is left is
   the cost of ours. */
int cuptiGetVersion(uint32_t* version) { return *version = 130100, 0; }
int cuptiGetTimestamp(uint64_t* time) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return *time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, 0;
}
int cuptiSubscribe(void** subscriber) { return *subscriber = &domain, 0; }
int cuptiUnsubscribe(void) { return 0; }
int cuptiActivityRegisterCallbacks(void) { return 0; }
int cuptiActivityEnable(void) { return 0; }
int cuptiActivityDisable(void) { return 0; }
int cuptiActivityFlushAll(void) { return 0; }
int cuptiActivityGetNextRecord(void) { return 12; }
int cuptiActivityPushExternalCorrelationId(void) { return 0; }
int cuptiActivityPopExternalCorrelationId(void) { return 0; }
