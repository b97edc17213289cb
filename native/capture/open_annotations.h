// The annotations that a thread has open, innermost last: those of the program (`annotate`) and the ranges of each NVTX
// domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector::capture {

// Who closes an annotation. Each owner closes its own in reverse order, but not those of others.
using Owner = uint32_t;
// The program, by `annotate`: in a session that it opened, and in a recording that others may open at any time. Their
// numbers of details differ. All other owners are domains of NVTX.
inline constexpr Owner kProgram = 0;
inline constexpr Owner kRecordedProgram = UINT32_MAX;
inline constexpr bool is_program(Owner owner) { return owner == kProgram || owner == kRecordedProgram; }

struct OpenAnnotation {
  uint64_t id = 0;       // in AnnotationLog; 0: not recorded
  uint32_t path_id = 0;  // likewise
  Owner owner = kProgram;
  bool is_pushed = false;  // whether CUPTI has the id
  std::string given_path;  // of the program's annotations: the path as the program gave it
};

// The place of a new annotation: its name inside an open annotation.
struct Place {
  std::string_view name;
  uint64_t outer_id = 0;  // 0: outermost
  uint32_t outer_path_id = 0;
};

// Belongs to one thread. Closed entries keep their memory for the next ones.
class OpenAnnotations {
 public:
  size_t size() const { return size_; }
  size_t num_ranges() const { return num_ranges_; }  // those that are not the program's
  OpenAnnotation& operator[](size_t i) { return entries_[i]; }

  // A new innermost entry.
  OpenAnnotation& add(Owner owner) {
    if (size_ == entries_.size()) entries_.emplace_back();
    OpenAnnotation& entry = entries_[size_++];
    entry.id = 0;
    entry.path_id = 0;
    entry.owner = owner;
    entry.is_pushed = false;
    if (is_program(owner)) {
      entry.given_path.clear();
    } else {
      ++num_ranges_;
    }
    return entry;
  }

  void remove(size_t index) {
    if (!is_program(entries_[index].owner)) --num_ranges_;
    if (index + 1 != size_) move_to_end(index);
    --size_;
  }

  // The index of the owner's innermost entry; size() if it has none.
  size_t innermost_of(Owner owner) const {
    for (size_t i = size_; i-- > 0;) {
      if (entries_[i].owner == owner) return i;
    }
    return size_;
  }
  // The number of the owner's entries.
  size_t count_of(Owner owner) const {
    size_t count = 0;
    for (size_t i = 0; i < size_; ++i) count += entries_[i].owner == owner ? 1 : 0;
    return count;
  }

  // `path` is complete with respect to the owner's annotations; the ranges around them are put before it.
  Place place_of(std::string_view path, Owner owner) const;
  Place place_of_range(std::string_view name) const {
    size_t outer = size_;
    while (outer > 0 && entries_[outer - 1].id == 0) --outer;  // not recorded
    if (outer == 0) return {name};
    return {name, entries_[outer - 1].id, entries_[outer - 1].path_id};
  }

 private:
  void move_to_end(size_t index);

  std::vector<OpenAnnotation> entries_;
  size_t size_ = 0;
  size_t num_ranges_ = 0;
};

}  // namespace collector::capture
