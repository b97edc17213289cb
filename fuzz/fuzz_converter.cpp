// Passes damaged StepStats to the native converters: their output must be a whole, valid file, whatever the input.
//
// The first eight bytes of an input choose the converter and its options; the rest is the message. Built with
// -DCOLLECTOR_FUZZ=ON by Clang this is a libFuzzer program; built as `replay_converter` by any compiler it runs the
// files named on its command line.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checks.h"
#include "contract.h"
#include "draw/merge_visitor.h"
#include "draw/step_drawing.h"
#include "draw/track_order.h"
#include "recorded_rows.h"
#include "stepstats/node_columns.h"
#include "write/chrome_writer.h"
#include "write/perfetto_writer.h"
#include "write/tensorflow_timeline_writer.h"

namespace collector::fuzz {
namespace {

using namespace collector::stepstats;  // NOLINT(google-build-using-namespace): all of it is under test
using namespace collector::draw;       // NOLINT(google-build-using-namespace): all of it is under test
using namespace collector::write;      // NOLINT(google-build-using-namespace): all of it is under test

constexpr size_t kHeaderBytes = 8;
constexpr std::string_view kAbout = R"({"base_time_ns":"0"})";

// Passes on a piece whenever it is full, like the outputs that end in Python. Each piece is as small as possible, so
// that a byte beyond the reserved size is a byte beyond the end of an allocation.
class PieceOutput : public Output {
 public:
  void flush() {
    if (next_ == piece_.get()) return;
    file_.append(piece_.get(), static_cast<size_t>(next_ - piece_.get()));
    piece_ends_.push_back(file_.size());
    next_ = piece_.get();
  }
  const std::string& file() {
    flush();
    return file_;
  }
  const std::vector<size_t>& piece_ends() const { return piece_ends_; }

 protected:
  void make_room(size_t num_bytes) override {
    flush();
    piece_ = std::make_unique<char[]>(num_bytes);
    next_ = piece_.get();
    limit_ = next_ + num_bytes;
  }

 private:
  std::unique_ptr<char[]> piece_;
  std::string file_;
  std::vector<size_t> piece_ends_;
};

// The choices of an input.
class Choices {
 public:
  explicit Choices(std::string_view bytes) {
    for (size_t i = 0; i < kHeaderBytes; ++i) bytes_[i] = static_cast<uint8_t>(bytes[i]);
  }

  uint32_t converter() const { return bytes_[0]; }
  bool is_run_metadata() const { return flag(0); }
  uint32_t number(size_t at) const { return bytes_[3 + at]; }

  TensorflowTimelineOptions tensorflow_timeline() const {
    TensorflowTimelineOptions options;
    options.show_dataflow = flag(1);
    options.show_memory = flag(2);
    options.pretty = flag(3);
    options.op_time = static_cast<OpTime>(number(0) % 3);
    options.data_type_names = {{1, "DT_FLOAT"}, {3, "DT_INT32"}};
    return options;
  }

  // `asked`: the names that were passed to the filter.
  DrawingOptions drawing(std::multiset<std::string>& asked) const {
    DrawingOptions options;
    options.arrows = flag(1);
    options.counters = flag(2);
    if (flag(3)) options.process_label = "rank \"3\"\xFF";
    if (flag(4)) options.remarks = {{"lost: launches", "3\n\xC3", std::nullopt}, {"lost", "", time_at(7)}};
    if (filter(0)) options.keep_device = [](std::string_view name) { return name.size() % 3 != 0; };
    if (filter(1)) {
      options.keep_name = [&asked](std::string_view name) {
        asked.emplace(name);
        return name.size() % 2 != 0;
      };
    }
    if (filter(2)) options.min_duration_ns = int64_t{1} << number(0) % 56;
    if (filter(3)) options.window_start_ns = time_at(1);
    if (filter(4)) options.window_end_ns = time_at(2);
    if (filter(5)) options.max_slices = number(3) % 16;
    if (filter(6)) options.shift_ns = time_at(4) / 2 - time_at(3) / 2;
    return options;
  }

