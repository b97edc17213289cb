#include "capture/decode_benchmark.h"

#include <cstring>
#include <ctime>

#include "capture/clocks.h"
#include "capture/decoder.h"
#include "store/store.h"

namespace collector::capture {

DecodeTimes measure_decoding(const cupti::Library& library, std::vector<uint64_t> input, size_t bytes, int repeats) {
  std::vector<uint64_t> target(input.size());
  store::Store store(SIZE_MAX);  // clearing it releases no memory: it stays warm
  DecodeTimes times;
  for (int round = 0; round <= repeats; ++round) {
    store.clear();
    Decoder decoder(library, store);
    const int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    decoder.decode(reinterpret_cast<uint8_t*>(input.data()), bytes);
    const int64_t between = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::memcpy(target.data(), input.data(), bytes);
    asm volatile("" : : "r"(target.data()) : "memory");  // keeps the compiler from removing the copy
    const int64_t after = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    times.records = decoder.counts().records;
    if (round == 0) continue;
    times.decode_ns.push_back(between - before);
    times.memcpy_ns.push_back(after - between);
  }
  return times;
}

}  // namespace collector::capture
