#include "stepstats/typed_activity.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

namespace collector::stepstats {
namespace {

// A number as it is written in a device's name.
std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  const bool is_padded = text.size() > 1 && text[0] == '0';
  return is_whole && !is_padded ? std::optional(number) : std::nullopt;
}

}  // namespace

void TypedActivity::read(std::string_view message) {
  values_.fill(0);
  WireReader reader(message, message);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if ((tag & 7) == kVarint && tag >> 3 < kNumActivityFields) {
      values_[tag >> 3] = reader.read_int64();
    } else {
      reader.skip(tag);
    }
  }
}

TableKind kind_of(std::string_view activity) {
  const bool has_kind = activity.size() >= 2 && activity[0] == static_cast<char>(make_tag(1, kVarint));
  return has_kind ? static_cast<TableKind>(activity[1]) : TableKind::kUnknown;
}

void RepeatedActivities::add_all_streams(const StepStats& step, const Device& device, std::string_view unit) {
  TypedActivity activity;
  uint32_t stream_id = 0;
  uint32_t context_id = 0;
  Activities* of_stream = nullptr;
  step.for_each_node(device, [&](const Node& node) {
    if (node.activity.empty()) return;
    activity.read(node.activity);
    const auto stream = static_cast<uint32_t>(activity[ActivityField::kStreamId]);
    const auto context = static_cast<uint32_t>(activity[ActivityField::kContextId]);
    if (of_stream == nullptr || stream != stream_id || context != context_id) {
      stream_id = stream;
      context_id = context;
      of_stream = &streams_[{unit, stream, context}];
    }
    of_stream->push_back(node.activity);
    if (activity.kind() != TableKind::kKernel) copies_[unit].push_back(node.activity);
  });
}

std::vector<std::string_view> RepeatedActivities::take_stream(std::string_view unit, std::string_view stream) {
  // A stream number without a context means the stream of the lowest context; the other contexts' numbers follow a dot.
  const size_t dot = stream.find('.');
  const std::optional<uint32_t> stream_id = number_of(stream.substr(0, dot));
  const std::optional<uint32_t> context_id = dot == std::string_view::npos ? 0 : number_of(stream.substr(dot + 1));
  if (!stream_id || !context_id) return {};
  const auto found = streams_.lower_bound({unit, *stream_id, *context_id});
  if (found == streams_.end() || std::get<0>(found->first) != unit || std::get<1>(found->first) != *stream_id)
    return {};
  const bool is_it = dot == std::string_view::npos || std::get<2>(found->first) == *context_id;
  return is_it ? std::move(found->second) : Activities();
}

std::vector<std::string_view> RepeatedActivities::take_copies(std::string_view unit) {
  const auto found = copies_.find(unit);
  return found == copies_.end() ? Activities() : std::move(found->second);
}

}  // namespace collector::stepstats
