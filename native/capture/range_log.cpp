#include "capture/range_log.h"

#include <array>

#include "capture/annotations.h"

namespace collector::capture {
namespace {

std::array<uint32_t*, 4> texts_of(store::NvtxRangeRow& row) {
  return {&row.name_id, &row.domain_name_id, &row.category_name_id, &row.payload_text_id};
}

}  // namespace

void RangeLog::begin(bool forget) {
  const threads::MutexLock lock(mutex_);
  forget_ = forget;
  open_.clear();
  ended_.clear();
  text_ids_.clear();
  texts_.clear();
  shared_ids_.clear();
  first_shared_ = 0;
  num_rows_ = 0;
  lost_.store(0, std::memory_order_relaxed);
  suspended_.store(0, std::memory_order_relaxed);
  without_texts_.store(0, std::memory_order_relaxed);
}

uint32_t RangeLog::text_id(std::string_view text, bool& is_replaced) {
  if (const auto known = text_ids_.find(text); known != text_ids_.end()) return known->second;
  if (texts_.size() >= kMostTexts && text != AnnotationLog::kManyNames) {
    is_replaced = true;
    return text_id(AnnotationLog::kManyNames, is_replaced);
  }
  const auto id = static_cast<uint32_t>(texts_.size());
  text_ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

store::NvtxRangeRow RangeLog::row_of(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id) {
  store::NvtxRangeRow row{};
  bool is_replaced = texts.is_shared;
  row.start_ns = start_ns;
  row.name_id = text_id(texts.name, is_replaced);
  row.domain_name_id = text_id(texts.domain, is_replaced);
  row.category_name_id = text_id(texts.category, is_replaced);
  row.payload_text_id = text_id(texts.payload, is_replaced);
  row.color = texts.color;
  row.thread_id = thread_id;
  if (is_replaced) without_texts_.fetch_add(1, std::memory_order_relaxed);
  return row;
}

bool RangeLog::is_full() {
  if (num_rows_ < kMostRows) {
    ++num_rows_;
    return false;
  }
  lost_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void RangeLog::mark(const RangeTexts& texts, int64_t at_ns, uint32_t thread_id) {
  const threads::MutexLock lock(mutex_);
  if (is_full()) return;
  store::NvtxRangeRow row = row_of(texts, at_ns, thread_id);
  row.end_ns = at_ns;
  row.end_thread_id = thread_id;
  row.range_kind = static_cast<uint8_t>(cupti::NvtxRangeKind::kMark);
  ended_.push_back(row);
}

uint64_t RangeLog::start(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id) {
  const threads::MutexLock lock(mutex_);
  if (is_full()) return 0;
  store::NvtxRangeRow row = row_of(texts, start_ns, thread_id);
  row.range_kind = static_cast<uint8_t>(cupti::NvtxRangeKind::kStartEnd);
  open_.emplace(++last_id_, row);
  return last_id_;
}

bool RangeLog::end(uint64_t id, int64_t end_ns, uint32_t thread_id) {
  const threads::MutexLock lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return false;
  store::NvtxRangeRow& row = ended_.emplace_back(found->second);
  row.end_ns = end_ns;
  row.end_thread_id = thread_id;
  open_.erase(found);
  return true;
}

void RangeLog::forget_texts() {
  std::deque<std::string> before;
  before.swap(texts_);
  text_ids_.clear();
  bool is_replaced = false;
  const auto keep = [&](store::NvtxRangeRow& row) REQUIRES(mutex_) {
    for (uint32_t* const text : texts_of(row)) *text = text_id(before[*text], is_replaced);
  };
  try {
    for (auto& [id, row] : open_) keep(row);
    for (store::NvtxRangeRow& row : ended_) keep(row);
  } catch (...) {  // no memory
    lost_.fetch_add(open_.size() + ended_.size(), std::memory_order_relaxed);
    open_.clear();
    ended_.clear();
    throw;
  }
}

size_t RangeLog::move_to(store::Store& store, int64_t last_ns) {
  std::vector<store::NvtxRangeRow> rows;
  std::vector<const std::string*> new_texts;
  {
    const threads::MutexLock lock(mutex_);
    if (store.strings.first() != first_shared_) {
      first_shared_ = store.strings.first();
      shared_ids_.clear();
      forget_texts();
    }
    if (last_ns != 0) {
      for (auto& [id, row] : open_) {
        row.end_ns = last_ns;
        ended_.push_back(row);
      }
      open_.clear();
    }
    for (size_t id = shared_ids_.size(); id < texts_.size(); ++id) new_texts.push_back(&texts_[id]);
    rows.swap(ended_);
    if (forget_) num_rows_ -= rows.size();
  }
  size_t moved = 0;
  try {
    for (const std::string* const text : new_texts) shared_ids_.push_back(store.strings.intern(*text));
    for (; moved < rows.size(); ++moved) {
      store::NvtxRangeRow& row = rows[moved];
      for (uint32_t* const text : texts_of(row)) *text = shared_ids_[*text];
      store.append<store::NvtxRangeRow>() = row;
    }
  } catch (...) {  // no memory
    lost_.fetch_add(rows.size() - moved, std::memory_order_relaxed);
    throw;
  }
  return moved;
}

}  // namespace collector::capture
