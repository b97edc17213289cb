// A program whose control server is attacked by its own threads: control_hammer ROUNDS.
//
// It listens, as a program under `collector run --listen` does, while threads launch kernels and others connect: with
// all requests, with garbage, with half of a request, and with nothing. Meanwhile recordings are started, cut and
// stopped, the server is asked for its name, children are forked, and at the end the listening stops while clients are
// connected. For AddressSanitizer and ThreadSanitizer, with which it is linked: they cannot be loaded into programs
// that have none of their runtime. Driver and CUPTI are the libraries that COLLECTOR_LIBCUDA and COLLECTOR_LIBCUPTI
// name.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "capture/session.h"
#include "cupti/activity_kinds.h"
#include "inject/control_server.h"

namespace {

using collector::capture::Session;
using namespace std::string_literals;

constexpr int kClients = 4;
constexpr int kLaunchers = 2;
constexpr int kForks = 4;

void require(bool is_met, const char* what) {
  if (is_met) return;
  std::fprintf(stderr, "control_hammer: %s\n", what);
  std::_Exit(1);
}

template <typename... Arguments>
int call(void* driver, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  require(function != nullptr, name);
  return function(arguments...);
}

class Program {
 public:
  Program() : driver_(::dlopen(std::getenv("COLLECTOR_LIBCUDA"), RTLD_NOW)) {
    require(driver_ != nullptr, "COLLECTOR_LIBCUDA names no library");
    require(call(driver_, "cuInit", 0U) == 0, "cuInit");
    require(call(driver_, "cuDevicePrimaryCtxRetain", &context_, 0) == 0, "cuDevicePrimaryCtxRetain");
    require(call(driver_, "cuModuleGetFunction", &kernel_, static_cast<void*>(nullptr), "work") == 0,
            "cuModuleGetFunction");
  }

  void launch_until(const std::atomic<bool>& is_over) const {
    while (!is_over.load()) launch();
  }

  static constexpr size_t kLaunches = 20;
  void launch() const {
    require(call(driver_, "cuCtxSetCurrent", context_) == 0, "cuCtxSetCurrent");
    void* const none = nullptr;
    for (size_t launch = 0; launch < kLaunches; ++launch) {
      const int result = call(driver_, "cuLaunchKernel", kernel_, 1U, 1U, 1U, 32U, 1U, 1U, 0U, none, none, none);
      require(result == 0, "cuLaunchKernel");
    }
    require(call(driver_, "cuCtxSynchronize") == 0, "cuCtxSynchronize");
  }

 private:
  void* driver_;
  void* context_ = nullptr;
  void* kernel_ = nullptr;
};

// Sends bytes to the server and returns its answer; `waits`: for the answer.
std::string ask(const std::string& bytes, bool waits = true) {
  const std::string name = std::string(1, '\0') + "collector-" + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path);
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    const char* rest = bytes.data();
    const char* const end = rest + bytes.size();
    for (ssize_t sent = 0; rest != end && sent >= 0; rest += std::max(sent, ssize_t{0})) {
      sent = ::send(connection, rest, static_cast<size_t>(end - rest), MSG_NOSIGNAL);
    }
    ::shutdown(connection, SHUT_WR);
    std::array<char, 512> part{};
    for (ssize_t got = 1; waits && got > 0;) {
      got = ::recv(connection, part.data(), part.size(), 0);
      answer.append(part.data(), static_cast<size_t>(std::max(got, ssize_t{0})));
    }
  }
  ::close(connection);
  return answer;
}

const std::vector<std::string>& requests() {
  static const std::vector<std::string> all{"status\0"s,
                                            "start\0"s + "0\0"s + "0\0"s,
                                            "cut\0"s,
                                            "stop\0"s,
                                            "start\0"s + "0\0"s + "100000\0"s,
                                            "start\0"s + "500000000\0"s + "0\0"s,
                                            "start\0many\0-1\0"s,
                                            "start\0"s + "9223372036854775808\0"s + "1\0"s,
                                            "sta"s,
                                            ""s,
                                            "\0\0\0\0"s,
                                            "status\0garbage\0"s,
                                            std::string(5'000, 'x'),
                                            std::string(4'096, '\0')};
  return all;
}

void attack(int client, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::string& request = requests()[static_cast<size_t>(round * 5 + client * 3) % requests().size()];
    const bool waits = (round + client) % 4 != 0;
    const std::string answer = ask(request, waits);
    const bool is_answer = answer.empty() || answer.rfind("ok\0"s, 0) == 0 || answer.rfind("error\0"s, 0) == 0;
    require(is_answer, "an answer is neither ok nor an error");
  }
}

// A forked child does not listen, and its end leaves the parent's recording alone.
void fork_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_left = collector::inject::listening_at().empty() && !Session::instance().active();
    collector::inject::stop_listening();
    std::_Exit(is_left ? 0 : 1);
  }
  int status = 0;
  require(child > 0 && ::waitpid(child, &status, 0) == child, "a child cannot be forked");
  require(WIFEXITED(status), "a child hangs");
  require(WEXITSTATUS(status) == 0, "a child has a part in the parent's recording");
}

