#include "cupti/context_waits.h"

namespace collector::cupti {

bool synchronize_contexts(const DriverFunctions& driver) {
  if (driver.CtxSynchronize == nullptr) return false;
  bool are_done = true;
  void* current = nullptr;
  if (driver.CtxGetCurrent != nullptr && driver.CtxGetCurrent(&current) == 0 && current != nullptr) {
    are_done = driver.CtxSynchronize() == 0;
  }
  int count = 0;
  // A driver library that wraps the real one may lack some of these functions.
  if (driver.DeviceGetCount == nullptr || driver.DeviceGet == nullptr || driver.DevicePrimaryCtxGetState == nullptr ||
      driver.DevicePrimaryCtxRetain == nullptr || driver.DevicePrimaryCtxRelease == nullptr ||
      driver.CtxPushCurrent == nullptr || driver.CtxPopCurrent == nullptr) {
    return are_done;
  }
  if (driver.DeviceGetCount(&count) != 0) return are_done;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    unsigned flags = 0;
    int is_active = 0;
    void* context = nullptr;
    if (driver.DeviceGet(&device, ordinal) != 0) continue;
    // Only contexts that the program created: retaining an inactive primary context would create it.
    if (driver.DevicePrimaryCtxGetState(device, &flags, &is_active) != 0 || is_active == 0) continue;
    if (driver.DevicePrimaryCtxRetain(&context, device) != 0) continue;
    if (context != current && driver.CtxPushCurrent(context) == 0) {
      are_done = driver.CtxSynchronize() == 0 && are_done;
      void* popped = nullptr;
      driver.CtxPopCurrent(&popped);
    }
    driver.DevicePrimaryCtxRelease(device);
  }
  return are_done;
}

}  // namespace collector::cupti
