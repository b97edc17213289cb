// Annotates the launches of a program: follows in each thread the annotations (`annotate`) and NVTX ranges that are
// open, records them, and gives CUPTI the id of the innermost one, which attaches it to the launches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/annotations.h"
#include "capture/budget.h"
#include "capture/inlined_graphs.h"
#include "capture/open_annotations.h"
#include "capture/open_session.h"
#include "capture/range_log.h"
#include "capture/range_texts.h"

namespace collector::capture {

// The annotations of one thread, and its graphs.
struct ThreadAnnotations {
  ThreadAnnotations() = default;
  ThreadAnnotations(const ThreadAnnotations&) = delete;
  ThreadAnnotations& operator=(const ThreadAnnotations&) = delete;
  ~ThreadAnnotations();

  OpenAnnotations open;
  PathCache paths;
  InlinedGraphs inlined;
  uint32_t session = 0;    // its number when an annotation was last opened or closed here
  uint32_t thread_id = 0;  // in that session: a forked child, which may have one, has another id than its parent
};

// The process has one, because CUPTI has one stack of ids for each thread. Never destroyed, because threads may end at
// any time. It takes only the locks of the logs.
class Annotator {
 public:
  Annotator(const OpenSession& session, AnnotationLog& annotations, RangeLog& ranges, Budget& budget);
  ~Annotator() = delete;
  Annotator(const Annotator&) = delete;
  Annotator& operator=(const Annotator&) = delete;

  // --- Called by the session. ---

  // Begins a session, in which annotations of this owner are recorded: kProgram is for sessions of the program,
  // kRecordedProgram for those of others.
  void begin(Owner program);
  // From now on launches have no names, and NVTX ranges are not recorded.
  void leave_out_launch_names() { has_launch_names_.store(false, std::memory_order_relaxed); }
  void leave_out_ranges() { has_ranges_.store(false, std::memory_order_relaxed); }

  // --- Called by the program's threads. ---

  // Attaches `path` to every launch of this thread until the matching pop. Has no effect while no session is open, or
  // one that the owner is not for. `path` is complete but for the ranges around it.
  //
  // `block` is the number of the block that is entered or goes on, 0: unknown. NVTX ranges that were opened in the
  // block name nothing while another task of the thread goes on, for which it is popped with `is_over` false.
  void push_annotation(Owner owner, std::string_view path, uint32_t details_id = 0, uint64_t block = 0);
  void pop_annotation(Owner owner, bool is_over);

  // The same for a range of another owner, an NVTX domain, by its own name. Owners need not nest: a range that ends
  // inside those of others leaves them open. Both return the number of the owner's other open ranges in this thread, or
  // kNotTracked: no session is open, or none of the owner's ranges is open in it.
  static constexpr int kNotTracked = -2;
  int push_range(Owner owner, const RangeTexts& texts);
  int pop_range(Owner owner);

  // Marks, and ranges that begin in one place and end in another. The id of a range is 0 if it is not recorded.
  void mark(const RangeTexts& texts);
  uint64_t start_range(const RangeTexts& texts);
  bool end_range(uint64_t id);

  // What this thread has open; null: the thread has ended.
  static ThreadAnnotations* of_this_thread() noexcept;
  // Closes the annotations of a thread that ends.
  void leave_thread(OpenAnnotations& open) noexcept;

 private:
  void push(ThreadAnnotations& thread, Owner owner, const Place& place, uint32_t details_id,
            const RangeTexts* range = nullptr);
  // `suspends`: the ranges inside the entry name nothing until its block goes on.
  void pop(OpenAnnotations& open, size_t index, bool suspends = false);
  // Gives CUPTI the id of an entry, if it names launches.
  void push_id(OpenAnnotation& entry);
  int pop_recorded_range(Owner owner);
  uint64_t start_recorded_range(const RangeTexts& texts);
  // Begins the session on a thread, where this has not been done yet.
  void join_session(ThreadAnnotations& thread);

  const OpenSession& session_;
  AnnotationLog& annotations_;
  RangeLog& ranges_;
  Budget& budget_;
  std::atomic<bool> has_launch_names_{true};  // whether CUPTI still records the ids of annotations
  std::atomic<bool> has_ranges_{true};        // whether NVTX ranges are still recorded
  std::atomic<Owner> program_{kProgram};      // whose annotations are recorded
};

}  // namespace collector::capture
