/* A program that knows nothing of the collector: launching_program END [LAUNCHES].

   It calls the driver as any CUDA program does, with declarations of its own, and then ends in the way that END names.
   Each launch is a kernel "work"; a child that is executed launches kernels "child_work". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef DRIVER
/* Linked to no driver, as a program with a static runtime library is: that loads the driver when it is first used. */
#include <dlfcn.h>
typedef void *Handle;
static void *driver_function(const char *name) {
  void *const driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
  void *const found = driver ? dlsym(driver, name) : 0;
  if (found == 0) exit(73);
  return found;
}
#define CALL(name, parameters, ...) \
  static int name parameters { return ((int(*) parameters)driver_function(#name))(__VA_ARGS__); }
CALL(cuInit, (unsigned flags), flags)
CALL(cuDeviceGet, (int *device, int ordinal), device, ordinal)
CALL(cuDevicePrimaryCtxRetain, (Handle *context, int device), context, device)
CALL(cuCtxSetCurrent, (Handle context), context)
CALL(cuCtxSynchronize, (void), )
CALL(cuModuleLoadData, (Handle *module, const void *image), module, image)
CALL(cuModuleGetFunction, (Handle *function, Handle module, const char *name), function, module, name)
CALL(cuLaunchKernel,
     (Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared_bytes, Handle stream, void **parameters, void **extra),
     function, gx, gy, gz, bx, by, bz, shared_bytes, stream, parameters, extra)
#else
#include "driver_functions.h"
#endif

static Handle context;

static void check(int result, const char *call) {
  if (result == 0) return;
  fprintf(stderr, "%s: %d\n", call, result);
  exit(70);
}

static void launch(const char *name, int count) {
  Handle module, function;
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuModuleLoadData(&module, ""), "cuModuleLoadData");
  check(cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
  for (int i = 1; i <= count; ++i) {
    check(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, 0, 0), "cuLaunchKernel");
    if (i == count || i % 1000 == 0) check(cuCtxSynchronize(), "cuCtxSynchronize");
  }
}

/* Until the records of the launches have reached the journal, which is written twice a second. */
static void wait_for_journal(void) {
  if (getenv("WAIT_MS") != 0) usleep(1000 * (useconds_t)atoi(getenv("WAIT_MS")));
}

static void *wait_forever(void *unused) {
  for (;;) pause();
  return unused;
}

static void *launch_forever(void *unused) {
  for (;;) launch("thread_work", 1);
  return unused;
}

/* Which of the files 0 to 2 are open, as a sum of 1, 2 and 4. */
static int open_standard_files(void) {
  int open_files = 0;
  for (int file = 0; file < 3; ++file) {
    if (fcntl(file, F_GETFD) >= 0) open_files |= 1 << file;
  }
  return open_files;
}

int main(int count_arguments, char **arguments) {
  const char *end = count_arguments > 1 ? arguments[1] : "exit";
  const int launches = count_arguments > 2 ? atoi(arguments[2]) : 100;
  const int is_child = strcmp(end, "child") == 0;
  const int open_at_first = open_standard_files();
  int device;
  if (strcmp(end, "no-cuda") == 0) return 5;
  if (strcmp(end, "daemon") == 0) {
    if (fork() != 0) return 7;
    setsid();
    for (int file = 0; file < 3; ++file) dup2(open("/dev/null", O_RDWR), file);
  }
  if (strcmp(end, "close-files") == 0) {
    /* As a daemon does, after CUDA has been initialised; its own file gets the numbers that have become free. */
    check(cuInit(0), "cuInit");
    for (int file = 3; file < 1024; ++file) close(file);
    for (int file = 3; file < 64; ++file) {
      if (open(arguments[3], O_WRONLY | O_CREAT | O_APPEND, 0600) < 0) return 72;
    }
  }
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  launch(is_child ? "child_work" : "work", launches);
  if (strcmp(end, "echo") == 0) {
    char line[256];
    while (fgets(line, sizeof(line), stdin) != 0) fputs(line, stdout);
  } else if (strcmp(end, "print") == 0) {
    if (open_standard_files() != open_at_first) return 74;
    for (int file = 0; file < 3; ++file) {
      if (!(open_at_first & 1 << file) && open("/dev/null", O_RDWR) != file) return 75;
    }
    for (int file = 0; file < 3; ++file) {
      if (!(open_at_first & 1 << file)) close(file);
    }
    for (int i = 0; i < 1000; ++i) printf("a line that nobody is to read\n");
  } else if (strcmp(end, "unsynchronized") == 0) {
    Handle module, function;
    cuModuleLoadData(&module, "");
    cuModuleGetFunction(&function, module, "unfinished_work");
    cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, 0, 0);
  } else if (strcmp(end, "daemon") == 0) {
    wait_for_journal();
    launch("late_work", 10);
  } else if (strcmp(end, "_exit") == 0) {
    wait_for_journal();
    _exit(7);
  } else if (strcmp(end, "quick_exit") == 0) {
    quick_exit(7);
  } else if (strcmp(end, "abort") == 0) {
    wait_for_journal();
    abort();
  } else if (strcmp(end, "kill") == 0) {
    wait_for_journal();
    kill(getpid(), SIGKILL);
  } else if (strcmp(end, "wait") == 0) {
    puts("waiting");
    fflush(stdout);
    wait_forever(0);
  } else if (strcmp(end, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) exit(3);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 3 ? 7 : 71;
  } else if (strcmp(end, "fork-exec") == 0) {
    const pid_t child = fork();
    if (child == 0) execl(arguments[0], arguments[0], "child", "30", (char *)0);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  } else if (strcmp(end, "exec") == 0) {
    execl(arguments[0], arguments[0], "child", "30", (char *)0);
  } else if (strcmp(end, "threads") == 0) {
    pthread_t thread;
    for (int i = 0; i < 4; ++i) pthread_create(&thread, 0, i % 2 ? wait_forever : launch_forever, 0);
    usleep(20000);
  }
  return 7;
}
