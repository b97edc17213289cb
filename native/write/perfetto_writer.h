// Perfetto's own trace format: track events with interned text.
//
// The file is a sequence of packets, each relative to the packets before it: categories, argument keys, and names and
// argument texts that repeat are sent once and then referred to by number (incremental state). When the tables have
// grown large they are dropped and started again, so that memory does not grow with the file. Tracks are described once
// for the whole file.
//
// Times in the file are ns since the base passed to on_begin; one clock snapshot relates them to wall time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepstats/category.h"
#include "stepstats/name_table.h"
#include "write/fragment.h"
#include "write/output.h"
#include "write/trace_writer.h"

namespace collector::write {

class PerfettoWriter : public TraceWriter {
 public:
  explicit PerfettoWriter(Output& output) : output_(output) {}

  void on_begin(const draw::Summary& summary) override;
  void on_process(const draw::Process& process) override;
  void on_track(const draw::Track& track) override;
  void on_slice(const draw::Slice& slice) override;
  void on_counter_track(const draw::CounterTrack& counter) override;
  void on_value(const draw::Value& value) override;
  void on_instant(const draw::Instant& instant) override;
  // Ends all open slices; further steps may follow.
  void on_end(const draw::Summary& summary) override;

  // Adds a named text about the whole file; Perfetto lists it in its table `metadata` as cr-NAME.
  void add_metadata(std::string_view name, std::string_view text);
  void finish(std::string_view about) override { add_metadata("collector", about); }

 private:
  // Texts of one kind that this packet sequence refers to by number, starting from 1.
  class Interned {
   public:
    // The number of `text`. Its first use appends the text to `news`, as field `field` of InternedData.
    uint64_t number_of(std::string_view text, uint32_t field, Output& news);
    // The same for a text that may never come again: 0 at its first use, where it is shorter and faster to write the
    // text itself.
    uint64_t number_if_repeated(std::string_view text, uint32_t field, Output& news);
    // The table's own copy of a text, valid until clear.
    std::string_view kept(uint64_t number) const { return numbers_[static_cast<uint32_t>(number - 1)]; }
    size_t num_bytes() const { return num_bytes_; }
    void clear();

   private:
    uint64_t number_of(std::string_view text, uint32_t hash, uint32_t field, Output& news);
    // A copy of `text` that does not move until clear.
    std::string_view keep(std::string_view text);

    stepstats::NameTable numbers_;
    std::deque<std::string> blocks_;  // the copies; their memory is reused
    size_t num_blocks_ = 0;           // in use
    size_t num_bytes_ = 0;
    TextOutput entry_;
    // The last hash in each place, of all texts. A text that comes again has usually left its hash there.
    static constexpr size_t kPlaces = 4096;
    std::vector<uint32_t> last_hashes_ = std::vector<uint32_t>(kPlaces);
  };

  struct SliceEnd {
    int64_t time_ns;
    uint64_t wait_in;  // same as in Slice
  };
  struct OpenTrack {
    uint64_t uuid;
    std::vector<SliceEnd> ends;  // of open slices, innermost last
  };

  OpenTrack& open_track_of(uint32_t tid) { return open_tracks_[thread_index(tid)]; }
  size_t thread_index(uint32_t tid);
  // Ends the slices of a track that are over at `time_ns`.
  void end_slices(OpenTrack& track, int64_t time_ns);
  void begin_copies(uint32_t pid);
  uint64_t number_of_category(stepstats::Category category);
  // Appends category and name. `repeats`: whether the slice is known to have others alike.
  void append_start(Output& to, const draw::Slice& slice, bool repeats);
  // Appends a slice's arguments, starting with number `first`.
  void append_arguments(Output& to, const draw::Slice& slice, size_t first, size_t end, bool repeats);
  void append_argument(Output& to, const draw::Argument& argument, bool repeats);
  uint64_t number_of_key(std::string_view key);
  // Writes a packet with a TrackEvent and the texts interned since the packet before.
  void write_event(int64_t time_ns, bool uses_interned, std::string_view event);
  // Writes a packet with other content.
  void write_packet(std::string_view body);
  void start_anew();

  Output& output_;
  bool described_clock_ = false;
  bool anew_ = true;  // the next packet clears the texts interned so far
  bool described_instants_ = false;
  std::set<uint32_t> pids_with_copies_;
  Interned names_, categories_, keys_, texts_;
  std::array<uint64_t, stepstats::kCategories> category_numbers_{};  // 0: not interned yet
  std::vector<OpenTrack> open_tracks_;
  std::unordered_map<uint32_t, size_t> thread_index_;  // tid -> index above: small numbers make small packets
  uint32_t last_tid_ = 0;
  size_t last_index_ = 0;
  // Reused for every packet.
  TextOutput event_, interned_, scratch_;
  // The numbers of argument keys, by addresses at which the keys were found: most keys are constants of the program.
  struct KnownKey {
    std::string_view kept;  // the copy of the table
    uint64_t number = 0;
  };
  std::array<KnownKey, 64> known_keys_{};

  // The parts that alike slices share, with the numbers of interned texts.
  struct RememberedSlice {
    uint32_t alike = 0;
    Fragment start;
    Fragment arguments;  // only the shared ones
  };
  const RememberedSlice& remember(const draw::Slice& slice);
  void forget();
  static constexpr size_t kRememberedSlices = 1024;
  std::vector<RememberedSlice> alike_ = std::vector<RememberedSlice>(kRememberedSlices);  // by Slice::alike
};

}  // namespace collector::write
