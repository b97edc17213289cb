// The common behaviour of all exported functions: they are counted, checked, and fail if a fault is armed for them.
#pragma once

#include <cstdint>

#include "simulator/injected_tool.h"
#include "simulator/simulator.h"
#include "simulator/teardown.h"

#define SIMULATOR_EXPORT extern "C" __attribute__((visibility("default")))

namespace collector::simulator {

// Calls made per record or per operation are counted but not logged.
enum class Logged { kNo, kYes };

// Runs the `body` of an exported CUPTI function, unless a fault, the version or the driver makes the call fail.
template <typename Body>
uint32_t cupti_call(size_t function, uint32_t argument, Logged logged, Body body) {
  constexpr uint32_t kApiNotImplemented = 11;
  Simulator& simulator = Simulator::current();
  simulator.calls[function].fetch_add(1, std::memory_order_relaxed);
  crash_after_teardown();
  const auto result = [&]() -> uint32_t {
    if (simulator.is_inherited()) simulator.misuses.count(Misuse::kCallInForkedChild);
    if (kFunctions[function].since_cuda > simulator.release.cuda) {
      simulator.misuses.count(Misuse::kAbsentFunction);
      return kApiNotImplemented;
    }
    if (in_client_callback() && kFunctions[function].name.find("Flush") == std::string_view::npos) {
      simulator.misuses.count(Misuse::kCallInCallback);
    }
    if (simulator.driver_version < simulator.release.cuda && simulator.release.cuda == 13020) {
      simulator.misuses.count(Misuse::kOlderDriver);
      return static_cast<uint32_t>(cupti::Result::kUnknown);
    }
    if (simulator.faults.armed(Fault::kStubDriver)) {
      simulator.misuses.count(Misuse::kNoDriver);
      return static_cast<uint32_t>(simulator.release.cuda < 13000 ? cupti::Result::kNotInitialized
                                                                  : cupti::Result::kUnknown);
    }
    int64_t code = 0;
    if (simulator.faults.strikes(Fault::kError, &code, kFunctions[function].name)) return static_cast<uint32_t>(code);
    return static_cast<uint32_t>(body(simulator));
  }();
  if (logged == Logged::kYes) simulator.log(function, argument, result);
  return result;
}

// The same for a driver function; `body` returns a CUresult.
template <typename Body>
int driver_call(size_t function, Body body) {
  constexpr int kStubLibrary = 34;
  constexpr int kNotInitialized = 3;
  Simulator& simulator = Simulator::current();
  simulator.calls[function].fetch_add(1, std::memory_order_relaxed);
  if (in_client_callback()) simulator.misuses.count(Misuse::kCallInCallback);
  if (simulator.faults.strikes(Fault::kStubDriver)) return kStubLibrary;
  // Whether the real driver answers a tool that cuInit has just loaded is not known.
  if (is_loading_tool() && kFunctions[function].name != "cuDriverGetVersion") return kNotInitialized;
  int64_t code = 0;
  if (simulator.faults.strikes(Fault::kError, &code, kFunctions[function].name)) return static_cast<int>(code);
  return body(simulator);
}

}  // namespace collector::simulator
