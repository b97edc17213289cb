// A libcuda.so.1 with registered functions, through which the real cuda.bindings call the simulator.
#include <cstdint>
#include <map>
#include <string>

namespace {
std::map<std::string, void*>& functions() {
  static std::map<std::string, void*> registered;
  return registered;
}
constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND
}  // namespace

extern "C" void stand_in_register(const char* name, void* function) { functions()[name] = function; }

extern "C" int cuGetProcAddress_v2(const char* name, void** function, int /*version*/, std::uint64_t /*flags*/,
                                   int* status) {
  const auto found = functions().find(name);
  *function = found == functions().end() ? nullptr : found->second;
  if (std::string(name) == "cuGetProcAddress") *function = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? kNotFound : 0;
}

extern "C" int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
