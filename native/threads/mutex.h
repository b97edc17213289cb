// A mutex whose use Clang checks, and the attributes that declare which data it guards.
//
// `make lint` compiles everything with Clang's -Wthread-safety: a member that is GUARDED_BY a mutex can be used only
// while the mutex is held, and so can a function that REQUIRES it. These classes exist because std::mutex of libstdc++
// has no such attributes. Other compilers ignore the attributes.
#pragma once

#include <mutex>

#if defined(__clang__)
#define THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define THREAD_ATTRIBUTE(attribute)
#endif

#define CAPABILITY(name) THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(mutex) THREAD_ATTRIBUTE(guarded_by(mutex))
#define REQUIRES(...) THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define NO_LOCK_ANALYSIS THREAD_ATTRIBUTE(no_thread_safety_analysis)
#define RELEASE(...) THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace collector::threads {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex for a scope.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  // For a mutex that this thread already holds, e.g. after try_lock.
  MutexLock(Mutex& mutex, std::adopt_lock_t /*held*/) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace collector::threads
