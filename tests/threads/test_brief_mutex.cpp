// The mutex of the annotations: one thread at a time, also where threads find it held. Under ThreadSanitizer, too.
#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "threads/brief_mutex.h"
#include "threads/not_cancelled.h"
#include "threads/patient_lock.h"

namespace collector::threads {
namespace {

struct Counter {
  BriefMutex mutex;
  int count GUARDED_BY(mutex) = 0;
};

TEST_CASE("threads that take turns lose nothing") {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  Counter counter;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&counter] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const BriefLock lock(counter.mutex);
        ++counter.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const BriefLock lock(counter.mutex);
  CHECK(counter.count == kThreads * kTurns);
}

TEST_CASE("a thread waits for a holder that sleeps") {
  Counter counter;
  std::atomic<bool> is_waiting{false};
  std::thread thread;
  {
    const BriefLock lock(counter.mutex);
    thread = std::thread([&] {
      is_waiting = true;
      const BriefLock inner(counter.mutex);
      counter.count *= 10;
    });
    while (!is_waiting) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // beyond the spinning
    counter.count = 7;
  }
  thread.join();
  const BriefLock lock(counter.mutex);
  CHECK(counter.count == 70);
}

// Cancels a thread that runs `wait` until `let_go` is called; whether the thread came back from it.
template <typename Wait, typename LetGo>
bool survives_cancellation(const Wait& wait, const LetGo& let_go) {
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> came_back{false};
  std::thread thread([&] {
    is_waiting = true;
    wait();
    came_back = true;
    ::pthread_testcancel();
    came_back = false;  // the cancellation was lost
  });
  while (!is_waiting) std::this_thread::yield();
  ::pthread_cancel(thread.native_handle());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  let_go();
  thread.join();
  return came_back;
}

TEST_CASE("a cancelled thread is unwound after its wait for a lock, not in it") {
  BriefMutex brief;
  brief.lock();
  CHECK(survives_cancellation([&] { const BriefLock lock(brief); }, [&] { brief.unlock(); }));
  Mutex patient;
  patient.lock();
  CHECK(survives_cancellation(
      [&] {
        if (lock_within(patient, kPatience)) patient.unlock();
      },
      [&] { patient.unlock(); }));
  CHECK(survives_cancellation(
      [] {
        const NotCancelled not_cancelled;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      },
      [] {}));
}

}  // namespace
}  // namespace collector::threads
