#include "cupti/trial.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "threads/mutex.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX lets programs declare it

namespace collector::cupti {
namespace {

constexpr std::chrono::seconds kLimit{30};
constexpr std::string_view kProgram = "/cupti_trial";
constexpr std::string_view kSurvived = "ok";

// The program lies beside the library that holds this function.
std::string program_path() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&try_in_child), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string library = info.dli_fname;
  return library.substr(0, library.rfind('/')) + std::string(kProgram);
}

// This process's environment without the tools that the driver or the loader would put into the child.
std::vector<char*> environment_of_child() {
  constexpr std::array<std::string_view, 4> kTools{
      "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "LD_PRELOAD=", "LD_AUDIT="};
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    bool is_tool = false;
    for (const std::string_view tool : kTools) is_tool = is_tool || text.substr(0, tool.size()) == tool;
    if (!is_tool) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

// A child's end, if it was seen: waitpid's answer and the status.
struct End {
  pid_t waited = 0;
  int status = 0;

  // Whether the child has ended. Its status is unknown where the program's own wait for children took it away.
  bool is_seen() const { return waited != 0; }

  void look(pid_t child, int options) {
    do {
      waited = ::waitpid(child, &status, options);
    } while (waited < 0 && errno == EINTR);
  }
};

struct Output {
  std::string text;
  bool is_complete;  // the child survived or ended before the limit
};

// The output of the child until it has survived or ended, or until the limit. It is more reliable than the exit status,
// which the program's own wait for children can take away. The end of the pipe alone is not reliable either: another
// child that the program forks meanwhile may keep the pipe open.
Output output_of(int fd, pid_t child, End& end) {
  constexpr int kPeriodMs = 50;
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  std::string text;
  while (text != kSurvived) {
    if (std::chrono::steady_clock::now() >= deadline) return {text, false};
    pollfd ready{fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, end.is_seen() ? 0 : kPeriodMs);
    if (count < 0 && errno != EINTR) return {text, false};
    if (count == 0) {
      if (end.is_seen()) break;
      end.look(child, WNOHANG);
    }
    if (count <= 0) continue;
    std::array<char, 256> part{};
    const ssize_t bytes = ::read(fd, part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    text.append(part.data(), static_cast<size_t>(bytes));
  }
  return {text, true};
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  return "ended";
}

std::string run_trial(const std::string& libcuda, const std::string& libcupti) {
  const std::string program = program_path();
  if (program.empty() || ::access(program.c_str(), X_OK) != 0) return "was not tried: " + program + " is missing";
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::string("was not tried: ") + std::strerror(errno);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // First, because the pipe has the number of standard input or standard error in a program that closed them.
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::array<std::string, 3> texts{program, libcuda, libcupti};
  std::array<char*, 4> arguments{texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  std::vector<char*> environment = environment_of_child();
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return std::string("was not tried: ") + std::strerror(error);
  }
  End end;
  const Output output = output_of(ends[0], child, end);
  ::close(ends[0]);
  if (!output.is_complete && !end.is_seen()) ::kill(child, SIGKILL);
  if (!end.is_seen()) end.look(child, 0);
  if (output.text == kSurvived) return "";
  if (!output.is_complete) return "gave no answer within " + std::to_string(kLimit.count()) + " seconds";
  return (end.waited == child ? how_it_ended(end.status) : "ended") +
         (output.text.empty() ? "" : " (" + output.text + ")");
}

}  // namespace

std::string try_in_child(const std::string& libcuda, const std::string& libcupti) {
  struct Verdicts {
    threads::Mutex mutex;
    std::map<std::pair<std::string, std::string>, std::string> by_files GUARDED_BY(mutex);
  };
  static auto& verdicts = *new Verdicts;
  const threads::MutexLock lock(verdicts.mutex);
  const auto [found, is_new] = verdicts.by_files.try_emplace({libcuda, libcupti});
  if (is_new) found->second = run_trial(libcuda, libcupti);
  return found->second;
}

}  // namespace collector::cupti
