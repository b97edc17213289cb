// Reads Chrome traces piece by piece into columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/json_cursor.h"
#include "read/sparse_column.h"
#include "read/texts.h"
#include "stepstats/name_table.h"
#include "store/blocks.h"
#include "store/chunks.h"

namespace collector::read {

// A time that an event lacks, and a time that is not a number or not possible.
constexpr int64_t kNoTime = INT64_MIN;
constexpr int64_t kImpossibleTime = INT64_MIN + 1;

// The members that nearly every event has.
struct ChromeEvent {
  int64_t start_ns;     // or kNoTime, or kImpossibleTime
  int64_t duration_ns;  // likewise
  uint32_t name;        // number of a text, see `ChromeScanner::text`
  uint32_t category;    // number of a text
  uint32_t track;       // index of `ChromeScanner::tracks`: its process and thread
  uint16_t shape;       // index of `ChromeScanner::shapes`: its arguments
  char phase;           // one letter
};

// Takes the text of a trace in pieces of any size. A trace is an object with a member "traceEvents" at any place, which
// is the list of events, or that list alone; both may be cut off. If an object has a member twice, the last one counts.
// Memory grows with the number of events, their arguments, and the distinct texts.
class ChromeScanner {
 public:
  // Arguments of further names are left out and counted.
  static constexpr size_t kMaxArguments = 256;
  // Events with further combinations of arguments get the shape without arguments.
  static constexpr size_t kMaxShapes = size_t{1} << 16;
  // Reading ends at a longer value.
  static constexpr size_t kMaxValueBytes = size_t{64} << 20;

  ChromeScanner();

  // Reads the next piece. False: nothing behind it is read.
  bool feed(std::string_view piece);
  // Ends the text.
  void finish();

  // The events that have a phase.
  const store::Chunks<ChromeEvent>& events() const { return events_; }

  // The text of a number. Strings have even numbers; other values, as they are written, have odd numbers.
  std::string_view text(uint32_t number) const { return (number % 2 == 0 ? strings_ : values_)[number / 2]; }
  bool has_text(uint64_t number) const { return number / 2 < (number % 2 == 0 ? strings_ : values_).size(); }

  // Process and thread of each track as they are written; empty if the events do not state them.
  const std::vector<std::pair<std::string, std::string>>& tracks() const { return tracks_; }

  // The arguments that are integers, and those that are texts, by the index of the argument's name.
  const std::vector<std::string>& argument_names() const { return argument_names_; }
  const SparseColumn& numbers(size_t argument) const { return arguments_[argument].numbers; }
  const SparseColumn& texts(size_t argument) const { return arguments_[argument].texts; }

  // Combinations of arguments, as indices of `argument_names` in the order of the event. The first one is empty.
  const std::vector<std::vector<uint16_t>>& shapes() const { return shapes_; }

  // The texts, as they are written, of the times that are kImpossibleTime.
  const SparseColumn& written_starts() const { return written_starts_; }
  const SparseColumn& written_durations() const { return written_durations_; }

  // The other members of the outermost object, as they are written.
  const std::vector<std::pair<std::string, std::string>>& members() const { return members_; }

  // Whether there was a list of events, even an empty one.
  bool has_events() const { return has_events_; }
  bool is_list() const { return is_list_; }
  // Whether the end of the outermost object or list was read.
  bool is_closed() const { return state_ == State::kClosed; }
  // Why and where reading failed; null: it did not fail, though the text may end between two values.
  const char* failure() const { return failure_; }
  uint64_t failed_at() const { return failed_at_; }

  // Entries of the list of events, entries that are not objects, and arguments beyond kMaxArguments.
  uint64_t num_entries() const { return num_entries_; }
  uint64_t num_not_objects() const { return num_not_objects_; }
  uint64_t num_arguments_left_out() const { return num_arguments_left_out_; }
  // Arguments that are NaN or Infinity, which JSON does not have.
  uint64_t num_not_finite() const { return num_not_finite_; }
  uint64_t num_ill_formed() const { return num_ill_formed_; }
  uint64_t first_ill_formed() const { return first_ill_formed_; }

 private:
  enum class State { kStart, kMembers, kEvents, kClosed, kFailed };
  struct Argument {
    explicit Argument(store::Blocks& blocks) : numbers(blocks), texts(blocks) {}
    SparseColumn numbers;
    SparseColumn texts;
  };
  struct Given {
    uint16_t argument;
    bool is_text;
    int64_t value;
  };

  void scan();
  void step(JsonCursor& cursor);
  void start(JsonCursor& cursor);
  void member(JsonCursor& cursor);
  void entry(JsonCursor& cursor);
  void read_event(JsonCursor& cursor);
  void read_member(JsonCursor& cursor, std::string_view name, ChromeEvent& event);
  void read_arguments(JsonCursor& cursor);
  void give(std::string_view name, bool is_text, int64_t value);
  uint32_t argument_number(std::string_view name);
  uint32_t category_of(JsonCursor& cursor);
  uint32_t text_of(JsonCursor& cursor);
  int64_t time_of(JsonCursor& cursor, int64_t& written);
  uint32_t track();
  uint16_t shape();
  void fail(const char* why);
  uint64_t position(const char* at) const { return before_ + static_cast<uint64_t>(at - window_.data()); }

  store::Blocks blocks_{0};
  store::Chunks<ChromeEvent> events_{blocks_};
  Texts strings_;
  Texts values_;
  Texts track_names_;
  std::vector<std::pair<std::string, std::string>> tracks_;
  Texts argument_table_;
  std::vector<std::string> argument_names_;
  std::deque<Argument> arguments_;  // which do not move
  SparseColumn written_starts_{blocks_};
  SparseColumn written_durations_{blocks_};
  Texts shape_table_;
  std::vector<std::vector<uint16_t>> shapes_;
  std::vector<std::pair<std::string, std::string>> members_;

  // The text from the first value on that is not read yet, the place in it, and the bytes of the file before it.
  std::string window_;
  size_t at_ = 0;
  uint64_t before_ = 0;
  size_t retry_bytes_ = 0;  // a value that was not complete is read again once the window is this long

  State state_ = State::kStart;
  bool is_list_ = false;
  bool has_events_ = false;
  const char* failure_ = nullptr;
  uint64_t failed_at_ = 0;
  uint64_t num_entries_ = 0;
  uint64_t num_not_objects_ = 0;
  uint64_t num_arguments_left_out_ = 0;
  uint64_t num_not_finite_ = 0;
  uint64_t num_ill_formed_ = 0;
  uint64_t first_ill_formed_ = 0;

  // Of the event before, which most events resemble.
  uint32_t last_category_ = 0;
  uint32_t last_track_ = 0;
  uint16_t last_shape_ = 0;

  // Of the event that is being read.
  std::vector<Given> given_;
  uint64_t not_finite_ = 0;
  uint64_t arguments_left_out_ = 0;
  int64_t written_start_ = -1;  // the text of a time that is kImpossibleTime
  int64_t written_duration_ = -1;
  std::string_view process_;
  std::string_view thread_;
  std::string name_scratch_;
  std::string text_scratch_;
  std::string track_scratch_;
  std::string shape_scratch_;
  bool comma_may_follow_ = false;
};

}  // namespace collector::read
