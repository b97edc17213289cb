#include "convert/devices.h"

#include <algorithm>
#include <charconv>

#include "convert/labels.h"

namespace collector::convert {
namespace {

constexpr auto npos = std::string_view::npos;

// `part` is in small letters.
size_t FindIgnoringCase(std::string_view text, std::string_view part) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  };
  const auto found =
      std::search(text.begin(), text.end(), part.begin(), part.end(), [&](char a, char b) { return lower(a) == b; });
  return found == text.end() ? npos : static_cast<size_t>(found - text.begin());
}

// What follows `key` up to the next slash.
std::string_view Value(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, rest.find('/'));
}

// "worker 3" of "/job:worker/replica:0/task:3"; empty for the one local task that every single-machine name has.
std::string Rank(std::string_view prefix) {
  const std::string_view job = Value(prefix, "/job:");
  const std::string_view replica = Value(prefix, "/replica:");
  const std::string_view task = Value(prefix, "/task:");
  const bool alone = replica.empty() || replica == "0";
  if (job.empty() || (job == "localhost" && alone && (task.empty() || task == "0"))) return {};
  std::string rank(job);
  if (!alone) rank.append(" ").append(replica).append("/").append(task);
  if (alone && !task.empty()) rank.append(" ").append(task);
  return rank;
}

}  // namespace

DeviceName ParseDeviceName(std::string_view device) {
  DeviceName name;
  size_t unit_start = npos;
  size_t ordinal_start = npos;
  bool is_gpu = false;
  for (const std::string_view key : {"/device:gpu:", "/gpu:", "/device:cpu:", "/cpu:"}) {
    unit_start = FindIgnoringCase(device, key);
    if (unit_start != npos) {
      ordinal_start = unit_start + key.size();
      is_gpu = key.find("gpu") != npos;
      break;
    }
  }
  if (unit_start == npos) {
    name.kind = Contains(device, "/host:") ? ProcessKind::kHost : ProcessKind::kOther;
    name.unit = device;
    name.on_gpu = IsTracerDevice(device);
    if (name.on_gpu) name.kind = Contains(device, "/memcpy") ? ProcessKind::kCopies : ProcessKind::kStream;
    name.readable = name.kind == ProcessKind::kHost ? "host threads" : std::string(device);
    name.track = name.kind == ProcessKind::kHost ? "host threads" : name.on_gpu ? "activities" : "ops";
    return name;
  }
  name.prefix = device.substr(0, unit_start);
  size_t end = ordinal_start;
  while (end < device.size() && device[end] >= '0' && device[end] <= '9') ++end;
  if (std::from_chars(device.data() + ordinal_start, device.data() + end, name.ordinal).ec != std::errc())
    name.ordinal = -1;
  name.unit = device.substr(0, end);

  const std::string_view rest = device.substr(end);
  if (const size_t at = rest.find("/stream:"); at != npos) {
    name.stream = rest.substr(at + 8);
    name.kind = name.stream == "all" ? ProcessKind::kStreamAll : ProcessKind::kStream;
  } else if (const size_t numbered = rest.find("/stream#"); numbered != npos) {
    name.stream = rest.substr(numbered + 8);
    name.kind = ProcessKind::kStream;
  } else if (Contains(rest, "/memcpy")) {
    name.kind = ProcessKind::kCopies;
  } else if (Contains(rest, "/sync") || Contains(rest, "stream")) {
    name.kind = ProcessKind::kOther;
  } else {
    name.kind = ProcessKind::kHost;
  }
  name.on_gpu = name.kind != ProcessKind::kHost;
  switch (name.kind) {
    case ProcessKind::kHost:
      name.track = "ops";
      break;
    case ProcessKind::kStream:
      name.track = "stream " + std::string(name.stream);
      break;
    case ProcessKind::kStreamAll:
      name.track = "all streams";
      break;
    case ProcessKind::kCopies:
      name.track = "copies";
      break;
    case ProcessKind::kOther:
      name.track = std::string(rest.substr(rest.empty() || rest[0] != '/' ? 0 : 1));
      break;
  }
  const std::string rank = Rank(name.prefix);
  if (!rank.empty()) name.readable = rank + " ";
  name.readable += is_gpu ? "GPU" : "CPU";
  if (name.ordinal >= 0) name.readable += " " + std::to_string(name.ordinal);
  name.readable += " " + name.track;
  return name;
}

}  // namespace collector::convert
