// cupti_trial LIBCUDA LIBCUPTI: calls a libcupti as a session does, and writes "ok" if it survived and answers. The
// process that must not crash starts it (cupti/trial.h).
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "cupti/abi.h"

namespace {

using collector::cupti::ActivityKind;

constexpr size_t kBufferBytes = 64 << 10;
alignas(8) std::array<uint8_t, kBufferBytes> buffer;

void on_request(uint8_t** memory, size_t* size, size_t* max_records) {
  *memory = buffer.data();
  *size = buffer.size();
  *max_records = 0;
}

void on_completion(void*, uint32_t, uint8_t*, size_t, size_t) {}

void on_callback(void*, uint32_t, uint32_t, const void*) {}

[[noreturn]] void end(const std::string& text, int status) {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
  ::_exit(status);
}

// Calls one function of a library; `must_answer`: its failure makes the library unusable.
template <typename... Arguments>
void call(void* library, const char* name, bool must_answer, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library, name));
  if (function == nullptr) end(std::string("it has no ") + name, 1);
  const int result = function(arguments...);
  if (must_answer && result != 0) end(std::string(name) + " answers " + std::to_string(result), 1);
}

[[noreturn]] void call_as_a_session_does(const char* libcuda, const char* libcupti) {
  void* const driver = ::dlopen(libcuda, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) end("the driver cannot be loaded", 1);
  int driver_version = 0;
  call(driver, "cuDriverGetVersion", true, &driver_version);
  void* const cupti = ::dlopen(libcupti, RTLD_NOW | RTLD_LOCAL);
  if (cupti == nullptr) end("it cannot be loaded", 1);
  uint32_t version = 0;
  call(cupti, "cuptiGetVersion", true, &version);
  uint8_t* record = nullptr;
  call(cupti, "cuptiActivityGetNextRecord", false, buffer.data(), buffer.size(), &record);
  call(driver, "cuInit", false, 0U);
  void* subscriber = nullptr;
  call(cupti, "cuptiSubscribe", false, &subscriber, &on_callback, static_cast<void*>(nullptr));
  uint64_t time = 0;
  call(cupti, "cuptiGetTimestamp", true, &time);
  call(cupti, "cuptiActivityRegisterCallbacks", true, &on_request, &on_completion);
  const auto kernels = static_cast<uint32_t>(ActivityKind::kConcurrentKernel);
  call(cupti, "cuptiActivityEnable", false, kernels);
  call(cupti, "cuptiActivityDisable", false, kernels);
  call(cupti, "cuptiActivityFlushAll", false, 0U);
  if (subscriber != nullptr) call(cupti, "cuptiUnsubscribe", false, subscriber);
  end("ok", 0);
}

}  // namespace

int main(int count, char** arguments) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (count != 3) return 2;
  try {
    call_as_a_session_does(arguments[1], arguments[2]);
  } catch (...) {
    return 3;
  }
}
