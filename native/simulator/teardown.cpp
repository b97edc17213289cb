#include "simulator/teardown.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace collector::simulator {
namespace {

std::atomic<bool> is_torn_down{false};

}  // namespace

void crash_after_teardown() {
  static const int registered = std::atexit([] { is_torn_down.store(true); });
  static_cast<void>(registered);
  if (is_torn_down.load(std::memory_order_relaxed)) std::raise(SIGSEGV);
}

}  // namespace collector::simulator
