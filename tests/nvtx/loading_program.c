/* A program, a library that calls NVTX in its constructor, and a tool for NVTX that loads a library when it begins.

   The program makes its first call of NVTX, which loads the tool, while another of its threads loads the library: that
   thread has the dynamic linker's lock in the constructor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#if defined(LIBRARY)

__attribute__((constructor)) static void at_load(void) { nvtxMarkA("of a constructor"); }

#elif defined(TOOL)

int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  (void)get_export_table;
  usleep(100000);
  return dlopen("libm.so.6", RTLD_LAZY) != NULL;
}

#else

static void* load(void* path) {
  usleep(30000);
  if (dlopen(path, RTLD_NOW) == NULL) puts(dlerror());
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc < 2 || pthread_create(&thread, NULL, load, argv[1]) != 0) return 1;
  nvtxMarkA("first call");
  pthread_join(thread, NULL);
  puts("ended well");
  return 0;
}

#endif