  // Times of both signs and all magnitudes.
  int64_t time_at(size_t at) const {
    const uint32_t chosen = bytes_[at];
    const auto size = static_cast<int64_t>(uint64_t{0x9E3779B97F4A7C15u} >> (1 + chosen % 63));
    return chosen >= 128 ? -size : size;
  }

 private:
  bool flag(unsigned bit) const { return (bytes_[1] >> bit & 1) != 0; }
  bool filter(unsigned bit) const { return (bytes_[2] >> bit & 1) != 0; }

  std::array<uint8_t, kHeaderBytes> bytes_{};
};

void run_tensorflow_timeline(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  TensorflowTimelineOptions options = choices.tensorflow_timeline();
  PieceOutput output;
  write_tensorflow_timeline(step, options, output);
  check_json(output.file());
  options.pretty = !options.pretty;
  TextOutput other;
  write_tensorflow_timeline(step, options, other);
  require(compacted(output.file()) == compacted(other.text()), "pretty and compact text that say different things");
}

void run_maximums(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  for (const AllocatorMaximum& maximum : allocator_maximums(step, choices.tensorflow_timeline())) {
    require(maximum.num_bytes > 0 || maximum.tensors.empty(), "tensors that hold nothing");
    require(std::set<std::string>(maximum.tensors.begin(), maximum.tensors.end()).size() == maximum.tensors.size(),
            "a tensor that is alive twice");
  }
}

// Draws a Chrome trace with the options and returns its text.
std::string drawn(const StepStats& step, const DrawingOptions& options, Contract::Alike alike, std::string_view about) {
  PieceOutput output;
  ChromeWriter writer(output);
  Contract contract(writer, Contract::Steps::kOne, alike);
  draw_step(step, options, contract);
  writer.finish(about);
  return output.file();
}

void run_chrome(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  std::multiset<std::string> asked;
  const DrawingOptions options = choices.drawing(asked);
  const std::string text = drawn(step, options, Contract::Alike::kGiven, kAbout);
  require(std::set<std::string>(asked.begin(), asked.end()).size() == asked.size(), "a name asked about twice");
  check_json(text);
  require(text == drawn(step, options, Contract::Alike::kHidden, kAbout), "alike slices written otherwise");
}

void run_perfetto(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  std::multiset<std::string> asked;
  PieceOutput output;
  PerfettoWriter writer(output);
  Contract contract(writer, Contract::Steps::kOne, Contract::Alike::kGiven);
  draw_step(step, choices.drawing(asked), contract);
  writer.add_metadata("collector", kAbout);
  const std::string& file = output.file();
  require(check_perfetto(file, output.piece_ends()) == contract.slices(), "slices lost on the way to Perfetto");
}

// Draws the message several times into one file, as collector.merge draws its inputs.
void merge(const StepStats& step, const Choices& choices, TraceVisitor& writer) {
  const Summary surveyed = survey(step, DrawingOptions());
  if (surveyed.base_ns <= 0 || surveyed.untimed >= step.num_nodes()) return;
  Contract contract(writer, Contract::Steps::kSeveral, Contract::Alike::kGiven);
  std::vector<std::pair<std::string, std::string>> owned_devices;
  for (const char* const owner : {"rank 1", ""}) {
    for (const Device& device : step.devices()) owned_devices.emplace_back(owner, device.name);
  }
  MergeVisitor merged(contract, TrackOrder(owned_devices));
  const uint32_t times = 1 + choices.number(0) % 3;
  for (uint32_t number = 0; number < times; ++number) {
    DrawingOptions options;
    options.base_ns = surveyed.base_ns;
    options.shift_ns = number * (choices.number(1) < 128 ? surveyed.end_ns : choices.number(2));
    options.remarks = {{"lost: records", "", choices.time_at(7)}};
    if (number > 0) {
      options.first_counter_id = merged.total().next_counter_id;
      options.first_flow_id = merged.total().next_flow_id;
    }
    merged.start_step(options.shift_ns, number % 2 == choices.number(3) % 2 ? "rank 1" : "");
    Contract of_step(merged, Contract::Steps::kOne, Contract::Alike::kGiven);
    draw_step(step, options, of_step);
  }
  merged.finish();
}

void run_merge(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  PieceOutput output;
  if (choices.number(4) % 2 == 0) {
    ChromeWriter writer(output);
    merge(step, choices, writer);
    writer.finish(kAbout);
    check_json(output.file());
  } else {
    PerfettoWriter writer(output);
    merge(step, choices, writer);
    writer.add_metadata("collector", kAbout);
    const std::string& file = output.file();
    check_perfetto(file, output.piece_ends());
  }
}

// Chosen columns of a device's nodes, as the profiler requests them.
struct ReadColumns {
  static constexpr std::array<uint32_t, 4> kNumbers = {2, 5, 13, 16};
  static constexpr std::array<uint32_t, 2> kTexts = {1, 8};