// Another thread of the parent may hold the locks of the annotations at the fork: a child must not wait for them.
void fork_beside_annotations() {
  constexpr int kChildren = 12;
  require(ask("start\0"s + "0\0"s + "0\0"s).rfind("ok\0"s, 0) == 0, "a recording cannot begin");
  std::atomic<bool> is_over{false};
  Session& session = Session::instance();
  std::thread annotating([&] {
    while (!is_over.load()) {
      session.annotator().push_annotation(collector::capture::kRecordedProgram, "launch");
      session.annotator().pop_annotation(collector::capture::kRecordedProgram, true);
    }
  });
  for (int number = 0; number < kChildren; ++number) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      session.note_run_details("{}");
      session.note_details("{}");
      session.annotator().push_annotation(collector::capture::kRecordedProgram, "in the child");
      session.annotator().pop_annotation(collector::capture::kRecordedProgram, true);
      std::_Exit(0);
    }
    int status = 0;
    require(child > 0 && ::waitpid(child, &status, 0) == child, "a child cannot be forked");
    require(WIFEXITED(status), "a child hangs");
  }
  is_over = true;
  annotating.join();
  require(ask("stop\0"s).rfind("ok\0"s, 0) == 0, "a recording cannot end");
}

size_t kernels_in(collector::store::Store& store) {
  size_t count = 0;
  for (auto& [key, stream] : store.streams()) count += stream.rows.of<collector::store::KernelRow>().size();
  return count;
}

// The rows of a traced step are those of its reader: a recording that begins meanwhile leaves them alone.
void read_beside_a_recording(const Program& program, const collector::capture::StartOptions& options) {
  Session& session = Session::instance();
  for (int round = 0; round < 2; ++round) {
    require(!session.start(options), "a session cannot begin");
    program.launch();
    const auto capture = session.stop(true, 1'000'000'000);
    require(capture && kernels_in(*capture->store) == Program::kLaunches, "a step lacks kernels");
    require(ask("start\0"s + "0\0"s + "0\0"s).rfind("ok\0"s, 0) == 0, "a recording cannot begin");
    require(kernels_in(*capture->store) == Program::kLaunches, "a recording has taken the rows of a step");
    program.launch();
    require(ask("stop\0"s).rfind("ok\0"s, 0) == 0, "a recording cannot end");
    require(kernels_in(*capture->store) == Program::kLaunches, "a recording has changed the rows of a step");
  }
}

void hammer(int rounds) {
  const Program program;
  collector::inject::ControlOptions options;
  options.start.kinds = collector::cupti::kinds_named(
      {"external_correlations", "runtime_api", "driver_api", "kernels", "synchronizations", "overheads"});
  options.start.buffer_bytes = 1 << 14;
  require(!collector::inject::listen(options), "it cannot listen");
  require(!collector::inject::listen(options), "a second call does something");
  require(!collector::inject::listening_at().empty(), "it does not listen");
  read_beside_a_recording(program, options.start);
  fork_beside_annotations();

  std::atomic<bool> is_over{false};
  std::vector<std::thread> launchers;
  launchers.reserve(kLaunchers);
  for (int number = 0; number < kLaunchers; ++number) {
    launchers.emplace_back([&] { program.launch_until(is_over); });
  }
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int number = 0; number < kClients; ++number) clients.emplace_back(attack, number, rounds);
  for (int number = 0; number < kForks; ++number) {
    fork_a_child();
    static_cast<void>(Session::instance().state());
    require(!collector::inject::listening_at().empty(), "it has stopped listening");
  }
  for (std::thread& client : clients) client.join();
  require(ask("status\0"s).rfind("ok\0"s, 0) == 0, "it does not answer after the attack");

  clients.clear();
  ask("start\0"s + "0\0"s + "0\0"s);
  for (int number = 0; number < kClients; ++number) clients.emplace_back(attack, number, kClients);
  collector::inject::stop_listening();
  for (std::thread& client : clients) client.join();
  is_over = true;
  for (std::thread& launcher : launchers) launcher.join();
  require(collector::inject::listening_at().empty(), "it listens still");
  require(!Session::instance().active(), "a recording has outlasted the listening");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    hammer(argc > 1 ? std::atoi(argv[1]) : 100);
  } catch (...) {
    return 2;  // no memory, or no thread
  }
  return 0;
}
