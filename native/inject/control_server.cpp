#include "inject/control_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "capture/clocks.h"
#include "capture/file_numbers.h"
#include "capture/session.h"
#include "inject/run_options.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"
#include "threads/signals_blocked.h"

namespace collector::inject {
namespace {

using capture::Holder;
using capture::Session;
using cupti::Failure;
using cupti::FailureKind;

constexpr int64_t kEndTimeout = 5'000 * capture::kMillisecond;
constexpr int64_t kRequestTimeout = 2'000 * capture::kMillisecond;  // of a whole request, and of each part of an answer
constexpr size_t kMostRequestBytes = 4096;
constexpr int kBacklog = 8;

using Fields = std::vector<std::string>;

// A file descriptor of ours.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) static_cast<void>(::syscall(SYS_close, number_));  // close() is a point of cancellation
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  std::string path() const {
    const size_t bytes = size - offsetof(sockaddr_un, sun_path);
    return name.sun_path[0] == '\0' ? std::string(name.sun_path, bytes) : std::string(name.sun_path);
  }
};

Failure no_socket(const std::string& cause, const std::string& remedy) {
  return {FailureKind::kNotListening, "no socket can be made: " + cause, remedy};
}

// What is wrong with a folder for sockets, whose files no other user may replace.
std::optional<Failure> trouble_with(const std::string& folder) {
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0)
    return no_socket(folder + ": " + std::strerror(errno), "Make the folder first");
  if (!S_ISDIR(found.st_mode))
    return no_socket(folder + " is no folder", "Name the folder in which the socket is to be");
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return no_socket(folder + " is not this user's alone",
                     "Name a folder of this user with mode 700, as mkdir -m 700 makes one");
  }
  return std::nullopt;
}

// Throws std::invalid_argument for a path that is too long for a socket.
Address address_of(const std::string& folder) {
  const std::string name = "collector-" + std::to_string(::getpid());
  const std::string path = folder.empty() ? std::string(1, '\0') + name : folder + "/" + name + ".sock";
  Address address;
  if (path.size() >= sizeof(address.name.sun_path)) throw std::invalid_argument("its path is too long for a socket");
  address.name.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.name.sun_path);
  // A name outside the file system ends with the address, others with a zero.
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (folder.empty() ? 0 : 1));
  return address;
}

// An owner that takes no more connections is not waited for.
bool has_owner(const Address& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED;
}

// A socket with the address, which listens; -1 and errno. The file of a process that has ended is replaced.
int listening_socket(const Address& address, bool is_file) {
  Descriptor socket(capture::beyond_standard_files(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (socket.get() < 0) return -1;
  int result = ::bind(socket.get(), address.get(), address.size);
  if (result != 0 && errno == EADDRINUSE && is_file) {
    const bool is_free = !has_owner(address);
    if (is_free) ::unlink(address.name.sun_path);
    errno = EADDRINUSE;
    if (is_free) result = ::bind(socket.get(), address.get(), address.size);
  }
  if (result != 0 || ::listen(socket.get(), kBacklog) != 0) return -1;
  if (is_file) ::chmod(address.name.sun_path, S_IRUSR | S_IWUSR);
  return socket.release();
}

// Waits until somebody connects, or the socket is shut down. A thread that waits in accept has the number of the
// connection already, which the program would miss: the lowest free one, such as that of standard input.
void wait_for_connection(int socket) {
  pollfd awaited{socket, POLLIN, 0};
  ::poll(&awaited, 1, -1);
}

// Whether the descriptor is the socket with this address still: a program may close all descriptors, and get the number
// for a file of its own.
bool is_at(int socket, const Address& address) {
  Address found;
  found.size = sizeof(found.name);
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&found.name), &found.size) == 0 &&
         found.size == address.size && std::memcmp(&found.name, &address.name, address.size) == 0;
}

bool is_same_user(int connection) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 && credentials.uid == ::geteuid();
}

