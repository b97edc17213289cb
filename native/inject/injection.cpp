#include "inject/injection.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "capture/capture_ranges.h"
#include "capture/clocks.h"
#include "capture/session.h"
#include "cupti/failure.h"
#include "cupti/process_use.h"
#include "inject/control_server.h"
#include "inject/run_options.h"
#include "nvtx/copies.h"
#include "nvtx/handler.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"
#include "threads/patient_lock.h"
#include "threads/signals_blocked.h"

namespace collector::inject {
namespace {

using capture::Session;
using cupti::FailureKind;

constexpr const char* kInjectionVariable = "CUDA_INJECTION64_PATH";
constexpr int64_t kEndTimeout = 5'000 * capture::kMillisecond;

// Writes to standard error. On a closed pipe nothing is written, and the SIGPIPE of that does not reach the program.
void write_error(const char* text, size_t left) {
  threads::without_signal(SIGPIPE, [&] {
    while (left > 0) {
      const ssize_t written = ::write(STDERR_FILENO, text, left);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      text += written;
      left -= static_cast<size_t>(written);
    }
  });
}

// One line on standard error. The program's own buffers are not touched, and nothing is allocated.
void report(const char* result, const char* cause, const char* remedy = "") {
  std::array<char, 2048> line{};
  const int length = std::snprintf(line.data(), line.size() - 1, "collector: process %d is %s: %s%s%s",
                                   static_cast<int>(::getpid()), result, cause, *remedy == '\0' ? "" : ". ", remedy);
  if (length < 0) return;
  size_t left = std::min(static_cast<size_t>(length), line.size() - 2);
  line[left++] = '\n';
  write_error(line.data(), left);
}

constexpr const char* kNotTraced = "not traced";
constexpr const char* kTracedInPart = "traced only in part";

void end_at_exit();

// The session of this process: it may begin and end on a thread of ours, and ends with the process at the latest.
class Injection {
 public:
  explicit Injection(RunOptions options) : options_(std::move(options)) {}

  // Begins, unless a session that the program or `collector attach` has opened is in the way. Returns the failure.
  std::optional<cupti::Failure> begin() EXCLUDES(mutex_) {
    const threads::MutexLock lock(mutex_);
    is_over_ = is_over_ || cupti::out_of_use();  // the process ends
    if (is_over_) return std::nullopt;
    options_.start.journal = new_journal(options_.folder);
    options_.start.end_at_exit = end_at_exit;
    std::optional<cupti::Failure> failure = Session::instance().start(options_.start);
    is_over_ = failure && failure->kind != FailureKind::kAlreadyActive;
    return failure;
  }

  // Begins when the session that is in the way has ended.
  void begin_when_possible(std::optional<cupti::Failure> failure) EXCLUDES(mutex_) {
    constexpr int64_t kPause = 5 * capture::kMillisecond;
    if (failure && failure->kind == FailureKind::kAlreadyActive) {
      report(kTracedInPart, failure->cause.c_str(), "The recording begins when that has ended");
    }
    for (; failure && failure->kind == FailureKind::kAlreadyActive; failure = begin()) {
      while (Session::instance().active()) pause(kPause);
    }
    if (failure) report(kNotTraced, failure->cause.c_str(), failure->remedy.c_str());
  }

  void end() EXCLUDES(mutex_) {
    if (::getpid() != process_id_) return;  // a fork: the session is the parent's, and the lock may be held for ever
    const threads::MutexLock lock(mutex_);
    if (std::exchange(is_over_, true)) return;
    Session& session = Session::instance();
    if (wants_nvtx_ && session.active()) note_unseen_ranges();
    // It waits for no kernel: the exit of the program does not either.
    session.stop(false, kEndTimeout, capture::Holder::kInjection);
    if (const std::string trouble = session.journal_trouble(); !trouble.empty()) {
      report(kTracedInPart, ("its journal broke off (" + trouble + ")").c_str());
    }
  }

  // Begins, if that was not possible yet, and ends as the options say.
  void follow_options(std::optional<cupti::Failure> failure) {
    if (options_.delay_ns != 0) {
      pause(options_.delay_ns);
      failure = begin();
    }
    begin_when_possible(std::move(failure));
    if (options_.duration_ns != 0) {
      pause(options_.duration_ns);
      end();
    } else if (options_.start.ranges.has_ranges()) {
      settle_ranges();
    }
  }

  // Ends the recording of each range when its work is complete, and the session after the last one.
  void settle_ranges() {
    constexpr int64_t kFirstPause = 5 * capture::kMillisecond;
    constexpr int64_t kLongestPause = 200 * capture::kMillisecond;
    for (;;) {
      capture::CaptureRanges::instance().wait_for_close();
      Session::Settling settling = Session::instance().settle_capture_range();
      for (int64_t ns = kFirstPause; settling == Session::Settling::kWaiting; ns = std::min(2 * ns, kLongestPause)) {
        pause(ns);
        settling = Session::instance().settle_capture_range();
      }
      if (settling != Session::Settling::kOver) continue;
      end();
      return;
    }
  }

 private:
  // States the libraries whose NVTX ranges the handler did not see, and the domains that were chosen and never made.
  void note_unseen_ranges() const {
    constexpr size_t kMostDomains = 10;
    const nvtx::DomainNames domains = nvtx::domain_names(options_.start.nvtx.domains);
    if (!domains.absent.empty()) {
      Session::instance().note_facts({{"environment.nvtx_absent", joined(domains.absent, kMostDomains)},
                                      {"environment.nvtx_domains", joined(domains.made, kMostDomains)}},
                                     {{"nvtx_domains_absent", static_cast<int64_t>(domains.absent.size())}});
    }
    std::set<std::string> missed;
    for (const nvtx::Copy& copy : nvtx::copies()) {
      if (copy.state == nvtx::CopyState::kMissed) missed.insert(copy.library.substr(copy.library.rfind('/') + 1));
    }
    if (missed.empty()) return;
    Session::instance().note_facts({{"environment.nvtx_missed", joined(missed, missed.size())}},
                                   {{"nvtx_copies_missed", static_cast<int64_t>(missed.size())}});
  }

