/* The calls of range_program.c by CUDA's runtime, which nvcc links. It has the kernels that are named here. */
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#define FOR_EACH_KERNEL(use) use(work) use(before) use(inside) use(later) use(first) use(second)
#define DEFINED(name) \
  extern "C" __global__ void name() {}
#define NAMED(name) {#name, (const void*)name},

FOR_EACH_KERNEL(DEFINED)

static const struct {
  const char* name;
  const void* function;
} kernels[] = {FOR_EACH_KERNEL(NAMED)};

static cudaStream_t current_stream = 0;

static void initialise(void) { check(cudaFree(0), "cudaFree"); }

static void launch(const char* name, int count) {
  const void* function = 0;
  for (const auto& kernel : kernels) {
    if (strcmp(kernel.name, name) == 0) function = kernel.function;
  }
  check(function == 0, name);
  for (int i = 0; i < count; ++i) {
    check(cudaLaunchKernel(function, dim3(8), dim3(128), 0, 0, current_stream), "cudaLaunchKernel");
  }
}

static void synchronize(void) { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

static void open_named_stream(const char* name) {
  check(cudaStreamCreateWithFlags(&current_stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  nvtxNameCudaStreamA(current_stream, name);
}

static void start_profiler(void) { check(cudaProfilerStart(), "cudaProfilerStart"); }

static void stop_profiler(void) { check(cudaProfilerStop(), "cudaProfilerStop"); }

static void inject_fault(const char* name) { check(1, name); }

static void fail_next_call(const char* function) { check(1, function); }
