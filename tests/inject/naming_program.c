/* A program that names its GPU, its streams and its thread by NVTX, and knows nothing of the collector: naming_program
   [KILL]. It launches a kernel on each of two streams. With an argument it is killed once its journal is written. */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExtCuda.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "driver_functions.h"

int main(int count, char **arguments) {
  (void)arguments;
  Handle context, module, function;
  CUstream first = (CUstream)(uintptr_t)21, second = (CUstream)(uintptr_t)22; /* the simulator's handles are numbers */
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  nvtxNameOsThreadA((uint32_t)gettid(), "trainer");
  nvtxNameCuDeviceA(0, "first GPU");
  nvtxNameCuStreamA(first, "compute");
  if (cuModuleLoadData(&module, "") || cuModuleGetFunction(&function, module, "work")) return 2;
  if (cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, first, 0, 0)) return 3;
  nvtxNameCuStreamA(second, "copies");
  if (cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, second, 0, 0) || cuCtxSynchronize()) return 4;
  if (count > 1) {
    usleep(1500 * 1000);
    raise(SIGKILL);
  }
  return 0;
}