void limit_time(int connection, int direction, int64_t ns) {
  const timeval limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<suseconds_t>(ns / 1'000 % 1'000'000)};
  ::setsockopt(connection, SOL_SOCKET, direction, &limit, sizeof(limit));
}

// The fields of a request; empty: nothing that can be understood has come in time.
Fields received(int connection) {
  std::array<char, kMostRequestBytes> bytes{};
  size_t count = 0;
  const int64_t until_ns = capture::clock_ns(CLOCK_MONOTONIC) + kRequestTimeout;
  for (;;) {
    const int64_t left_ns = until_ns - capture::clock_ns(CLOCK_MONOTONIC);
    if (left_ns < capture::kMillisecond) return {};  // a limit of 0 would be none
    limit_time(connection, SO_RCVTIMEO, left_ns);
    const ssize_t got = ::recv(connection, bytes.data() + count, bytes.size() - count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || count == bytes.size()) return {};
    if (got == 0) break;
    count += static_cast<size_t>(got);
  }
  Fields fields;
  std::string_view rest(bytes.data(), count);
  for (size_t end = rest.find('\0'); end != std::string_view::npos; end = rest.find('\0')) {
    fields.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return rest.empty() ? fields : Fields{};
}

// Whether the sender of a request is still there. One that has stopped sending waits for the answer; one that has
// closed its end has given up, or was killed.
bool is_awaited(int connection) {
  pollfd state{connection, 0, 0};
  return ::poll(&state, 1, 0) == 0 || (state.revents & (POLLHUP | POLLERR)) == 0;
}

void send_bytes(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void send_fields(int connection, const Fields& fields) {
  std::string bytes;
  for (const std::string& field : fields) bytes.append(field).push_back('\0');
  send_bytes(connection, bytes);
}

Fields refusal(const std::string& cause, const std::string& remedy) { return {"error", cause, remedy}; }

// The refusal of a request that failed. Allocates nothing, because that may be what failed.
void send_failure(int connection, std::string_view cause) {
  using namespace std::string_view_literals;
  for (const std::string_view part : {"error\0"sv, cause, "\0\0"sv}) send_bytes(connection, part);
}

const char* name_of(Holder holder) {
  switch (holder) {
    case Holder::kCaller:
      return "trace";
    case Holder::kInjection:
      return "run";
    case Holder::kRecorder:
      return "record";
    case Holder::kControl:
      return "attach";
  }
  return "";
}

bool parse(const std::string& text, uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

class ControlServer {
 public:
  std::optional<Failure> begin(const ControlOptions& options) EXCLUDES(mutex_) {
    const threads::MutexLock lock(mutex_);
    if (socket_ >= 0 && process_id_ == ::getpid()) return std::nullopt;
    if (!options.socket_folder.empty()) {
      if (const auto trouble = trouble_with(options.socket_folder)) return trouble;
    }
    const std::string remedy = "Name another folder for the socket (COLLECTOR_LISTEN=/a/folder)";
    Address address;
    try {
      address = address_of(options.socket_folder);
    } catch (const std::invalid_argument& error) {
      return no_socket(error.what(), remedy);
    }
    const int socket = listening_socket(address, !options.socket_folder.empty());
    if (socket < 0) return no_socket(std::strerror(errno), remedy);
    options_ = options;
    address_ = address;
    process_id_ = ::getpid();
    socket_ = socket;
    const threads::SignalsBlocked no_signals;  // the program's signal handlers must not run on our thread
    try {
      std::thread([this, socket, address] {
        ::pthread_setname_np(::pthread_self(), "collector");
        serve(socket, address);
      }).detach();
    } catch (const std::system_error& error) {
      ::close(socket);
      socket_ = -1;
      if (!options.socket_folder.empty()) ::unlink(address.name.sun_path);
      return Failure{FailureKind::kNotListening, std::string("no thread can be started (") + error.what() + ")",
                     "Raise the limit of threads (ulimit -u)"};
    }
    return std::nullopt;
  }

  std::string name() EXCLUDES(mutex_) {
    const threads::MutexLock lock(mutex_);
    return socket_ >= 0 && process_id_ == ::getpid() ? address_.path() : "";
  }

  void end() EXCLUDES(mutex_) {
    const int socket = socket_;
    if (socket < 0 || process_id_ != ::getpid()) return;
    const threads::MutexLock lock(mutex_);
    socket_ = -1;
    if (is_at(socket, address_)) ::shutdown(socket, SHUT_RDWR);  // wakes the thread, which closes it
    if (address_.name.sun_path[0] != '\0') ::unlink(address_.name.sun_path);
    Session::instance().stop(false, kEndTimeout, Holder::kControl);
  }

  // A forked child has no thread, and its copy of the socket would outlive this process.
  void leave_to_parent() {
    const int socket = socket_;
    if (socket >= 0 && is_at(socket, address_)) ::close(socket);
    socket_ = -1;
  }

 private:
  void serve(int socket, const Address& address) {
    for (;;) {
      wait_for_connection(socket);
      if (!is_at(socket, address)) return;
      const Descriptor connection(capture::beyond_standard_files(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC)));
      if (connection.get() < 0) {
        if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN) continue;
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) break;
        const timespec pause = capture::timespec_of(100 * capture::kMillisecond);
        ::nanosleep(&pause, nullptr);
        continue;
      }
      try {
        answer(connection.get());
      } catch (const std::bad_alloc&) {
        send_failure(connection.get(), "the process has no memory left");
      } catch (const std::exception& error) {
        send_failure(connection.get(), error.what());
      }
      // A child that was forked meanwhile has a copy, and keeps it open.
      ::shutdown(connection.get(), SHUT_RDWR);
    }
    if (is_at(socket, address)) ::close(socket);
  }

  void answer(int connection) {
    limit_time(connection, SO_SNDTIMEO, kRequestTimeout);
    if (!is_same_user(connection)) {  // nobody else may keep the server waiting
      std::array<char, kMostRequestBytes> unread{};
      static_cast<void>(::recv(connection, unread.data(), unread.size(), MSG_DONTWAIT));
      send_fields(connection, refusal("the process is of another user", "Attach as the user of the process"));
      return;
    }
    const Fields request = received(connection);  // before any answer: a sender that is cut off does not read it
    // Nobody would end a recording that begins now, nor read the journal of one that ends.
    if (!is_awaited(connection)) return;
    send_fields(connection, done(request));
  }

  Fields done(const Fields& request) {
    if (request.size() == 1 && request[0] == "status") return status();
    if (request.size() == 3 && request[0] == "start") return start(request[1], request[2]);
    if (request.size() == 1 && request[0] == "stop") return stop();
    if (request.size() == 1 && request[0] == "cut") return cut();
    return refusal("the request is not understood", "Use the `collector attach` of the same version");
  }

  static Fields status() {
    const std::optional<capture::SessionState> state = Session::instance().state();
    return {"ok",
            "process",
            std::to_string(::getpid()),
            "state",
            state ? name_of(state->holder) : "idle",
            "journal",
            state ? state->journal : "",
            "trouble",
            state ? state->trouble : ""};
  }

  Fields start(const std::string& total_ns, const std::string& total_bytes) EXCLUDES(mutex_) {
    const threads::MutexLock lock(mutex_);
    // A request that was waiting while the listening ended: nothing would end its recording.
    if (socket_ < 0) return refusal("the process is ending", "");
    capture::StartOptions options = options_.start;
    uint64_t most_ns = 0;
    uint64_t most_bytes = 0;
    if (!parse(total_ns, most_ns) || !parse(total_bytes, most_bytes) || most_ns > uint64_t{1} << 62) {
      return refusal("the limits are no numbers", "");
    }
    options.segments = capture::SegmentLimits::of_ring(most_bytes, static_cast<int64_t>(most_ns));
    uint64_t& segment_bytes = options.segments.segment_bytes;
    segment_bytes = most_bytes == 0 ? capture::kSegmentBytes : std::min(capture::kSegmentBytes, segment_bytes);
    options.journal_only = true;
    options.holder = Holder::kControl;
    options.end_at_exit = stop_listening;
    options.journal_texts["process.id"] = std::to_string(::getpid());
    const std::string own_folder = options_.folder.empty() ? made_folder() : "";
    options.journal = new_journal(own_folder.empty() ? options_.folder : own_folder);
    if (const auto failure = Session::instance().start(options)) {
      if (!own_folder.empty()) ::rmdir(own_folder.c_str());
      return refusal(failure->cause, failure->remedy);
    }
    return {"ok", "journal", options.journal};
  }

  static Fields stop() {
    Session& session = Session::instance();
    const std::optional<capture::SessionState> state = session.state();
    if (!state) return refusal("nothing is recorded in this process", "Start it: collector attach PID start");
    if (state->holder != Holder::kControl && state->holder != Holder::kInjection) {
      return refusal("the program itself records, and alone may end that",
                     "`collector attach PID dump` writes what a recorder has");
    }
    // It waits for no kernel: one of them may never end.
    if (!session.stop(false, kEndTimeout, state->holder)) {
      return refusal("the recording has ended meanwhile", "Its journal is " + state->journal);
    }
    return {"ok", "journal", state->journal, "trouble", session.journal_trouble()};
  }

  static Fields cut() {
    Session& session = Session::instance();
    const std::optional<capture::SessionState> state = session.state();
    if (!state) return refusal("nothing is recorded in this process", "Start it: collector attach PID start");
    const auto mark = session.mark(Session::Completeness::kCut, false, kEndTimeout);
    if (!mark || mark->segment == 0) {
      const std::string cause = !state->trouble.empty() ? "the recording broke off (" + state->trouble + ")"
                                : state->holder == Holder::kCaller
                                    ? "the program traces a step, whose records are in its memory"
                                : mark ? "its records are in one file until it ends"
                                       : "CUPTI cannot be flushed safely while a program runs (CUDA 13.0.48)";
      return refusal(cause, "Wait for the end of the step, or of the program");
    }
    if (!mark->is_up_to_date) {
      return refusal("its latest records were not written in time, into " + mark->journal,
                     "See whether the disk is slow, and try again");
    }
    return {"ok",
            "journal",
            mark->journal,
            "segment",
            std::to_string(mark->segment),
            "cupti_ns",
            std::to_string(mark->time.cupti_ns)};
  }

  // A new folder for the journal of one recording. Throws std::system_error.
  static std::string made_folder() {
    const char* const temporary = ::secure_getenv("TMPDIR");
    std::string name = temporary != nullptr && *temporary == '/' ? temporary : "/tmp";
    name += "/collector-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "no folder for the records can be made in " + name);
    }
    return name;
  }

  threads::Mutex mutex_;
  ControlOptions options_ GUARDED_BY(mutex_);
  // Written before the socket, and not changed while there is one.
  Address address_;
  pid_t process_id_ = 0;
  std::atomic<int> socket_{-1};
};

