// Makes chosen system calls on chosen files fail, as on a full or broken disk, or on a server that is gone. The library
// is preloaded (LD_PRELOAD) into a test, which calls file_failer_arm: from then on the n-th call of that name, and all
// after it, fail for files whose paths contain a text. A failed `close` closes the file nevertheless, as on Linux.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

char part_of_path[PATH_MAX];
char failing_call[16];
std::atomic<int64_t> seen{0};
std::atomic<int64_t> first{0};
std::atomic<int> error_number{0};
std::atomic<bool> armed{false};

// In place of an error of `write`: it takes half of the bytes.
constexpr int kShortWrite = -1;

bool is_meant(int descriptor) {
  char link[64];
  char path[PATH_MAX];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const auto length = syscall(SYS_readlink, link, path, sizeof(path) - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return std::strstr(path, part_of_path) != nullptr;
}

bool fails(const char* call, int descriptor) {
  if (!armed.load() || std::strcmp(call, failing_call) != 0 || !is_meant(descriptor)) return false;
  const int64_t number = ++seen;
  return first.load() > 0 && number >= first.load();
}

int failure() {
  errno = error_number.load();
  return -1;
}

template <typename Function>
Function original(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// With `n` 0 no call fails, and all are counted.
EXPORT void file_failer_arm(const char* part, const char* call, int64_t n, int error) {
  armed = false;
  std::snprintf(part_of_path, sizeof(part_of_path), "%s", part);
  std::snprintf(failing_call, sizeof(failing_call), "%s", call);
  seen = 0;
  first = n;
  error_number = error;
  armed = true;
}
EXPORT void file_failer_disarm() { armed = false; }
EXPORT int64_t file_failer_seen() { return seen.load(); }

EXPORT ssize_t write(int descriptor, const void* data, size_t bytes) {
  static const auto write_it = original<ssize_t (*)(int, const void*, size_t)>("write");
  if (!fails("write", descriptor)) return write_it(descriptor, data, bytes);
  return error_number.load() == kShortWrite ? write_it(descriptor, data, (bytes + 1) / 2) : failure();
}

EXPORT int close(int descriptor) {
  static const auto close_it = original<int (*)(int)>("close");
  const bool has_failed = fails("close", descriptor);
  const int result = close_it(descriptor);
  return has_failed ? failure() : result;
}

EXPORT int fstat(int descriptor, struct stat* info) noexcept {
  static const auto stat_it = original<int (*)(int, struct stat*)>("fstat");
  return fails("fstat", descriptor) ? failure() : stat_it(descriptor, info);
}
