// Pieces of text that are written repeatedly.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "write/output.h"

namespace collector::write {

// A text whose memory is a whole number of blocks, so that it can be copied block by block without a function call.
class Fragment {
 public:
  Fragment() = default;
  explicit Fragment(std::string_view text) { assign(text); }

  // Keeps the memory where it suffices.
  void assign(std::string_view text) {
    size_ = text.size();
    padded_.reserve(blocks_of(size_));
    padded_ = text;
    padded_.resize(blocks_of(size_));
  }

  bool empty() const { return size_ == 0; }

  // The number of bytes that put may write.
  size_t room() const { return padded_.size(); }

  // Writes the text and returns its end.
  char* put(char* to) const {
    const char* const from = padded_.data();
    for (size_t at = 0; at < size_; at += kBlock) std::memcpy(to + at, from + at, kBlock);
    return to + size_;
  }
  void append_to(Output& output) const { output.commit(put(output.reserve(room()))); }

 private:
  static constexpr size_t kBlock = 32;
  static constexpr size_t blocks_of(size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

  size_t size_ = 0;
  std::string padded_;
};

}  // namespace collector::write
