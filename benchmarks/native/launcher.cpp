// What benchmarks/overhead.py needs at full speed: a loop of launches that times each one, and the floor, a CUPTI
// client that does as little as any client can. Built by the benchmark itself; knows the C interfaces, needs no CUDA.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using LaunchKernel = int (*)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             void* stream, void** arguments, void** extra);
using SetContext = int (*)(void* context);
using Synchronize = int (*)();
// A stand-in for it, to try this out without a GPU: (unused, duration, count).
using SimulatedLaunch = uint32_t (*)(const void* unused, int64_t duration_ns, uint64_t count);

uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

struct Target {
  void* launch;
  void* set_context;
  void* synchronize;
  void* context;
  void* function;
  int32_t simulated;
};

int launch_once(const Target& target, void* stream) {
  if (target.simulated != 0) {
    reinterpret_cast<SimulatedLaunch>(target.launch)(target.function, 1000, 1);
    return 0;
  }
  return reinterpret_cast<LaunchKernel>(target.launch)(target.function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

int synchronize(const Target& target) {
  return target.synchronize == nullptr ? 0 : reinterpret_cast<Synchronize>(target.synchronize)();
}

// --- the floor

constexpr size_t kBufferBytes = size_t{4} << 20;

// What it does differently from the usual floor.
enum Setting : uint32_t {
  kUnzeroed = 1,       // CUPTI zeroes the buffers
  kOneBuffer = 2,      // all threads write to one
  kProcessorTime = 4,  // times are ticks of the processor, as Kineto's are
};

uint64_t processor_time() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return now_ns();
#endif
}

// Buffers are zeroed and faulted in before use and zeroed again by a thread of its own; records are thrown away.
class Floor {
 public:
  static Floor& instance() {
    static auto* const floor = new Floor();
    return *floor;
  }

  int start(const char* libcupti, const uint32_t* kinds, uint32_t count, uint32_t settings) {
    void* library = ::dlopen(libcupti, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return -1;
    const auto function = [library](const char* name) { return ::dlsym(library, name); };
    enable_ = reinterpret_cast<int (*)(uint32_t)>(function("cuptiActivityEnable"));
    disable_ = reinterpret_cast<int (*)(uint32_t)>(function("cuptiActivityDisable"));
    flush_ = reinterpret_cast<int (*)(uint32_t)>(function("cuptiActivityFlushAll"));
    const auto attribute = reinterpret_cast<int (*)(uint32_t, size_t*, void*)>(function("cuptiActivitySetAttribute"));
    const auto callbacks = reinterpret_cast<int (*)(decltype(&requested), decltype(&completed))>(
        function("cuptiActivityRegisterCallbacks"));
    if (enable_ == nullptr || disable_ == nullptr || flush_ == nullptr || attribute == nullptr ||
        callbacks == nullptr) {
      return -1;
    }
    is_zeroed_ = (settings & kUnzeroed) == 0;
    uint8_t zeroed = is_zeroed_ ? 1 : 0;
    size_t bytes = sizeof(zeroed);
    attribute(5, &bytes, &zeroed);
    if ((settings & kOneBuffer) != 0) {
      uint8_t per_thread = 0;
      if (attribute(9, &bytes, &per_thread) != 0) return -1;
    }
    while (clean_.size() < 64) clean_.push_back(fresh());
    stopping_ = false;
    bytes_seen_ = 0;
    zeroing_ = std::thread([this] { zero(); });
    int result = 0;
    if ((settings & kProcessorTime) != 0) {
      const auto use_clock =
          reinterpret_cast<int (*)(uint64_t (*)())>(function("cuptiActivityRegisterTimestampCallback"));
      result = use_clock == nullptr ? -1 : use_clock(&processor_time);
    }
    if (result == 0) result = callbacks(&requested, &completed);
    for (uint32_t i = 0; i < count && result == 0; ++i) result = enable_(kinds[i]);
    kinds_.assign(kinds, kinds + count);
    return result;
  }

  uint64_t stop() {
    flush_(0);
    for (const uint32_t kind : kinds_) disable_(kind);
    flush_(1);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    zeroing_.join();
    return bytes_seen_;
  }

 private:
  static uint8_t* fresh() {
    void* memory = std::aligned_alloc(4096, kBufferBytes);
    std::memset(memory, 0, kBufferBytes);
    return static_cast<uint8_t*>(memory);
  }

  static void requested(uint8_t** buffer, size_t* size, size_t* max_records) {
    Floor& floor = instance();
    const std::lock_guard<std::mutex> lock(floor.mutex_);
    if (floor.clean_.empty()) floor.clean_.push_back(fresh());
    *buffer = floor.clean_.back();
    floor.clean_.pop_back();
    *size = kBufferBytes;
    *max_records = 0;
  }

  static void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    Floor& floor = instance();
    {
      const std::lock_guard<std::mutex> lock(floor.mutex_);
      floor.dirty_.push_back({buffer, valid});
      floor.bytes_seen_ += valid;
    }
    floor.wake_.notify_one();
  }

  void zero() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !dirty_.empty(); });
      if (dirty_.empty()) return;
      const Dirty dirty = dirty_.back();
      dirty_.pop_back();
      lock.unlock();
      if (is_zeroed_) std::memset(dirty.buffer, 0, dirty.valid);
      lock.lock();
      clean_.push_back(dirty.buffer);
    }
  }

  struct Dirty {
    uint8_t* buffer;
    size_t valid;
  };

  int (*enable_)(uint32_t) = nullptr;
  int (*disable_)(uint32_t) = nullptr;
  int (*flush_)(uint32_t) = nullptr;
  std::vector<uint32_t> kinds_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<uint8_t*> clean_;
  std::vector<Dirty> dirty_;
  uint64_t bytes_seen_ = 0;
  bool stopping_ = false;
  bool is_zeroed_ = true;
  std::thread zeroing_;
};

}  // namespace

