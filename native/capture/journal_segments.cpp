#include "capture/journal_segments.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include "capture/anchor.h"
#include "capture/clocks.h"

namespace collector::capture {
namespace {

// The bytes of the ended annotations that a segment repeats, if it has no limit itself.
constexpr size_t kMostRepeatedBytes = size_t{4} << 20;

template <typename Amount>
Amount segment_of_ring(Amount all) {
  constexpr Amount kSegments = 8;
  return all / kSegments + (all % kSegments == 0 ? 0 : 1);  // 0 would be no limit
}

bool has_work_of_gpu(const Journal& file) {
  const auto& rows = file.num_rows();
  return rows.count(store::Table<store::KernelRow>::kName) + rows.count(store::Table<store::MemcpyRow>::kName) +
             rows.count(store::Table<store::MemsetRow>::kName) !=
         0;
}

}  // namespace

SegmentLimits SegmentLimits::of_ring(uint64_t bytes, int64_t ns) {
  return {segment_of_ring(bytes), segment_of_ring(ns), bytes, ns};
}

JournalSegments::JournalSegments(std::string path, const SegmentLimits& limits)
    : path_(std::move(path)), limits_(limits) {
  if (!limits_.has_segments()) {
    file_ = std::make_unique<Journal>(path_);
    return;
  }
  is_folder_ours_ = ::mkdir(path_.c_str(), 0755) == 0;
  if (!is_folder_ours_) {
    trouble_ = std::strerror(errno);
    return;
  }
  try {
    open(1, std::make_unique<Journal>(name_of(1).data()));
  } catch (...) {  // no memory
    ::rmdir(path_.c_str());
    throw;
  }
}

JournalSegments::FileName JournalSegments::name_of(uint32_t number) const {
  FileName name{};
  std::snprintf(name.data(), name.size(), "%s/%06u.journal", path_.c_str(), number);
  return name;
}

void JournalSegments::open(uint32_t number, std::unique_ptr<Journal> file) {
  file_ = std::move(file);
  file_->keep_spare();
  opened_ns_ = clock_ns(CLOCK_MONOTONIC);
  number_.store(number, std::memory_order_release);
}

void JournalSegments::begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
                            const std::map<std::string, int64_t>& numbers) {
  library_ = &library;
  library.keep_callback_names();
  texts_ = texts;
  numbers_ = numbers;
  if (file_) write_head();
}

void JournalSegments::write_head() {
  std::map<std::string, int64_t> all = numbers_;
  all.insert(counters_.begin(), counters_.end());
  if (limits_.has_segments()) all["segment.number"] = segment_number();
  if (begin_ns_ != 0) all["segment.begin_ns"] = begin_ns_;
  if (first_string_ != 0) all["segment.first_string"] = first_string_;
  for (const auto& [table, rows] : rows_before_) all["segment.rows_before." + table] = static_cast<int64_t>(rows);
  file_->begin(*library_, texts_, all);
  head_bytes_ = file_->num_bytes();
}

void JournalSegments::append(const store::Store& store, AnnotationLog& annotations, const OpenRangeChanges& ranges,
                             const std::map<std::string, int64_t>& numbers) {
  if (!file_) return;
  if (limits_.has_segments()) {
    repeated_.notice(store);
    counters_ = numbers;
  }
  const bool begins_part = annotations.has_long_part();
  if (begins_part) annotations.begin_part();
  write_changes(store, annotations, ranges, numbers);
  decoded_ns_ = std::max(decoded_ns_, file_->decoded_ns());
  repeated_.forget_ended(decoded_ns_);
  if (begins_part) annotations.to_repeat(repeated_, 0);
}

void JournalSegments::write_changes(const store::Store& store, AnnotationLog& annotations,
                                    const OpenRangeChanges& ranges, const std::map<std::string, int64_t>& numbers) {
  const OpenRangeChanges no_ranges;
  for (bool is_first = true, has_more = true; has_more; is_first = false) {
    const AnnotationChanges changes = annotations.changes();
    if (limits_.has_segments()) {
      repeated_.notice(changes.opened);
      repeated_.notice(changes.left);
    }
    file_->append(store, changes, is_first ? ranges : no_ranges, numbers);
    has_more = changes.has_more;
  }
}

void JournalSegments::forget_rows() {
  if (file_) file_->forget_rows();
}

void JournalSegments::forget_names(store::Store& store) {
  std::deque<store::DeviceRow> devices;
  devices.swap(repeated_.devices);  // without memory there are none: their names are gone
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const store::DeviceRow& row : devices) names.push_back(store.strings[row.name_id]);
  store.strings.forget();
  auto name = names.begin();
  for (store::DeviceRow& row : devices) row.name_id = store.strings.intern(*name++);
  devices.swap(repeated_.devices);
}

void JournalSegments::state(const std::map<std::string, std::string>& texts,
                            const std::map<std::string, int64_t>& numbers) {
  for (const auto& [name, text] : texts) texts_[name] = text;
  for (const auto& [name, number] : numbers) numbers_[name] = number;
  if (file_) file_->state(texts, numbers);
}

void JournalSegments::cut_if_due(store::Store& store, AnnotationLog& annotations) {
  if (!limits_.has_segments() || !file_ || !trouble().empty()) return;
  const bool has_rows = !file_->num_rows().empty();
  const bool is_full = limits_.segment_bytes != 0 && file_->num_bytes() - head_bytes_ >= limits_.segment_bytes;
  const bool is_old = limits_.segment_ns != 0 && clock_ns(CLOCK_MONOTONIC) - opened_ns_ >= limits_.segment_ns;
  if (is_full || (is_old && has_rows)) {
    if (std::unique_ptr<Journal> next = next_file(is_within_limits_of_all())) {
      return cut_to(std::move(next), store, annotations, 0);
    }
  }
  remove_old_segments();
}

