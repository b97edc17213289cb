// Several steps in one file: their arrows and counters have numbers of their own.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"
#include "write/merged_trace.h"

using namespace collector;

namespace {

constexpr int64_t kStartNs = 1'700'000'000'000'000'000;

std::string field(uint32_t number, const std::string& content) {
  stepstats::Measure size;
  put_text(size, number, content);
  std::string bytes(size.num_bytes(), '\0');
  stepstats::WireWriter writer(bytes.data());
  put_text(writer, number, content);
  return bytes;
}

std::string field(uint32_t number, int64_t value) {
  stepstats::Measure size;
  put_number(size, number, value);
  std::string bytes(size.num_bytes(), '\0');
  stepstats::WireWriter writer(bytes.data());
  put_number(writer, number, value);
  return bytes;
}

// A kernel of 10 us on each of two streams, whose busy streams are counted, and a node without a time.
std::string step_of_two_streams() {
  const std::string node = field(1, "op:kernel") + field(2, kStartNs / 1000) + field(5, 10) + field(8, "kernel");
  return field(1, field(1, "/gpu:0/stream:7") + field(2, node) + field(2, field(1, "op:never"))) +
         field(1, field(1, "/gpu:0/stream:9") + field(2, node));
}

struct Seen {
  std::vector<int64_t> starts;
  std::vector<uint32_t> counters;
  std::vector<std::string> about;
  uint64_t slices_at_the_end = 0;
};

class Recorder : public write::TraceWriter {
 public:
  explicit Recorder(Seen& seen) : seen_(seen) {}
  void on_begin(const draw::Summary&) override {}
  void on_process(const draw::Process&) override {}
  void on_track(const draw::Track&) override {}
  void on_slice(const draw::Slice& slice) override { seen_.starts.push_back(slice.start_ns); }
  void on_counter_track(const draw::CounterTrack& counter) override { seen_.counters.push_back(counter.id); }
  void on_value(const draw::Value&) override {}
  void on_instant(const draw::Instant&) override {}
  void on_end(const draw::Summary& summary) override { seen_.slices_at_the_end = summary.slices; }
  void finish(std::string_view about) override { seen_.about.emplace_back(about); }

 private:
  Seen& seen_;
};

}  // namespace

TEST_CASE("steps are drawn one after the other on the axis of the file") {
  Seen seen;
  write::MergedTrace trace(std::make_unique<Recorder>(seen), draw::TrackOrder({{"rank 0", "/gpu:0/stream:7"},
                                                                               {"rank 0", "/gpu:0/stream:9"},
                                                                               {"rank 1", "/gpu:0/stream:7"},
                                                                               {"rank 1", "/gpu:0/stream:9"}}));
  const std::string bytes = step_of_two_streams();
  const stepstats::StepStats step(bytes, false);
  for (const char* owner : {"rank 0", "rank 1"}) {
    draw::DrawingOptions options;
    options.base_ns = kStartNs - 1'000;
    options.shift_ns = seen.starts.empty() ? 0 : 500;
    const write::MergedTrace::Drawn drawn = trace.add(step, options, kStartNs, owner);
    CHECK(drawn.slices == 2);
    CHECK(drawn.untimed == 1);
  }
  trace.finish("{}");
  CHECK(seen.starts == std::vector<int64_t>{1'000, 1'000, 1'500, 1'500});
  CHECK(seen.about == std::vector<std::string>{"{}"});
  CHECK(seen.slices_at_the_end == 4);
  REQUIRE(seen.counters.size() == 2);
  CHECK(seen.counters[0] != seen.counters[1]);
}
