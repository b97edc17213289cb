// The whole names of a step's kernels, and other texts of its recording.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace collector::stepstats {

class KernelNames {
 public:
  // Adds the strings of a Capture message, a part of `whole`, which must outlive this object. Throws WireError.
  void add_capture(std::string_view capture, std::string_view whole);

  // The demangled name of a kernel's `name_id`; empty if the step does not contain it. Valid as long as this object.
  std::string_view whole_name(int64_t name_id);

  // The text with a number; empty if the step does not contain it.
  std::string_view text(int64_t id) const {
    return id < 0 || static_cast<uint64_t>(id) >= names_.size() ? std::string_view()
                                                                : names_[static_cast<size_t>(id)].given;
  }

 private:
  struct Name {
    std::string_view given;
    std::string_view whole = given;
    bool is_demangled = false;
  };
  std::vector<Name> names_;
  std::deque<std::string> demangled_;
};

}  // namespace collector::stepstats