  explicit ReadColumns(std::string_view device) : num_nodes(stepstats::count_nodes(device)) {
    stepstats::Columns columns;
    for (size_t i = 0; i < kNumbers.size(); ++i) {
      numbers[i].resize(num_nodes);
      columns.numbers[kNumbers[i]] = numbers[i].data();
    }
    for (size_t i = 0; i < kTexts.size(); ++i) {
      begins[i].resize(num_nodes);
      ends[i].resize(num_nodes);
      columns.texts[kTexts[i]] = {begins[i].data(), ends[i].data()};
    }
    stepstats::read_nodes(device, num_nodes, columns);
    for (size_t i = 0; i < kTexts.size(); ++i) {
      text_numbers[i].resize(num_nodes);
      texts[i] = stepstats::distinct_texts(device, begins[i].data(), ends[i].data(), num_nodes, text_numbers[i].data());
    }
  }

  std::string_view text(size_t column, size_t row) const {
    return texts[column][static_cast<size_t>(text_numbers[column][row])];
  }

  size_t num_nodes;
  std::array<std::vector<int64_t>, kNumbers.size()> numbers;
  std::array<std::vector<int64_t>, kTexts.size()> begins, ends, text_numbers;
  std::array<std::vector<std::string_view>, kTexts.size()> texts;
};

// The columns and the individually read nodes must be equal.
void run_columns(std::string_view message, const Choices& choices) {
  const StepStats step(message, choices.is_run_metadata());
  for (const Device& device : step.devices()) {
    const ReadColumns read(device.message);
    require(read.num_nodes == device.num_nodes, "nodes lost on the way");
    size_t row = 0;
    step.for_each_node(device, [&](const Node& node) {
      require(read.text(0, row) == node.name && read.text(1, row) == node.label, "texts that depend on the reader");
      require(read.numbers[0][row] == node.start_us && read.numbers[1][row] == node.end_rel_us &&
                  read.numbers[2][row] == node.start_ns && read.numbers[3][row] == node.end_rel_ns,
              "numbers that depend on the reader");
      ++row;
    });
  }
}

// The activities of the message, written as rows and read again, must be the same rows; the written message is also
// drawn.
void run_recorded(std::string_view message, const Choices& choices) {
  const RecordedRows rows(message, choices.is_run_metadata(), choices.time_at(6), choices.number(0));
  const std::string written = rows.to_message();
  require(RecordedRows(written, true, choices.time_at(6), choices.number(0)) == rows, "rows that change on the way");
  std::multiset<std::string> asked;
  check_json(drawn(StepStats(written, true), choices.drawing(asked), Contract::Alike::kGiven, kAbout));
}

void run(std::string_view input) {
  if (input.size() < kHeaderBytes) return;
  const Choices choices(input);
  // A separate copy, so that a read beyond its end is detected.
  const std::vector<char> bytes(input.begin() + kHeaderBytes, input.end());
  const std::string_view message =
      bytes.empty() ? std::string_view("", 0) : std::string_view(bytes.data(), bytes.size());
  constexpr std::array kRuns = {
      run_tensorflow_timeline, run_maximums, run_chrome, run_perfetto, run_merge, run_columns, run_recorded};
  try {
    kRuns[choices.converter() % kRuns.size()](message, choices);
  } catch (const WireError& error) {
    require(error.position() <= message.size(), "an error beyond the end of the message");
  } catch (const BeyondInt64&) {  // left to Python's implementation
    require(choices.converter() % kRuns.size() < 2, "numbers beyond 64 bits in a converter that has an answer to them");
  }
}

}  // namespace
}  // namespace collector::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  collector::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
