// Chrome's trace JSON in UTF-8, with one event per line.
//
// Times are in µs with three decimals, printed from whole ns, so that no conversion through a double loses digits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "write/fragment.h"
#include "write/output.h"
#include "write/trace_writer.h"

namespace collector::write {

class ChromeWriter : public TraceWriter {
 public:
  explicit ChromeWriter(Output& output) : output_(output) {}

  // The first call begins the file; several steps may follow.
  void on_begin(const draw::Summary& summary) override;
  void on_process(const draw::Process& process) override;
  void on_track(const draw::Track& track) override;
  void on_slice(const draw::Slice& slice) override;
  void on_counter_track(const draw::CounterTrack&) override {}
  void on_value(const draw::Value& value) override;
  void on_instant(const draw::Instant& instant) override;
  void on_end(const draw::Summary&) override {}

  // Ends the file. `other_data` is a JSON object about the whole file.
  void finish(std::string_view other_data) override;

 private:
  void next_event();
  void append_string(std::string_view text);
  void append_micros(int64_t ns);
  // Appends a slice's arguments, starting with number `first`.
  static void append_arguments(Output& output, const draw::Slice& slice, size_t first, size_t end);
  static void append_start(Output& output, const draw::Slice& slice);
  void append_flow(std::string_view start, uint64_t id, std::string_view name, int64_t time_ns, bool inside);
  // `,"pid":1,"tid":2,"ts":`
  const Fragment& place_of(uint32_t pid, uint32_t tid);
  void append_metadata(uint32_t pid, uint32_t tid, std::string_view event, std::string_view key);

  Output& output_;
  bool begun_ = false;
  bool any_event_ = false;
  uint32_t pid_ = 1;  // of place_
  uint32_t tid_ = 1000000;
  const Fragment* place_ = nullptr;  // one of the cached places
  struct RememberedPlace {
    uint32_t pid = 0;
    uint32_t tid = 0;
    Fragment text;
  };
  std::array<RememberedPlace, 256> places_;  // by tid; threads and lanes alternate
  TextOutput scratch_;

  // The parts that alike slices share.
  struct RememberedSlice {
    uint32_t alike = 0;
    Fragment start;      // up to the category
    Fragment arguments;  // only the shared ones
  };
  const RememberedSlice& remember(const draw::Slice& slice);
  static constexpr size_t kRememberedSlices = 1024;
  std::vector<RememberedSlice> alike_ = std::vector<RememberedSlice>(kRememberedSlices);  // by Slice::alike
};

}  // namespace collector::write
