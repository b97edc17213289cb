/* The calls of range_program.c by the driver of the simulator, whose handle of a stream is its number. */
#pragma once

#include <nvtx3/nvToolsExtCuda.h>

#include "driver_functions.h"

int cuProfilerStart(void);
int cuProfilerStop(void);
int cudaProfilerStart(void);
int cudaProfilerStop(void);
int sim_inject(const char* fault, int64_t count, int64_t skip, int64_t value, const char* target);

static uintptr_t current_stream = 0, latest_stream = 20;

static void initialise(void) {
  Handle context;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void launch(const char* name, int count) {
  Handle module, function;
  check(cuModuleLoadData(&module, ""), "cuModuleLoadData");
  check(cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
  for (int i = 0; i < count; ++i) {
    check(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, (Handle)current_stream, 0, 0), "cuLaunchKernel");
  }
}

static void synchronize(void) { check(cuCtxSynchronize(), "cuCtxSynchronize"); }

static void open_named_stream(const char* name) {
  current_stream = ++latest_stream;
  nvtxNameCuStreamA((CUstream)current_stream, name);
}

static void start_profiler(void) { check(cuProfilerStart(), "cuProfilerStart"); }

static void stop_profiler(void) { check(cuProfilerStop(), "cuProfilerStop"); }

static void inject_fault(const char* name) { check(sim_inject(name, -1, 0, 0, ""), "sim_inject"); }

static void fail_next_call(const char* function) { check(sim_inject("error", 1, 0, 999, function), "sim_inject"); }
