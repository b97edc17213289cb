/* A program that knows nothing of the collector and does what its arguments say, one after the other:

     init            initialise CUDA                       launch:COUNT:NAME   launch kernels
     sync            wait for the GPU                      sleep:MS            wait
     stream:NAME     a new stream for all later launches, named by NVTX
     say:TEXT        write a line                          read                wait for a line of the input
     start, stop     cuProfilerStart, cuProfilerStop       runtime-start, runtime-stop   the runtime's functions
     push:NAME, pop  an NVTX range of this thread          push@DOMAIN:NAME, pop@DOMAIN  in a domain
     wide:NAME       pushed as a wide text
     begin:NAME, end a range that ends anywhere            thread:NAME         a thread that ends in a range
     fault:NAME      a fault of the simulator              fail:FUNCTION       the function's next call fails there
     kill            the end without warning
     exit:STATUS, _exit:STATUS, abort                      other ends
     forks:COUNT     children that push ranges, while a thread pushes ranges, too

   Its exit status is 7, if it does not end before. It calls CUDA's driver, or if nvcc compiles it, the runtime. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static void check(int result, const char *call) {
  if (result == 0) return;
  fprintf(stderr, "%s: %d\n", call, result);
  exit(70);
}

#ifdef __CUDACC__
#include "runtime_calls.cuh"
#else
#include "driver_calls.h"
#endif

static nvtxDomainHandle_t domain_named(const char *text, const char *end) {
  char name[64] = "";
  memcpy(name, text, (size_t)(end - text));
  return nvtxDomainCreateA(name);
}

static void push_in_domain(const char *text) {
  const char *const colon = strchr(text, ':');
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = colon + 1;
  nvtxDomainRangePushEx(domain_named(text, colon), &event);
}

static void *end_inside(void *name) {
  nvtxRangePushA((const char *)name);
  return 0;
}

static void run_thread(const char *name) {
  pthread_t thread;
  check(pthread_create(&thread, 0, end_inside, (void *)name), "pthread_create");
  check(pthread_join(thread, 0), "pthread_join");
}

static volatile int is_pushing = 1;

static void *push_on(void *unused) {
  while (is_pushing) {
    nvtxRangePushA("other");
    nvtxRangeEnd(nvtxRangeStartA("other"));
    nvtxRangePop();
  }
  return unused;
}

/* A child that hangs is ended by the alarm. */
static void run_forks(int count) {
  pthread_t thread;
  nvtxMarkA("other"); /* NVTX itself is set up before any fork */
  check(pthread_create(&thread, 0, push_on, 0), "pthread_create");
  for (int i = 0; i < count; ++i) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      for (int range = 0; range < 100; ++range) {
        nvtxRangePushA("train");
        nvtxRangeEnd(nvtxRangeStartA("other"));
        nvtxRangePop();
      }
      _exit(0);
    }
    check(waitpid(child, &status, 0) != child, "waitpid");
    check(status, "a forked child");
  }
  is_pushing = 0;
  check(pthread_join(thread, 0), "pthread_join");
}

/* What follows `word` in `text`; 0 if it begins otherwise. */
static const char *after(const char *text, const char *word) {
  const size_t length = strlen(word);
  return strncmp(text, word, length) == 0 ? text + length : 0;
}

static void wait_for_a_line(void) {
  char line[64];
  if (fgets(line, sizeof(line), stdin) == 0) exit(71);
}

static void say(const char *text) {
  puts(text);
  fflush(stdout);
}

int main(int count, char **arguments) {
  nvtxRangeId_t open = 0;
  for (int i = 1; i < count; ++i) {
    const char *const word = arguments[i];
    const char *rest;
    wchar_t wide[64];
    if (strcmp(word, "init") == 0) initialise();
    if (strcmp(word, "sync") == 0) synchronize();
    if (strcmp(word, "start") == 0) start_profiler();
    if (strcmp(word, "stop") == 0) stop_profiler();
    if (strcmp(word, "runtime-start") == 0) check(cudaProfilerStart(), "cudaProfilerStart");
    if (strcmp(word, "runtime-stop") == 0) check(cudaProfilerStop(), "cudaProfilerStop");
    if (strcmp(word, "read") == 0) wait_for_a_line();
    if (strcmp(word, "abort") == 0) abort();
    if (strcmp(word, "pop") == 0) nvtxRangePop();
    if (strcmp(word, "end") == 0) nvtxRangeEnd(open);
    if (strcmp(word, "kill") == 0) kill(getpid(), SIGKILL);
    if ((rest = after(word, "launch:")) != 0) launch(strchr(rest, ':') + 1, atoi(rest));
    if ((rest = after(word, "stream:")) != 0) open_named_stream(rest);
    if ((rest = after(word, "say:")) != 0) say(rest);
    if ((rest = after(word, "exit:")) != 0) exit(atoi(rest));
    if ((rest = after(word, "_exit:")) != 0) _exit(atoi(rest));
    if ((rest = after(word, "sleep:")) != 0) usleep(1000 * (useconds_t)atoi(rest));
    if ((rest = after(word, "push:")) != 0) nvtxRangePushA(rest);
    if ((rest = after(word, "begin:")) != 0) open = nvtxRangeStartA(rest);
    if ((rest = after(word, "thread:")) != 0) run_thread(rest);
    if ((rest = after(word, "forks:")) != 0) run_forks(atoi(rest));
    if ((rest = after(word, "push@")) != 0) push_in_domain(rest);
    if ((rest = after(word, "pop@")) != 0) nvtxDomainRangePop(domain_named(rest, rest + strlen(rest)));
    if ((rest = after(word, "fault:")) != 0) inject_fault(rest);
    if ((rest = after(word, "fail:")) != 0) fail_next_call(rest);
    if ((rest = after(word, "wide:")) != 0) {
      swprintf(wide, 64, L"%s", rest);
      nvtxRangePushW(wide);
    }
  }
  return 7;
}