  // The first names in one line, without that of the default domain, which is empty.
  template <typename Names>
  static std::string joined(const Names& names, size_t most) {
    std::string line;
    size_t count = 0;
    for (const std::string& name : names) {
      if (name.empty()) continue;
      if (++count > most) return line + ", ...";
      line += (line.empty() ? "" : ", ") + name;
    }
    return line;
  }

  static void pause(int64_t ns) {
    timespec rest = capture::timespec_of(ns);
    while (::nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
  }

  const pid_t process_id_ = ::getpid();
  const bool wants_nvtx_ = nvtx::is_armed();  // the program may change the variable
  RunOptions options_;
  threads::Mutex mutex_;
  bool is_over_ GUARDED_BY(mutex_) = false;
};

// Never destroyed, because the exit handler uses it after the destructors of static objects may have run.
std::atomic<Injection*> injection{nullptr};

void end_at_exit() {
  const threads::NotCancelled not_cancelled;
  try {
    injection.load(std::memory_order_acquire)->end();
  } catch (...) {  // no memory
    report(kTracedInPart, "it could not be ended");
  }
}

void follow_options_on_a_thread(Injection& self, std::optional<cupti::Failure> failure) {
  const threads::SignalsBlocked no_signals;  // the program's signal handlers must not run on our thread
  std::thread([&self, failure = std::move(failure)] {
    ::pthread_setname_np(::pthread_self(), "collector");
    try {
      self.follow_options(failure);
    } catch (const std::exception& error) {
      report(kNotTraced, error.what());
    }
  }).detach();
}

// Whether the recording has begun or will begin, or that was found to be impossible when the driver asked for it.
std::atomic<bool> is_injected{false};
// Whether the driver has asked for it.
std::atomic<bool> is_asked{false};
// Held by the thread that begins the recording before a session.
threads::Mutex beginning;
thread_local bool begins_here = false;

enum class Occasion { kCudaIsInitialised, kSessionIsOpened };

// Returns the failure of a recording that does not begin on this occasion, and may on another one.
std::optional<cupti::Failure> inject(RunOptions options, Occasion occasion) {
  const ControlOptions control{options.start, options.folder, options.socket_folder};
  const bool listens = options.listens;
  const bool has_delay = options.delay_ns != 0;
  const bool has_more = has_delay || options.duration_ns != 0 || options.start.ranges.has_ranges();
  auto* const made = new Injection(std::move(options));
  injection.store(made, std::memory_order_release);
  std::optional<cupti::Failure> failure;
  if (!has_delay) failure = made->begin();
  if (failure && occasion == Occasion::kSessionIsOpened) return failure;
  std::at_quick_exit(end_at_exit);
  if (listens) {
    if (const auto trouble = listen(control)) {
      report("traced, but does not listen", trouble->cause.c_str(), trouble->remedy.c_str());
    }
  }
  if (has_more || (failure && failure->kind == FailureKind::kAlreadyActive)) {
    follow_options_on_a_thread(*made, std::move(failure));
  } else if (failure) {
    report(kNotTraced, failure->cause.c_str(), failure->remedy.c_str());
  }
  return std::nullopt;
}

void inject_when_asked() {
  is_asked.store(true);
  if (const auto failure = cupti::begin_use()) {  // the recording is that of the parent, which opened a session
    report(kNotTraced, failure->cause.c_str(), failure->remedy.c_str());
    return;
  }
  if (is_injected.exchange(true)) {
    // The first launches would be missing if another thread had not begun yet. The wait is limited, because this thread
    // has the driver's locks, which the other one may need.
    if (begins_here || !threads::lock_within(beginning, threads::kPatience)) return;
    beginning.unlock();
    if (is_injected.exchange(true)) return;
  }
  RunOptions options = run_options();
  if (options.folder.empty()) {
    report(kNotTraced, (std::string(kFolderVariable) + " names no folder").c_str(), "Use `collector run`");
    return;
  }
  inject(std::move(options), Occasion::kCudaIsInitialised);
}

bool inject_before_session() {
  RunOptions options = run_options();
  // A delay is counted from CUDA's initialisation.
  const bool is_due = !options.folder.empty() && options.delay_ns == 0;
  return is_due && !inject(std::move(options), Occasion::kSessionIsOpened);
}

}  // namespace

void begin_before_session() {
  static std::atomic<bool> is_tried{false};  // an object is left behind by each attempt that fails
  if (is_injected.load() || Session::instance().active() || !nvtx::is_named_by(kInjectionVariable)) return;
  if (is_tried.exchange(true)) return;
  const threads::NotCancelled not_cancelled;
  {
    const threads::MutexLock lock(beginning);
    if (is_injected.exchange(true)) return;
    begins_here = true;
    bool has_begun = false;
    try {
      has_begun = inject_before_session();
    } catch (const std::exception&) {  // the driver's call will report it, unless the session was opened before
      has_begun = Session::instance().active();
    }
    begins_here = false;
    if (has_begun) return;
    is_injected.store(false);
  }
  if (is_asked.load()) InitializeInjection();  // it was called meanwhile, and is not called again
}

}  // namespace collector::inject

int InitializeInjection() {
  const collector::threads::NotCancelled not_cancelled;
  try {
    collector::inject::inject_when_asked();
  } catch (const std::exception& error) {
    collector::inject::report(collector::inject::kNotTraced, error.what());
  }
  return 1;
}
