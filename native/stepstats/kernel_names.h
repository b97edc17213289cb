// The whole names of a step's kernels, as its recording has them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace collector::convert {

class KernelNames {
 public:
  // Takes in the strings of a Capture message, a part of `whole`, which must outlive this. Throws WireError.
  void add_capture(std::string_view capture, std::string_view whole);

  // The name that a kernel's `name_id` stands for, demangled; empty where the step does not say. Lives as long as this.
  std::string_view whole_name(int64_t name_id);

 private:
  struct Name {
    std::string_view text;
    bool is_demangled = false;
  };
  std::vector<Name> names_;
  std::deque<std::string> demangled_;
};

}  // namespace collector::convert
