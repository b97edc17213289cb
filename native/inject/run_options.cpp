#include "inject/run_options.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cupti/activity_kinds.h"

namespace collector::inject {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kMillion = 1'000'000;

std::string variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

int64_t number(const char* name, const char* unit, size_t most_digits) {
  const std::string text = variable(name);
  if (text.empty()) return 0;
  if (text.find_first_not_of("0123456789") != std::string::npos || text.size() > most_digits) {
    throw std::invalid_argument(std::string(name) + " is no number of " + unit + ": " + text);
  }
  return std::stoll(text);
}

// Watches for NVTX ranges from the moment that the library is loaded: NVTX may load it before the program initialises
// CUDA.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it catches what is thrown
[[maybe_unused]] const bool kRangesAreWatched = [] {
  try {
    capture::CaptureRanges::instance().select(range_options());
    return true;
  } catch (const std::exception&) {  // InitializeInjection reports it
    return false;
  }
}();

/// The namespace in which this process has its number, such as `pid:[4026531836]`; "" if the system does not say it.
std::string pid_namespace() {
  char text[64];
  const ssize_t length = ::readlink("/proc/self/ns/pid", text, sizeof text);
  return length < 0 ? std::string() : std::string(text, static_cast<size_t>(length));
}

int64_t milliseconds(const char* name) { return number(name, "milliseconds", 12) * kNsPerMs; }

}  // namespace

RunOptions run_options() {
  RunOptions options;
  options.folder = variable(kFolderVariable);
  if (options.folder.empty()) return options;
  options.start.kinds = cupti::kinds_named(split(variable("COLLECTOR_RUN_KINDS"), ','));
  if (options.start.kinds.empty()) throw std::invalid_argument("COLLECTOR_RUN_KINDS names no kind of activity");
  options.start.paths.search_roots = split(variable("COLLECTOR_RUN_SITES"), ':');
  options.start.journal_texts["process.id"] = std::to_string(::getpid());
  options.start.journal_texts["process.pid_namespace"] = pid_namespace();
  if (::dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr)
    options.start.journal_texts["process.interpreter"] = "python";
  for (const std::string& name : split(variable("COLLECTOR_RUN_VARIABLES"), ',')) {
    const std::string value = variable(name.c_str());
    if (!value.empty()) options.start.journal_texts["variable." + name] = value;
  }
  options.start.journal_only = true;
  if (const int64_t most = number("COLLECTOR_RUN_MAX_BYTES", "bytes", 18); most > 0) {
    options.start.segments = capture::SegmentLimits::of_ring(static_cast<uint64_t>(most), 0);
  }
  const int64_t budget = number("COLLECTOR_RUN_BUDGET", "millionths", 7);
  if (budget > kMillion) throw std::invalid_argument("COLLECTOR_RUN_BUDGET is more than all of the time");
  options.start.budget_millionths = static_cast<uint32_t>(budget);
  options.start.holder = capture::Holder::kInjection;
  const std::string listens = variable("COLLECTOR_LISTEN");
  constexpr std::string_view kOff[] = {"", "0", "false", "no", "off"};  // in any case of letters, as in Python
  std::string lower = listens;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  options.listens = std::find(std::begin(kOff), std::end(kOff), lower) == std::end(kOff);
  if (options.listens) {
    if (listens[0] == '/') options.socket_folder = listens;
    // A part that is written out is made of closed segments.
    if (!options.start.segments.has_segments()) options.start.segments.segment_bytes = capture::kSegmentBytes;
  }
  options.start.ranges = range_options();
  options.start.watch = options.start.ranges.has_ranges();
  options.delay_ns = milliseconds("COLLECTOR_RUN_DELAY_MS");
  options.duration_ns = milliseconds("COLLECTOR_RUN_DURATION_MS");
  // A name is never empty here: the default domain is asked for by the word "default".
  const std::string domains = variable("COLLECTOR_RUN_NVTX");
  if (!domains.empty()) {
    std::vector<std::string> names = split(domains, ',');
    for (std::string& name : names) {
      if (name == "default") name.clear();
    }
    options.start.nvtx = {false, names};
  }
  return options;
}

capture::CaptureRangeOptions range_options() {
  using Source = capture::CaptureRangeOptions::Source;
  constexpr std::string_view kNvtx = "nvtx:";
  capture::CaptureRangeOptions options;
  const std::string text = variable(kFolderVariable).empty() ? "" : variable("COLLECTOR_RUN_RANGE");
  if (text.empty()) return options;
  if (const int64_t most = number("COLLECTOR_RUN_MOST_RANGES", "ranges", 9); most > 0) {
    options.most = std::min(static_cast<uint32_t>(most), options.most);
  }
  if (text == "cudaProfilerApi") {
    options.source = Source::kProfilerApi;
    return options;
  }
  if (text.compare(0, kNvtx.size(), kNvtx) != 0) {
    throw std::invalid_argument("COLLECTOR_RUN_RANGE is neither cudaProfilerApi nor nvtx:NAME: " + text);
  }
  options.source = Source::kNvtx;
  std::string* part = &options.name;
  for (size_t i = kNvtx.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '@') {
      part->push_back(text[++i]);
    } else if (text[i] == '@' && part == &options.name) {
      part = &options.domain;
    } else {
      part->push_back(text[i]);
    }
  }
  if (options.name.empty()) throw std::invalid_argument("COLLECTOR_RUN_RANGE names no NVTX range: " + text);
  options.any_domain = options.domain == "*";
  return options;
}

std::string new_journal(const std::string& folder) {
  char host[HOST_NAME_MAX + 1] = "";
  ::gethostname(host, sizeof(host) - 1);
  for (char& letter : host) {
    if (letter == '/') letter = '-';
  }
  const std::string stem = folder + "/" + host + "-" + std::to_string(::getpid());
  std::string path = stem + ".journal";
  for (int number = 2; ::access(path.c_str(), F_OK) == 0; ++number) {
    path = stem + "." + std::to_string(number) + ".journal";
  }
  return path;
}

}  // namespace collector::inject
