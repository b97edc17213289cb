/* The driver's functions that the programs here call, declared as a program without CUDA's headers would. */
#pragma once

typedef void* Handle;
int cuInit(unsigned flags);
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(Handle* context, int device);
int cuCtxSetCurrent(Handle context);
int cuCtxSynchronize(void);
int cuModuleLoadData(Handle* module, const void* image);
int cuModuleGetFunction(Handle* function, Handle module, const char* name);
int cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, Handle stream, void** parameters, void** extra);
