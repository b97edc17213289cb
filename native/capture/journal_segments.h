// A journal: one file or, for long sessions, a folder of segments of which the oldest may be removed again.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "capture/annotations.h"
#include "capture/journal.h"
#include "capture/repeated_rows.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

// The size of the segments of a recording without a limit, of which a part may be asked for.
inline constexpr uint64_t kSegmentBytes = uint64_t{16} << 20;

// When a segment is closed, and which ones are removed. 0: no limit.
struct SegmentLimits {
  uint64_t segment_bytes = 0;  // of a segment, besides what it repeats
  int64_t segment_ns = 0;      // from the begin of a segment to its end
  uint64_t total_bytes = 0;    // of all segments
  int64_t total_ns = 0;        // since the end of a segment

  // The limits of a ring: of the latest records, of this size or time, and of up to one segment more.
  static SegmentLimits of_ring(uint64_t bytes, int64_t ns);

  bool has_segments() const { return segment_bytes != 0 || segment_ns != 0; }
};

// The owner sees to it that a session whose journal has segments forgets its rows. Any failure ends only the journal;
// `trouble` contains its cause. Not thread-safe, except for segment_number().
class JournalSegments {
 public:
  // Creates the file or the folder, which must not exist yet.
  JournalSegments(std::string path, const SegmentLimits& limits);

  // Writes the first frame of this and of all later segments.
  void begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
             const std::map<std::string, int64_t>& numbers);

  // Writes the rows and texts added since the last call, in one frame unless there are many annotations. The numbers
  // are counters.
  void append(const store::Store& store, AnnotationLog& annotations, const OpenRangeChanges& ranges,
              const std::map<std::string, int64_t>& numbers);

  // The rows written so far have been removed from the store.
  void forget_rows();
  // Removes the texts of the store, which has no rows; those of repeated rows come back.
  void forget_names(store::Store& store);

  // States facts that were not known at the begin.
  void state(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);

  // Begins a new segment if the present one has reached a limit; removes the segments beyond the limits. While the
  // program has no free file descriptor the present segment goes on, as long as it alone is within the limits of all.
  void cut_if_due(store::Store& store, AnnotationLog& annotations);
  // Begins a new segment, if the journal has segments. `num_held`: of the buffers whose rows are in a later segment
  // although they are older, as far as it is known.
  void cut(store::Store& store, AnnotationLog& annotations, size_t num_held = 0);

  // Writes the last frame.
  void finish(const std::map<std::string, std::string>& texts, std::map<std::string, int64_t> numbers);
  void close();
  // Deletes the journal, if this object created it.
  void remove();
  void give_up(const std::string& why);

  const std::string& trouble() const { return trouble_.empty() && file_ ? file_->trouble() : trouble_; }

  // The number of the segment that is written; 0: the journal is one file. Any thread may ask.
  uint32_t segment_number() const { return number_.load(std::memory_order_acquire); }

 private:
  struct Closed {
    uint32_t number;
    uint64_t bytes;
    int64_t closed_ns;  // on CLOCK_MONOTONIC
    bool has_rows;
    bool has_work;  // of the GPU
    bool has_ends;  // of annotations in earlier segments
  };

  // That of a folder has less than PATH_MAX bytes; a longer name is refused by the system, not cut here.
  using FileName = std::array<char, PATH_MAX + 32>;

  // Allocates nothing: a journal that could not begin without memory is removed.
  FileName name_of(uint32_t number) const;
  void open(uint32_t number, std::unique_ptr<Journal> file);
  void write_head();
  // Writes what happened to annotations since the last call, and the rows and texts that were added to the store.
  void write_changes(const store::Store& store, AnnotationLog& annotations, const OpenRangeChanges& ranges,
                     const std::map<std::string, int64_t>& numbers);
  // The file of the next segment; none while the program has no free descriptor for it and the present one may go on.
  std::unique_ptr<Journal> next_file(bool may_go_on);
  bool is_within_limits_of_all() const;
  void cut_to(std::unique_ptr<Journal> next, store::Store& store, AnnotationLog& annotations, size_t num_held);
  void remove_old_segments();
  // Whether the oldest closed segment has the latest rows, or the latest work of the GPU. They stay until there are
  // others: one delivery of records can be larger than all that is kept. Segments with nothing of their own, which a
  // dump closes, are removed before them; but what comes after them, such as polls of the driver, must not be more than
  // all that is kept.
  bool has_latest_in_oldest() const;

  std::string path_;
  SegmentLimits limits_;
  bool is_folder_ours_ = false;
  std::string trouble_;
  const cupti::Library* library_ = nullptr;
  std::map<std::string, std::string> texts_;
  std::map<std::string, int64_t> numbers_;
  std::map<std::string, int64_t> counters_;  // of the last frame
  std::unique_ptr<Journal> file_;
  std::atomic<uint32_t> number_{0};
  uint64_t head_bytes_ = 0;  // of the segment: what it began with
  int64_t opened_ns_ = 0;
  int64_t begin_ns_ = 0;       // on CUPTI's clock, of a later segment
  uint32_t first_string_ = 0;  // of the segment
  std::deque<Closed> closed_;
  std::map<std::string, uint64_t> rows_before_;
  int64_t decoded_ns_ = 0;  // the latest start of a decoded row, in any segment
  RepeatedRows repeated_;
};

}  // namespace collector::capture
