// Pieces of text that are written again and again.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "write/output.h"

namespace collector::convert {

// A text whose memory is a whole number of blocks, so that it can be copied in blocks, without a call.
class Fragment {
 public:
  Fragment() = default;
  explicit Fragment(std::string_view text) : size_(text.size()), padded_(text) {
    padded_.resize((size_ + kBlock - 1) / kBlock * kBlock);
  }

  bool empty() const { return size_ == 0; }

  void AppendTo(Output& output) const {
    char* const to = output.Reserve(padded_.size());
    const char* const from = padded_.data();
    for (size_t at = 0; at < size_; at += kBlock) std::memcpy(to + at, from + at, kBlock);
    output.Commit(to + size_);
  }

 private:
  static constexpr size_t kBlock = 32;

  size_t size_ = 0;
  std::string padded_;
};

}  // namespace collector::convert
