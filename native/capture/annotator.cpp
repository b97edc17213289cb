#include "capture/annotator.h"

#include "capture/capture_ranges.h"
#include "cupti/process_use.h"
#include "threads/thread_id.h"

namespace collector::capture {
namespace {

// The annotator for the ends of threads, which must not create one.
std::atomic<Annotator*> of_process{nullptr};

thread_local ThreadAnnotations this_thread;

// Whether this_thread has been destroyed: destructors and exit handlers that run later may still open and close ranges.
thread_local bool this_thread_has_ended = false;

// this_thread as soon as it is used, so that further uses are one access to the thread's memory; null after its end.
thread_local ThreadAnnotations* used_this_thread = nullptr;

// Null: the thread has ended.
ThreadAnnotations* annotations_of_this_thread() {
  if (used_this_thread == nullptr && !this_thread_has_ended) used_this_thread = &this_thread;
  return used_this_thread;
}

}  // namespace

ThreadAnnotations::~ThreadAnnotations() {
  this_thread_has_ended = true;
  used_this_thread = nullptr;
  Annotator* const annotator = of_process.load(std::memory_order_acquire);
  if (annotator != nullptr && open.size() > 0) annotator->leave_thread(open);
}

Annotator::Annotator(const OpenSession& session, AnnotationLog& annotations, RangeLog& ranges, Budget& budget)
    : session_(session), annotations_(annotations), ranges_(ranges), budget_(budget) {
  of_process.store(this, std::memory_order_release);
}

ThreadAnnotations* Annotator::of_this_thread() noexcept { return annotations_of_this_thread(); }

void Annotator::begin(Owner program) {
  program_.store(program, std::memory_order_relaxed);
  has_launch_names_.store(true, std::memory_order_relaxed);
  has_ranges_.store(true, std::memory_order_relaxed);
}

void Annotator::push(ThreadAnnotations& thread, Owner owner, const Place& place, uint32_t details_id,
                     const RangeTexts* range) {
  const auto depth = static_cast<uint16_t>(thread.open.size());
  OpenAnnotation& entry = thread.open.add(owner);
  annotations_.open(entry, place, thread.paths, session_.cupti_now(), thread.thread_id, depth, details_id, range);
  push_id(entry);
}

void Annotator::push_id(OpenAnnotation& entry) {
  if (!has_launch_names_.load(std::memory_order_relaxed)) return;
  const cupti::ActivityApi& api = session_.library().activity_api();
  entry.is_pushed = api.has_external_correlation() && api.push_external_id(entry.id) == cupti::Result::kSuccess;
}

void Annotator::pop(OpenAnnotations& open, size_t index, bool suspends) {
  const OpenAnnotation& entry = open[index];
  const uint64_t id = entry.id;
  const bool encloses = suspends && id != 0 && open.has_within(id, index + 1);
  const bool changes_cupti = (entry.is_pushed || encloses) && !cupti::out_of_use();
  // CUPTI has one stack for all owners: it is popped down to the entry, and the others are pushed again. This happens
  // also after the session has ended, because an id left on the stack would be attached to launches of a later one.
  for (size_t i = open.size(); changes_cupti && i-- > index;) {
    uint64_t popped = 0;
    if (!open[i].is_pushed) continue;
    session_.library().activity_api().pop_external_id(&popped);
  }
  if (encloses) ranges_.suspend(open.suspend_within(id, index + 1));
  for (size_t i = index + 1; changes_cupti && i < open.size(); ++i) {
    if (!open[i].is_pushed) continue;
    session_.library().activity_api().push_external_id(open[i].id);
  }
  open.remove(index);
  if (id != 0 && session_.active()) annotations_.close(id, session_.cupti_now());
}

// Ranges are not followed between sessions: those that were open when a session ended are forgotten in the next one.
void Annotator::join_session(ThreadAnnotations& thread) {
  const uint32_t number = session_.number();
  if (thread.session == number) return;
  thread.session = number;
  thread.thread_id = threads::this_thread_id();
  thread.open.forget_left_out();
  for (size_t i = thread.open.size(); i-- > 0;) {
    if (!is_program(thread.open[i].owner)) pop(thread.open, i);
  }
}

void Annotator::push_annotation(Owner owner, std::string_view path, uint32_t details_id, uint64_t block) {
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (thread == nullptr) return;
  const SampledTime time(budget_, false);
  if (!session_.active() || owner != program_.load(std::memory_order_relaxed)) {
    thread->open.add(owner);
    return;
  }
  join_session(*thread);
  OpenAnnotations& open = thread->open;
  push(*thread, owner, open.place_of(path, owner), details_id);
  open[open.size() - 1].given_path = path;
  open[open.size() - 1].block = block;
  if (open.num_ranges() == 0) return;
  for (size_t resumed = open.resume_in_last(); resumed > 0; --resumed) push_id(open[open.size() - resumed]);
}

void Annotator::pop_annotation(Owner owner, bool is_over) {
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (thread == nullptr) return;
  const SampledTime time(budget_, false);
  OpenAnnotations& open = thread->open;
  const size_t index = open.innermost_of(owner);
  if (index < open.size()) pop(open, index, !is_over);
}

int Annotator::push_range(Owner owner, const RangeTexts& texts) {
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().pushed(owner, texts.name, texts.domain);
  ThreadAnnotations* const thread = session_.active() ? annotations_of_this_thread() : nullptr;
  if (thread == nullptr) return kNotTracked;
  const SampledTime time(budget_, true);
  join_session(*thread);
  const size_t level = thread->open.count_of(owner);
  if (thread->open.is_full(owner)) {
    thread->open.leave_out(owner);
    ranges_.leave_out();
    return static_cast<int>(level);
  }
  if (!has_ranges_.load(std::memory_order_relaxed)) {
    thread->open.add(owner);  // its end must not close a range around it
    return static_cast<int>(level);
  }
  push(*thread, owner, thread->open.place_of_range(texts.name), 0, texts.is_name_alone() ? nullptr : &texts);
  return static_cast<int>(level);
}

int Annotator::pop_range(Owner owner) {
  const int level = pop_recorded_range(owner);
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().popped(owner);
  return level;
}

// Between sessions the end of a range of the last one is followed, as CUPTI has its id.
int Annotator::pop_recorded_range(Owner owner) {
  ThreadAnnotations* const thread = used_this_thread;
  if (thread == nullptr) return kNotTracked;  // it has opened nothing yet, or has ended
  OpenAnnotations& open = thread->open;
  if (!session_.active()) {
    const size_t stale = open.num_ranges() == 0 ? open.size() : open.innermost_of(owner);
    if (stale < open.size()) pop(open, stale);
    return kNotTracked;
  }
  const SampledTime time(budget_, true);
  join_session(*thread);
  if (!open.end_left_out(owner)) {
    const size_t index = open.innermost_of(owner);
    if (index == open.size()) return kNotTracked;
    pop(open, index);
  }
  return static_cast<int>(open.count_of(owner));
}

void Annotator::mark(const RangeTexts& texts) {
  if (!session_.active() || !has_ranges_.load(std::memory_order_relaxed)) return;
  const SampledTime time(budget_, true);
  ranges_.mark(texts, session_.cupti_now(), threads::this_thread_id());
}

uint64_t Annotator::start_recorded_range(const RangeTexts& texts) {
  if (!session_.active() || !has_ranges_.load(std::memory_order_relaxed)) return 0;
  const SampledTime time(budget_, true);
  return ranges_.start(texts, session_.cupti_now(), threads::this_thread_id());
}

uint64_t Annotator::start_range(const RangeTexts& texts) {
  const uint64_t id = start_recorded_range(texts);
  return CaptureRanges::watches_nvtx() ? CaptureRanges::instance().started(id, texts.name, texts.domain) : id;
}

bool Annotator::end_range(uint64_t id) {
  const bool is_known = session_.active() && ranges_.end(id, session_.cupti_now(), threads::this_thread_id());
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().ended(id);
  return is_known;
}

void Annotator::leave_thread(OpenAnnotations& open) noexcept {
  if (!session_.active()) return;
  try {
    const int64_t now = session_.cupti_now();
    for (size_t i = open.size(); i-- > 0;) {
      if (open[i].id != 0) annotations_.close(open[i].id, now);
    }
  } catch (...) {
    return;  // no memory: they end with the session
  }
}

}  // namespace collector::capture
