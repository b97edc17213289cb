/* Launches with a range of NVTX around each, and streams with names. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <stdint.h>
#include <time.h>

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int (*Synchronize)(void);

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The mean ns of a turn without the waits after every `batch` turns, or an error's negative number. */
double launch_in_ranges(Launch launch, Synchronize synchronize, void *function, void *stream, int count, int batch,
                        int has_ranges) {
  double took = 0;
  for (int done = 0; done < count; done += batch) {
    int result = 0;
    const double begin = now_ns();
    for (int i = 0; i < batch && result == 0; ++i) {
      if (has_ranges) nvtxRangePushA("forward/layer1");
      result = launch(function, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0);
      if (has_ranges) nvtxRangePop();
    }
    took += now_ns() - begin;
    if (result == 0) result = synchronize();
    if (result != 0) return -result;
  }
  return took / count;
}

void name_stream(void *stream, const char *name) { nvtxNameCuStreamA((CUstream)stream, name); }