void JournalSegments::cut(store::Store& store, AnnotationLog& annotations, size_t num_held) {
  if (!limits_.has_segments() || !file_ || !trouble().empty()) return;
  cut_to(next_file(false), store, annotations, num_held);
}

std::unique_ptr<Journal> JournalSegments::next_file(bool may_go_on) {
  file_->free_spare();
  auto next = std::make_unique<Journal>(name_of(segment_number() + 1).data());
  if (!next->lacks_descriptor() || !may_go_on) return next;
  file_->keep_spare();
  return nullptr;
}

bool JournalSegments::is_within_limits_of_all() const {
  const bool is_small = limits_.total_bytes == 0 || file_->num_bytes() < limits_.total_bytes;
  return is_small && (limits_.total_ns == 0 || clock_ns(CLOCK_MONOTONIC) - opened_ns_ < limits_.total_ns);
}

void JournalSegments::cut_to(std::unique_ptr<Journal> next, store::Store& store, AnnotationLog& annotations,
                             size_t num_held) {
  // A segment has the texts of its rows, and no others: the next one begins with a part of the session's texts.
  annotations.begin_part();
  write_changes(store, annotations, {}, {});
  const RepeatedAnnotations repeated =
      annotations.to_repeat(repeated_, limits_.segment_bytes != 0 ? limits_.segment_bytes : kMostRepeatedBytes);
  std::map<std::string, int64_t> numbers = counters_;
  numbers["segment.closed"] = 1;
  numbers["segment.first_ns"] = file_->first_ns();
  numbers["segment.last_ns"] = file_->last_ns();
  if (num_held > 0) numbers["segment.buffers_held"] = static_cast<int64_t>(num_held);
  if (const std::optional<Anchor> now = read_clocks(*library_)) {
    begin_ns_ = now->cupti_ns;
    numbers["clock.cupti_stop_ns"] = now->cupti_ns;
    numbers["clock.wall_stop_ns"] = now->wall_ns;
  }
  // Its file is there before this one says that it is followed by another: a reader sees if that could not be begun.
  if (!next->trouble().empty()) return give_up(next->trouble());
  file_->state({}, numbers);
  file_->close();
  if (!trouble().empty()) return;
  for (const auto& [table, rows] : file_->num_rows()) rows_before_[std::string(table)] += rows;
  closed_.push_back({segment_number(), file_->num_bytes(), clock_ns(CLOCK_MONOTONIC), !file_->num_rows().empty(),
                     has_work_of_gpu(*file_), file_->has_ends()});
  open(segment_number() + 1, std::move(next));
  forget_names(store);
  first_string_ = store.strings.first();
  write_head();
  file_->repeat(store, repeated, repeated_);
  head_bytes_ = file_->num_bytes();
  remove_old_segments();
}

void JournalSegments::remove_old_segments() {
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  // Room is left for the segment that is being written.
  uint64_t bytes = file_->num_bytes() + limits_.segment_bytes;
  for (const Closed& segment : closed_) bytes += segment.bytes;
  while (!closed_.empty()) {
    const bool is_old = limits_.total_ns != 0 && now - closed_.front().closed_ns > limits_.total_ns;
    const bool is_beyond = limits_.total_bytes != 0 && bytes > limits_.total_bytes;
    if (!is_old && !is_beyond) return;
    auto removed = closed_.begin();
    if (!is_old && has_latest_in_oldest()) {
      removed = std::find_if(std::next(removed), closed_.end(),
                             [](const Closed& each) { return !each.has_rows && !each.has_ends; });
      if (removed == closed_.end()) {
        const uint64_t later_bytes = bytes - closed_.front().bytes - limits_.segment_bytes;
        if (later_bytes <= limits_.total_bytes) return;
        removed = closed_.begin();
      }
    }
    bytes -= removed->bytes;
    ::unlink(name_of(removed->number).data());
    closed_.erase(removed);
  }
}

bool JournalSegments::has_latest_in_oldest() const {
  const auto has_rows = [](const Closed& segment) { return segment.has_rows; };
  const auto has_work = [](const Closed& segment) { return segment.has_work; };
  const auto later = std::next(closed_.begin());
  if (closed_.front().has_rows && file_->num_rows().empty() && std::none_of(later, closed_.end(), has_rows)) {
    return true;
  }
  return closed_.front().has_work && !has_work_of_gpu(*file_) && std::none_of(later, closed_.end(), has_work);
}

void JournalSegments::finish(const std::map<std::string, std::string>& texts, std::map<std::string, int64_t> numbers) {
  if (!file_) return;
  numbers["journal.ended"] = 1;
  if (limits_.has_segments()) {
    numbers["segment.first_ns"] = file_->first_ns();
    numbers["segment.last_ns"] = file_->last_ns();
  }
  file_->state(texts, numbers);
}

void JournalSegments::close() {
  if (file_) file_->close();
}

void JournalSegments::remove() {
  if (file_) file_->remove();
  if (!is_folder_ours_) return;
  for (const Closed& segment : closed_) ::unlink(name_of(segment.number).data());
  closed_.clear();
  ::unlink(name_of(segment_number() + 1).data());  // one that could not be begun
  ::rmdir(path_.c_str());
  is_folder_ours_ = false;
}

void JournalSegments::give_up(const std::string& why) {
  if (file_) file_->give_up(why);
  trouble_ = why;
}

}  // namespace collector::capture
