#include "capture/annotations.h"

#include <utility>

namespace collector::capture {

// An id is the session's number above, the row's number + 1 below.
constexpr int kRowBits = 40;
constexpr uint64_t kRowMask = (uint64_t{1} << kRowBits) - 1;

void AnnotationLog::begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++session_;
  rows_.clear();
  paths_.clear();
}

uint64_t AnnotationLog::open(std::string_view path, int64_t start_ns, uint32_t thread_id, uint16_t depth,
                             uint32_t details_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t external_id = session_ << kRowBits | (rows_.size() + 1);
  rows_.push_back({start_ns, 0, external_id, static_cast<uint32_t>(paths_.size()), thread_id, depth, details_id});
  paths_.emplace_back(path);
  return external_id;
}

void AnnotationLog::close(uint64_t external_id, int64_t end_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t row = (external_id & kRowMask) - 1;
  if (external_id >> kRowBits != session_ || row >= rows_.size()) return;
  rows_[row].end_ns = end_ns;
}

std::vector<store::AnnotationRow> AnnotationLog::take(int64_t end_ns, std::vector<std::string>& paths) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++session_;  // what is closed from now on belongs to no session
  for (store::AnnotationRow& row : rows_) {
    if (row.end_ns == 0) row.end_ns = end_ns;
  }
  paths = std::exchange(paths_, {});
  return std::exchange(rows_, {});
}

}  // namespace collector::capture
