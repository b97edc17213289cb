#include "capture/open_annotations.h"

#include <algorithm>

namespace collector::capture {

void OpenAnnotations::move_to_end(size_t index) {
  const auto at = entries_.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(at, at + 1, entries_.begin() + static_cast<std::ptrdiff_t>(size_));
}

Place OpenAnnotations::place_of(std::string_view path, Owner owner) const {
  if (num_ranges_ == 0) return {path};
  const size_t inner = innermost_of(owner);
  if (inner == size_) return place_of_range(path);
  const std::string& outer = entries_[inner].given_path;
  const bool is_inside = path.size() > outer.size() && path.substr(0, outer.size()) == outer &&
                         path[outer.size()] == '/' && !outer.empty();
  // Otherwise another task of this thread goes on, and the ranges of this one do not enclose it.
  return is_inside ? place_of_range(path.substr(outer.size() + 1)) : Place{path};
}

}  // namespace collector::capture
