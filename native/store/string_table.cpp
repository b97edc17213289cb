#include "store/string_table.h"

#include <cstring>

namespace collector::store {

uint32_t StringTable::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
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
  line = {text, texts_[id].c_str(), id, buffer_};
  return id;
}

void StringTable::clear() {
  ids_ = {};
  texts_ = {};
  cache_.assign(kCacheLines, CacheLine{});
  intern({});
}

}  // namespace collector::store