// Never destroyed, because its thread runs to the end of the process. A forked child that listens gets another, whose
// lock is free. Null: this process has never listened.
std::atomic<ControlServer*> current{nullptr};

ControlServer& server() {
  ControlServer* known = current.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto made = std::make_unique<ControlServer>();
    if (current.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) known = made.release();
  }
  return *known;
}

// In a forked child. Allocates nothing: an exception would end it.
void leave_to_parent() {
  const threads::NotCancelled not_cancelled;
  ControlServer* const of_parent = current.exchange(nullptr, std::memory_order_acq_rel);
  if (of_parent != nullptr) of_parent->leave_to_parent();
}

}  // namespace

std::optional<Failure> listen(const ControlOptions& options) {
  const threads::NotCancelled not_cancelled;
  static const bool is_registered = [] {
    ::pthread_atfork(nullptr, nullptr, leave_to_parent);
    std::atexit(stop_listening);
    return true;
  }();
  static_cast<void>(is_registered);
  return server().begin(options);
}

std::string listening_at() { return current.load(std::memory_order_acquire) == nullptr ? "" : server().name(); }

void stop_listening() {
  if (current.load(std::memory_order_acquire) == nullptr) return;
  const threads::NotCancelled not_cancelled;
  try {
    server().end();
  } catch (const std::exception&) {  // no memory: the journal says that it had not ended
    return;
  }
}

}  // namespace collector::inject
