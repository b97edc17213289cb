#include "read/texts.h"

#include <cstring>

namespace collector::read {

uint32_t Texts::intern(std::string_view text) {
  const uint32_t hash = stepstats::NameTable::hash_of(text);
  return table_.insert_kept(text, hash, [this](std::string_view passing) { return keep(passing); }).number;
}

std::string_view Texts::keep(std::string_view text) {
  if (text.empty()) return "";
  if (text.size() > left_) {
    if (text.size() > kBlockBytes / 4) {  // a block of its own, so that no block stays half empty
      blocks_.push_back(std::make_unique<char[]>(text.size()));
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return {blocks_.back().get(), text.size()};
    }
    blocks_.push_back(std::make_unique<char[]>(kBlockBytes));
    next_ = blocks_.back().get();
    left_ = kBlockBytes;
  }
  std::memcpy(next_, text.data(), text.size());
  const std::string_view kept(next_, text.size());
  next_ += text.size();
  left_ -= text.size();
  return kept;
}

}  // namespace collector::read
