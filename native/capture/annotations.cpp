#include "capture/annotations.h"

#include <utility>

namespace collector::capture {

// The high bits of an id are the session's number, the low bits the row's number + 1.
constexpr int kRowBits = 40;
constexpr uint64_t kRowMask = (uint64_t{1} << kRowBits) - 1;

void AnnotationLog::begin(bool follow) {
  const threads::MutexLock lock(mutex_);
  ++session_;
  rows_.clear();
  paths_.clear();
  follow_ = follow;
  num_reported_ = 0;
  changes_ = {};
}

uint64_t AnnotationLog::open(std::string_view path, int64_t start_ns, uint32_t thread_id, uint16_t depth,
                             uint32_t details_id) {
  const threads::MutexLock lock(mutex_);
  const uint64_t external_id = session_ << kRowBits | (rows_.size() + 1);
  store::AnnotationRow row{};  // its end_ns stays 0 while the annotation is open
  row.start_ns = start_ns;
  row.external_id = external_id;
  row.name_id = static_cast<uint32_t>(paths_.size());
  row.thread_id = thread_id;
  row.depth = depth;
  row.details_id = details_id;
  rows_.push_back(row);
  paths_.emplace_back(path);
  return external_id;
}

void AnnotationLog::close(uint64_t external_id, int64_t end_ns) {
  const threads::MutexLock lock(mutex_);
  const uint64_t row = (external_id & kRowMask) - 1;
  if (external_id >> kRowBits != session_ || row >= rows_.size()) return;
  rows_[row].end_ns = end_ns;
  if (follow_ && row < num_reported_) changes_.closed.emplace_back(row, end_ns);
}

void AnnotationLog::note_details(std::string_view details) {
  const threads::MutexLock lock(mutex_);
  if (follow_) changes_.details.emplace_back(details);
}

AnnotationChanges AnnotationLog::changes() {
  const threads::MutexLock lock(mutex_);
  AnnotationChanges changes = std::exchange(changes_, {});
  const auto first = static_cast<std::ptrdiff_t>(num_reported_);
  changes.opened.assign(rows_.begin() + first, rows_.end());
  changes.paths.assign(paths_.begin() + first, paths_.end());
  num_reported_ = rows_.size();
  return changes;
}

std::vector<store::AnnotationRow> AnnotationLog::take(int64_t end_ns, std::vector<std::string>& paths) {
  const threads::MutexLock lock(mutex_);
  ++session_;  // annotations that are closed from now on belong to no session
  for (store::AnnotationRow& row : rows_) {
    if (row.end_ns == 0) row.end_ns = end_ns;
  }
  paths = std::exchange(paths_, {});
  return std::exchange(rows_, {});
}

}  // namespace collector::capture
