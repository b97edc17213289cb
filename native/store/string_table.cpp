#include "store/string_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace collector::store {
namespace {

// The memory of a text beside its characters, roughly.
constexpr size_t kBytesBeside = 96;

}  // namespace

uint32_t StringTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = first_ + static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  num_bytes_ += kBytesBeside + text.size();
  return id;
}

uint32_t StringTable::confirm_address(const char* text) {
  if (text == nullptr) return 0;
  CacheLine& line = cache_[line_of(text)];
  if (line.address == text && std::strcmp(line.text, text) == 0) {
    line.buffer = buffer_;
    return line.id;
  }
  const uint32_t id = intern(text);
  line = {text, (*this)[id].c_str(), id, buffer_};
  return id;
}

void StringTable::forget() {
  const uint32_t next = first_ + static_cast<uint32_t>(texts_.size());
  if (next > kMostForgotten) return;
  clear();
  first_ = next;  // of a place that no row refers to: the empty text stays number 0
}

// Allocates nothing: a recording is also removed when there is no memory left.
void StringTable::clear() noexcept {
  std::unordered_map<std::string_view, uint32_t>().swap(ids_);  // gives its memory back
  texts_.erase(std::next(texts_.begin()), texts_.end());        // the empty text stays
  std::fill(cache_.begin(), cache_.end(), CacheLine{});
  first_ = 0;
  num_bytes_ = 0;
}

}  // namespace collector::store
