#include "capture/open_annotations.h"

#include <algorithm>

namespace collector::capture {

void OpenAnnotations::move_to_end(size_t index) {
  const auto at = entries_.begin() + static_cast<std::ptrdiff_t>(index);
  for (size_t i = size_; i-- > index;) unlink(i);
  std::rotate(at, at + 1, entries_.begin() + static_cast<std::ptrdiff_t>(size_));
  for (size_t i = index; i < size_; ++i) link(i);
}

bool OpenAnnotations::is_full(Owner owner) const {
  if (num_ranges_ >= kMostRanges) return true;
  return std::any_of(left_out_.begin(), left_out_.end(), [owner](const auto& each) { return each.first == owner; });
}

void OpenAnnotations::leave_out(Owner owner) {
  for (auto& [known, count] : left_out_) {
    if (known == owner) {
      ++count;
      return;
    }
  }
  left_out_.emplace_back(owner, 1);
}

bool OpenAnnotations::end_left_out(Owner owner) {
  const auto found =
      std::find_if(left_out_.begin(), left_out_.end(), [owner](const auto& each) { return each.first == owner; });
  if (found == left_out_.end()) return false;
  if (--found->second == 0) left_out_.erase(found);
  return true;
}

size_t OpenAnnotations::count_of(Owner owner) const {
  size_t count = slot_of(owner) < owners_.size() ? owners_[slot_of(owner)].count : 0;
  for (const auto& [known, left_out] : left_out_) count += known == owner ? left_out : 0;
  return count;
}

bool OpenAnnotations::has_within(uint64_t id, size_t begin) const {
  for (size_t i = begin; i < size_; ++i) {
    if (!is_program(entries_[i].owner) && !entries_[i].is_suspended && entries_[i].within_id == id) return true;
  }
  return false;
}

size_t OpenAnnotations::suspend_within(uint64_t id, size_t begin) {
  size_t count = 0;
  for (size_t i = begin; i < size_; ++i) {
    OpenAnnotation& entry = entries_[i];
    if (is_program(entry.owner) || entry.is_suspended || entry.within_id != id) continue;
    entry.is_suspended = true;
    entry.is_pushed = false;
    ++count;
  }
  num_suspended_ += count;
  return count;
}

size_t OpenAnnotations::resume_in_last() {
  const size_t last = size_ - 1;
  const uint64_t block = entries_[last].block;
  const uint64_t id = entries_[last].id;
  if (block == 0 || id == 0 || num_suspended_ == 0) return 0;
  size_t count = 0;
  // Behind the entries that are moved are those before the annotation that stay, the annotation, and those moved
  // before.
  for (size_t i = 0; i + count < last;) {
    OpenAnnotation& entry = entries_[i];
    if (!entry.is_suspended || entry.block != block) {
      ++i;
      continue;
    }
    entry.is_suspended = false;
    entry.within_id = id;
    move_to_end(i);
    ++count;
  }
  num_suspended_ -= count;
  return count;
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
