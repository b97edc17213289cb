#include "stepstats/devices.h"

#include <algorithm>
#include <charconv>

#include "stepstats/labels.h"

namespace collector::stepstats {
namespace {

constexpr auto kNpos = std::string_view::npos;

// `part` must be in lower case.
size_t find_ignoring_case(std::string_view text, std::string_view part) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  };
  const auto found =
      std::search(text.begin(), text.end(), part.begin(), part.end(), [&](char a, char b) { return lower(a) == b; });
  return found == text.end() ? kNpos : static_cast<size_t>(found - text.begin());
}

// The value of `key`, up to the next slash.
std::string_view value_of(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == kNpos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, rest.find('/'));
}

// "worker 3" for "/job:worker/replica:0/task:3"; empty for the local task in the names of a single machine.
std::string rank_of(std::string_view prefix) {
  const std::string_view job = value_of(prefix, "/job:");
  const std::string_view replica = value_of(prefix, "/replica:");
  const std::string_view task = value_of(prefix, "/task:");
  const bool alone = replica.empty() || replica == "0";
  if (job.empty() || (job == "localhost" && alone && (task.empty() || task == "0"))) return {};
  std::string rank(job);
  if (!alone) rank.append(" ").append(replica).append("/").append(task);
  if (alone && !task.empty()) rank.append(" ").append(task);
  return rank;
}

// "worker 3 GPU 0"; a negative number is left out.
std::string process_name(std::string_view prefix, std::string_view processor, int64_t number) {
  std::string name = rank_of(prefix);
  if (!name.empty()) name.push_back(' ');
  name.append(processor);
  if (number >= 0) name.append(" ").append(std::to_string(number));
  return name;
}

// A device without a processor in its name: threads of a host, a process of the machine, or another kind of row.
DeviceName of_no_processor(std::string_view device) {
  DeviceName name;
  name.unit = device;
  name.track = "ops";
  if (const size_t host = device.find("/host:"); host != kNpos) {
    name.process_kind = ProcessKind::kHost;
    name.prefix = device.substr(0, host);
    name.process = process_name(name.prefix, "host", -1);
    name.track = "host threads";
    return name;
  }
  constexpr std::string_view kProcess = "/process:";
  if (device.substr(0, kProcess.size()) == kProcess) {
    name.process_kind = ProcessKind::kHost;
    name.process = "process " + std::string(device.substr(kProcess.size()));
  } else if (!device.empty() && device.front() == '/') {
    name.process = device.substr(1);
  } else {
    const size_t slash = device.find('/');
    name.process = device.substr(0, slash);
    if (slash != kNpos) name.track = device.substr(slash + 1);
  }
  if (name.process.empty()) name.process = "(no name)";
  return name;
}

void read_device_kind(std::string_view rest, DeviceName& name) {
  if (const size_t at = rest.find("/stream:"); at != kNpos) {
    name.stream = rest.substr(at + 8);
    name.kind = name.stream == "all" ? DeviceKind::kAllStreams : DeviceKind::kStream;
  } else if (const size_t numbered = rest.find("/stream#"); numbered != kNpos) {
    name.stream = rest.substr(numbered + 8);
    name.kind = DeviceKind::kStream;
  } else if (contains(rest, "/memcpy")) {
    name.kind = DeviceKind::kCopies;
  }
  name.on_gpu =
      name.kind != DeviceKind::kOther || contains(rest, "/sync") || contains(rest, "stream") || rest == "/graphs";
  switch (name.kind) {
    case DeviceKind::kStream:
      name.track = "stream " + std::string(name.stream.empty() ? "(no number)" : name.stream);
      break;
    case DeviceKind::kAllStreams:
      name.track = "all streams";
      break;
    case DeviceKind::kCopies:
      name.track = "copies";
      break;
    case DeviceKind::kOther:
      name.track = rest.size() > 1 && rest.front() == '/' ? rest.substr(1) : "ops";
      break;
  }
}

}  // namespace

DeviceName parse_device_name(std::string_view device) {
  size_t unit_start = kNpos;
  size_t number_start = kNpos;
  bool is_gpu = true;
  for (const std::string_view key : {"/device:gpu:", "/gpu:", "/device:cpu:", "/cpu:"}) {
    unit_start = find_ignoring_case(device, key);
    if (unit_start != kNpos) {
      number_start = unit_start + key.size();
      is_gpu = key.find("gpu") != kNpos;
      break;
    }
  }
  if (unit_start == kNpos && !is_tracer_device(device)) return of_no_processor(device);
  DeviceName name;
  int64_t number = -1;
  size_t end;
  if (unit_start == kNpos) {  // a GPU without a number
    unit_start = end = std::min(device.find("/stream:"), device.find("/memcpy"));
  } else {
    end = number_start;
    while (end < device.size() && device[end] >= '0' && device[end] <= '9') ++end;
    if (std::from_chars(device.data() + number_start, device.data() + end, number).ec != std::errc()) number = -1;
  }
  name.prefix = device.substr(0, unit_start);
  name.unit = device.substr(0, end);
  name.process_kind = is_gpu ? ProcessKind::kGpu : ProcessKind::kHost;
  name.process = process_name(name.prefix, is_gpu ? "GPU" : "CPU", number);
  read_device_kind(device.substr(end), name);
  return name;
}

}  // namespace collector::stepstats
