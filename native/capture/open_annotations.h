// The annotations that a thread has open, innermost last: those of the program (`annotate`) and the ranges of each NVTX
// domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collector::capture {

// Who closes an annotation. Each owner closes its own in reverse order, but not those of others.
using Owner = uint32_t;
// The program, by `annotate`: in a session that it opened, and in a recording that others may open at any time. Their
// numbers of details differ. All other owners are domains of NVTX.
inline constexpr Owner kProgram = 0;
inline constexpr Owner kRecordedProgram = UINT32_MAX;
constexpr bool is_program(Owner owner) { return owner == kProgram || owner == kRecordedProgram; }

struct OpenAnnotation {
  uint64_t id = 0;       // in AnnotationLog; 0: not recorded
  uint32_t path_id = 0;  // likewise
  Owner owner = kProgram;
  bool is_pushed = false;  // whether CUPTI has the id
  // Of a range: whether the annotation that it was opened in is not open now, because another task of the thread goes
  // on. Meanwhile the range names nothing: its path has the name of that annotation.
  bool is_suspended = false;
  // Of the program's annotations: the number of its block, 0: unknown. Of ranges: that of the annotation around it.
  uint64_t block = 0;
  uint64_t within_id = 0;  // of a range: the id of the annotation around it, 0: there is none
  size_t owners_next = 0;  // the index of the owner's next outer entry, plus 1; 0: there is none
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
    uint64_t block = 0;
    uint64_t within_id = 0;
    if (const OpenAnnotation* const around = is_program(owner) ? nullptr : naming()) {
      block = around->block;
      within_id = is_program(around->owner) ? around->id : around->within_id;
    }
    if (size_ == entries_.size()) entries_.emplace_back();
    if (slot_of(owner) >= owners_.size()) owners_.resize(slot_of(owner) + 1);
    OpenAnnotation& entry = entries_[size_++];
    entry.id = 0;
    entry.path_id = 0;
    entry.owner = owner;
    entry.is_pushed = false;
    entry.is_suspended = false;
    entry.block = block;
    entry.within_id = within_id;
    if (is_program(owner)) {
      entry.given_path.clear();
    } else {
      ++num_ranges_;
    }
    link(size_ - 1);
    return entry;
  }

  // The largest number of ranges that a thread can have open. A program that forgets to close them opens more and more,
  // in a loop: those beyond it are left out. They are the innermost ones, so that the next ends of their owner are
  // theirs.
  static constexpr size_t kMostRanges = 4096;
  // Whether the owner's next range is to be left out.
  bool is_full(Owner owner) const;
  void leave_out(Owner owner);
  // The end of a range that was left out; false: the owner has none.
  bool end_left_out(Owner owner);
  void forget_left_out() { left_out_.clear(); }

  void remove(size_t index) {
    if (!is_program(entries_[index].owner)) --num_ranges_;
    if (entries_[index].is_suspended) --num_suspended_;
    if (index + 1 != size_) move_to_end(index);
    unlink(--size_);
  }

  // The index of the owner's innermost entry; size() if it has none.
  size_t innermost_of(Owner owner) const {
    const size_t slot = slot_of(owner);
    const size_t innermost = slot < owners_.size() ? owners_[slot].innermost : 0;
    return innermost == 0 ? size_ : innermost - 1;
  }
  // The innermost entry that names launches; null: there is none.
  const OpenAnnotation* naming() const {
    for (size_t i = size_; i-- > 0;) {
      if (entries_[i].id != 0 && !entries_[i].is_suspended) return &entries_[i];
    }
    return nullptr;
  }

  // Whether one of the ranges from `begin` on was opened in the annotation of this id.
  bool has_within(uint64_t id, size_t begin) const;
  // Suspends the ranges from `begin` on that were opened in the annotation of this id; returns their number.
  size_t suspend_within(uint64_t id, size_t begin);

  // Puts the suspended ranges of a block behind its annotation, which has just been added and recorded again; returns
  // their number. They are the innermost entries then.
  size_t resume_in_last();

  // The number of the owner's entries, and of its ranges that were left out.
  size_t count_of(Owner owner) const;

  // `path` is complete with respect to the owner's annotations; the ranges around them are put before it.
  Place place_of(std::string_view path, Owner owner) const;
  Place place_of_range(std::string_view name) const {
    const OpenAnnotation* const outer = naming();
    return outer == nullptr ? Place{name} : Place{name, outer->id, outer->path_id};
  }

 private:
  // The entries of one owner are a list, so that a program which leaves many ranges open does not pay for them in each
  // call.
  struct OwnersEntries {
    size_t innermost = 0;  // its index plus 1; 0: the owner has none
    size_t count = 0;
  };
  static size_t slot_of(Owner owner) { return owner == kRecordedProgram ? 0 : size_t{owner} + 1; }
  void link(size_t index) {
    OwnersEntries& owners = owners_[slot_of(entries_[index].owner)];
    entries_[index].owners_next = std::exchange(owners.innermost, index + 1);
    ++owners.count;
  }
  // Of its owner's innermost entry.
  void unlink(size_t index) {
    OwnersEntries& owners = owners_[slot_of(entries_[index].owner)];
    owners.innermost = entries_[index].owners_next;
    --owners.count;
  }
  void move_to_end(size_t index);

  std::vector<OpenAnnotation> entries_;
  std::vector<OwnersEntries> owners_;  // by slot_of; domains have small numbers
  size_t size_ = 0;
  size_t num_ranges_ = 0;
  size_t num_suspended_ = 0;
  std::vector<std::pair<Owner, size_t>> left_out_;  // numbers of ranges, above 0
};

}  // namespace collector::capture
