/* A program that ends in a certain way: ending_program END LAUNCHES. It imports nothing of the collector.

   Compiled as C it calls the driver, which it loads when it runs. Compiled as CUDA C++ it uses the runtime API. Each
   launch is a kernel "work"; with END "running" a kernel "spin" still runs at the end, for two seconds. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *Handle;

static Handle driver_function(const char *name) {
  const char *const named = getenv("COLLECTOR_LIBCUDA");
  const Handle driver = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  const Handle found = driver ? dlsym(driver, name) : 0;
  if (found == 0) {
    fprintf(stderr, "%s is missing\n", name);
    exit(73);
  }
  return found;
}

static void check(int result, const char *call) {
  if (result == 0) return;
  fprintf(stderr, "%s: %d\n", call, result);
  exit(70);
}

#ifdef __CUDACC__
__global__ void work() {}
__global__ void spin(long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}
static void begin(void) { check(cudaFree(0), "cudaFree"); }
static void launch_work(void) { work<<<1, 1>>>(); }
static void launch_spin(void) { spin<<<1, 1>>>(2000000000LL); }
static void wait_for_all(void) { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }
#else
static const char kPtx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry work() { ret; }\n"
    ".visible .entry spin() {\n"
    "  .reg .u64 %start, %now, %passed;\n  .reg .pred %more;\n"
    "  mov.u64 %start, %globaltimer;\n"
    "again:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  sub.u64 %passed, %now, %start;\n"
    "  setp.lt.u64 %more, %passed, 2000000000;\n"
    "  @%more bra again;\n"
    "  ret;\n}\n";
typedef int (*Launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **,
                      void **);
static Launch launch;
static Handle work, spin;
static void begin(void) {
  Handle context, module;
  int device;
  check(((int (*)(unsigned))driver_function("cuInit"))(0), "cuInit");
  check(((int (*)(int *, int))driver_function("cuDeviceGet"))(&device, 0), "cuDeviceGet");
  check(((int (*)(Handle *, int))driver_function("cuDevicePrimaryCtxRetain"))(&context, device), "retain");
  check(((int (*)(Handle))driver_function("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  check(((int (*)(Handle *, const void *))driver_function("cuModuleLoadData"))(&module, kPtx), "cuModuleLoadData");
  int (*const function)(Handle *, Handle, const char *) =
      (int (*)(Handle *, Handle, const char *))driver_function("cuModuleGetFunction");
  check(function(&work, module, "work"), "cuModuleGetFunction");
  check(function(&spin, module, "spin"), "cuModuleGetFunction");
  launch = (Launch)driver_function("cuLaunchKernel");
}
static void launch_work(void) { check(launch(work, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), "cuLaunchKernel"); }
static void launch_spin(void) { check(launch(spin, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), "cuLaunchKernel"); }
static void wait_for_all(void) { check(((int (*)(void))driver_function("cuCtxSynchronize"))(), "cuCtxSynchronize"); }
#endif

static void ask(const char *when) {
  int device = -1;
  const int result = ((int (*)(int *))driver_function("cuCtxGetDevice"))(&device);
  printf("program: cuCtxGetDevice in the function registered %s returned %d\n", when, result);
}

static void registered_first(void) { ask("before CUDA was used"); }
static void registered_last(void) { ask("after it"); }

int main(int count, char **arguments) {
  const char *const end = count > 1 ? arguments[1] : "return";
  const int launches = count > 2 ? atoi(arguments[2]) : 100;
  atexit(registered_first);
  begin();
  atexit(registered_last);
  for (int i = 0; i < launches; ++i) launch_work();
  if (strcmp(end, "unsynchronized") != 0) wait_for_all();
  if (strstr(end, "later") != 0) usleep(1200 * 1000);
  if (strcmp(end, "running") == 0) launch_spin();
  if (strcmp(end, "exit") == 0) exit(3);
  if (strncmp(end, "_exit", 5) == 0) _exit(4);
  if (strncmp(end, "abort", 5) == 0) abort();
  return 0;
}