extern "C" {

// Launches `count` times on one stream and writes how long each call took; waits for the GPU every `batch` launches,
// outside of what is timed. Returns the first error.
int launcher_time(const Target* target, void* stream, uint64_t count, uint64_t batch, uint64_t* nanoseconds) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t before = now_ns();
    const int result = launch_once(*target, stream);
    nanoseconds[i] = now_ns() - before;
    if (result != 0) return result;
    if ((i + 1) % batch == 0) {
      if (const int waited = synchronize(*target); waited != 0) return waited;
    }
  }
  return synchronize(*target);
}

// As many threads as streams, each launching `count` times; returns the nanoseconds until all are through, 0 on error.
uint64_t launcher_threads(const Target* target, void** streams, uint32_t threads, uint64_t count) {
  std::vector<std::thread> workers;
  workers.reserve(threads);
  std::vector<int> results(threads, 0);
  const uint64_t before = now_ns();
  for (uint32_t index = 0; index < threads; ++index) {
    workers.emplace_back([=, &results] {
      if (target->set_context != nullptr) {
        results[index] = reinterpret_cast<SetContext>(target->set_context)(target->context);
      }
      for (uint64_t i = 0; i < count && results[index] == 0; ++i) {
        results[index] = launch_once(*target, streams[index]);
        if ((i + 1) % 1000 == 0) synchronize(*target);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const uint64_t took = now_ns() - before;
  const bool good = std::all_of(results.begin(), results.end(), [](int result) { return result == 0; });
  return good && synchronize(*target) == 0 ? took : 0;
}

int floor_start(const char* libcupti, const uint32_t* kinds, uint32_t count, uint32_t settings) {
  return Floor::instance().start(libcupti, kinds, count, settings);
}

// Returns the bytes of records that were thrown away.
uint64_t floor_stop() { return Floor::instance().stop(); }

}  // extern "C"
