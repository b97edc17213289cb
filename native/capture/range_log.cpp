#include "capture/range_log.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "capture/annotations.h"
#include "store/long_names.h"

namespace collector::capture {
namespace {

std::array<uint32_t*, 4> texts_of(store::NvtxRangeRow& row) {
  return {&row.name_id, &row.domain_name_id, &row.category_name_id, &row.payload_text_id};
}

template <typename Value>
void add_to(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

}  // namespace

void RangeLog::begin(bool follow, bool forget) {
  const threads::MutexLock lock(mutex_);
  follow_ = follow;
  forget_ = forget;
  open_.clear();
  started_.clear();
  stated_ended_.clear();
  changes_ = {};
  ended_.clear();
  text_ids_.clear();
  texts_.clear();
  num_text_bytes_ = 0;
  shared_ids_.clear();
  first_shared_ = 0;
  num_rows_ = 0;
  lost_.store(0, std::memory_order_relaxed);
  suspended_.store(0, std::memory_order_relaxed);
  without_texts_.store(0, std::memory_order_relaxed);
  names_cut_.store(0, std::memory_order_relaxed);
}

uint32_t RangeLog::text_id(std::string_view text, Lack& lack) {
  if (const auto known = text_ids_.find(text); known != text_ids_.end()) return known->second;
  if (text.size() > store::kLongestName) {
    lack.is_cut = true;
    return text_id(store::cut_name(text), lack);
  }
  const bool is_too_much = texts_.size() >= kMostTexts || num_text_bytes_ + text.size() > kMostTextBytes;
  if (is_too_much && text != AnnotationLog::kManyNames) {
    lack.is_replaced = true;
    return text_id(AnnotationLog::kManyNames, lack);
  }
  const auto id = static_cast<uint32_t>(texts_.size());
  text_ids_.emplace(texts_.emplace_back(text), id);
  num_text_bytes_ += text.size();
  return id;
}

store::NvtxRangeRow RangeLog::row_of(const RangeTexts& texts, int64_t start_ns, uint32_t thread_id) {
  store::NvtxRangeRow row{};
  Lack lack;
  lack.is_replaced = texts.is_shared;
  row.start_ns = start_ns;
  row.name_id = text_id(texts.name, lack);
  row.domain_name_id = text_id(texts.domain, lack);
  row.category_name_id = text_id(texts.category, lack);
  row.payload_text_id = text_id(texts.payload, lack);
  row.color = texts.color;
  row.thread_id = thread_id;
  if (lack.is_replaced) without_texts_.fetch_add(1, std::memory_order_relaxed);
  if (lack.is_cut) names_cut_.fetch_add(1, std::memory_order_relaxed);
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
  open_.emplace(++last_id_, OpenRange{row});
  if (follow_) started_.push_back(last_id_);
  return last_id_;
}

bool RangeLog::end(uint64_t id, int64_t end_ns, uint32_t thread_id) {
  const threads::MutexLock lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return false;
  add_ended(id, found->second, end_ns, thread_id);
  open_.erase(found);
  return true;
}

void RangeLog::add_ended(uint64_t id, const OpenRange& range, int64_t end_ns, uint32_t end_thread_id) {
  if (range.is_stated) stated_ended_.push_back(id);
  store::NvtxRangeRow& row = ended_.emplace_back(range.row);
  row.end_ns = end_ns;
  row.end_thread_id = end_thread_id;
}

void RangeLog::state_open(OpenRangeChanges& changes) {
  for (const uint64_t id : started_) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    changes.opened_ids.push_back(id);
    changes.opened.push_back(found->second.row);
    found->second.is_stated = true;
  }
  started_.clear();
}

void RangeLog::state_open_again() {
  const threads::MutexLock lock(mutex_);
  started_.clear();
  for (const auto& [id, range] : open_) started_.push_back(id);
  std::sort(started_.begin(), started_.end(), std::greater<>());
  if (started_.size() > kMostStatedAgain) started_.resize(kMostStatedAgain);
}

OpenRangeChanges RangeLog::take_open_changes() { return std::exchange(changes_, {}); }

void RangeLog::forget_texts() {
  std::deque<std::string> before;
  before.swap(texts_);
  text_ids_.clear();
  num_text_bytes_ = 0;
  Lack lack;
  const auto keep = [&](store::NvtxRangeRow& row) REQUIRES(mutex_) {
    for (uint32_t* const text : texts_of(row)) *text = text_id(before[*text], lack);
  };
  try {
    for (auto& [id, range] : open_) keep(range.row);
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
  OpenRangeChanges changes;
  std::vector<const std::string*> new_texts;
  {
    const threads::MutexLock lock(mutex_);
    if (store.strings.first() != first_shared_) {
      first_shared_ = store.strings.first();
      shared_ids_.clear();
      forget_texts();
    }
    if (last_ns != 0) {
      for (const auto& [id, range] : open_) add_ended(id, range, last_ns, 0);
      open_.clear();
    }
    state_open(changes);
    changes.ended_ids.swap(stated_ended_);
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
    for (store::NvtxRangeRow& row : changes.opened) {
      for (uint32_t* const text : texts_of(row)) *text = shared_ids_[*text];
    }
  } catch (...) {  // no memory
    lost_.fetch_add(rows.size() - moved, std::memory_order_relaxed);
    throw;
  }
  const size_t num_opened = changes.opened.size();
  add_to(changes_.opened_ids, changes.opened_ids);
  add_to(changes_.opened, changes.opened);
  add_to(changes_.ended_ids, changes.ended_ids);
  return moved + num_opened;
}

}  // namespace collector::capture
