// Texts of a file, one copy of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stepstats/name_table.h"

namespace collector::read {

// Numbers distinct texts from 0 on in the order of their first occurrence, and keeps a copy of each.
class Texts {
 public:
  uint32_t intern(std::string_view text);
  std::string_view operator[](uint32_t number) const { return table_[number]; }
  size_t size() const { return table_.size(); }

 private:
  static constexpr size_t kBlockBytes = size_t{64} << 10;

  std::string_view keep(std::string_view text);

  stepstats::NameTable table_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace collector::read
