// Chrome's trace JSON, one event a line, in UTF-8.
//
// Times are µs with three decimals, printed from whole ns, so that nothing is lost on the way through a double.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "write/fragment.h"
#include "write/output.h"
#include "write/trace_writer.h"

namespace collector::convert {

class ChromeWriter : public TraceWriter {
 public:
  explicit ChromeWriter(Output& output) : output_(output) {}

  // The first begins the file; several steps may follow each other.
  void Begin(const Summary& summary) override;
  void OnProcess(const Process& process) override;
  void OnTrack(const Track& track) override;
  void OnSlice(const Slice& slice) override;
  void OnCounterTrack(const CounterTrack&) override {}
  void OnValue(const Value& value) override;
  void OnInstant(const Instant& instant) override;
  void End(const Summary&) override {}

  // Ends the file. `other_data` is a JSON object about the whole of it.
  void Finish(std::string_view other_data) override;

 private:
  void NextEvent();
  void AppendString(std::string_view text);
  void AppendMicros(int64_t ns);
  // A slice's arguments from the `first` on.
  static void AppendArguments(Output& output, const Slice& slice, size_t first, size_t end);
  static void AppendStart(Output& output, const Slice& slice);
  void AppendFlow(std::string_view start, uint64_t id, int64_t time_ns, bool inside);
  // `,"pid":1,"tid":2,"ts":`
  const Fragment& Place(uint32_t pid, uint32_t tid);
  void AppendMetadata(uint32_t pid, uint32_t tid, std::string_view event, std::string_view key);

  Output& output_;
  bool begun_ = false;
  bool any_event_ = false;
  uint32_t pid_ = 1;  // of place_
  uint32_t tid_ = 1000000;
  const Fragment* place_ = nullptr;  // one of the remembered ones
  struct RememberedPlace {
    uint32_t pid = 0;
    uint32_t tid = 0;
    Fragment text;
  };
  std::array<RememberedPlace, 256> places_;  // by tid; threads and lanes are drawn by turns

  // What slices that are alike have in common.
  struct RememberedSlice {
    uint32_t alike = 0;
    Fragment start;      // up to the category
    Fragment arguments;  // the first of them
  };
  const RememberedSlice& Remembered(const Slice& slice);
  static constexpr size_t kRememberedSlices = 1024;
  std::vector<RememberedSlice> alike_ = std::vector<RememberedSlice>(kRememberedSlices);  // by Slice::alike
};

}  // namespace collector::convert
