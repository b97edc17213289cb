#include "write/chrome_writer.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "write/json.h"

namespace collector::write {

using draw::Argument;
using draw::Instant;
using draw::Process;
using draw::Slice;
using draw::Summary;
using draw::Track;
using draw::Value;
using stepstats::Category;
using stepstats::kCategories;

namespace {

// The text after a slice's name. The viewer derives the colours of kernels and ops from their names, so that different
// names look different; other kinds have one of Catapult's colours each (Perfetto colours by name only).
constexpr std::array<std::string_view, kCategories> kCategoryText = {
    R"(,"cat":"kernel")",
    R"(,"cat":"memcpy","cname":"rail_response")",
    R"(,"cat":"memset","cname":"olive")",
    R"(,"cat":"op")",
    R"(,"cat":"api","cname":"grey")",
    R"(,"cat":"sync","cname":"thread_state_uninterruptible")",
    R"(,"cat":"overhead","cname":"terrible")",
    R"(,"cat":"other")",
};

// Colours that Catapult has names for; a trace cannot state others.
struct NamedColor {
  std::string_view name;
  int red, green, blue;
};
constexpr NamedColor kColors[] = {
    {"black", 0, 0, 0},
    {"grey", 221, 221, 221},
    {"white", 255, 255, 255},
    {"generic_work", 125, 125, 125},
    {"terrible", 180, 0, 0},
    {"rail_animation", 244, 74, 63},
    {"bad", 180, 125, 0},
    {"rail_idle", 238, 142, 0},
    {"yellow", 255, 255, 0},
    {"olive", 100, 100, 0},
    {"good", 0, 125, 0},
    {"rail_load", 13, 168, 97},
    {"background_memory_dump", 0, 180, 180},
    {"rail_response", 67, 135, 253},
    {"vsync_highlight_color", 0, 0, 255},
    {"detailed_memory_dump", 180, 0, 180},
};

// The name of the nearest colour to 0xAARRGGBB.
std::string_view color_name(uint32_t color) {
  const auto part = [color](int shift) { return static_cast<int>(color >> shift & 0xFF); };
  const auto distance = [&](const NamedColor& named) {
    const int red = named.red - part(16);
    const int green = named.green - part(8);
    const int blue = named.blue - part(0);
    return red * red + green * green + blue * blue;
  };
  return std::min_element(std::begin(kColors), std::end(kColors),
                          [&](const NamedColor& a, const NamedColor& b) { return distance(a) < distance(b); })
      ->name;
}

constexpr std::string_view kFlowStart = R"({"ph":"s","id":)";
constexpr std::string_view kFlowEnd = R"({"ph":"f","bp":"e","id":)";
constexpr std::string_view kLaunchFlow = R"(,"name":"launch","cat":"launch")";
constexpr std::string_view kWaitFlow = R"(,"name":"wait","cat":"wait")";
constexpr std::string_view kEventFlow = R"(,"name":"event","cat":"event")";
constexpr std::string_view kBackwardFlow = R"(,"name":"fwdbwd","cat":"fwdbwd")";  // PyTorch's name for it

}  // namespace

void ChromeWriter::on_begin(const Summary&) {
  for (RememberedSlice& slice : alike_) slice.alike = 0;
  if (begun_) return;
  begun_ = true;
  output_.append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void ChromeWriter::finish(std::string_view other_data) {
  if (!begun_) on_begin({});
  output_.append("\n],\"otherData\":");
  output_.append(other_data);
  output_.append("}\n");
}

void ChromeWriter::next_event() {
  output_.append(any_event_ ? ",\n" : "\n");
  any_event_ = true;
}

void ChromeWriter::append_string(std::string_view text) { append_json_string(output_, text); }

void ChromeWriter::append_micros(int64_t ns) {
  char* at = output_.reserve(kDecimalRoom + 4);
  at = put_decimal(at, ns / 1000);
  const auto rest = static_cast<int>(ns % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  output_.commit(at);
}

const Fragment& ChromeWriter::place_of(uint32_t pid, uint32_t tid) {
  RememberedPlace& place = places_[tid % places_.size()];
  if (pid != place.pid || tid != place.tid) {
    scratch_.clear();
    scratch_.append(",\"pid\":");
    scratch_.append_number(pid);
    scratch_.append(",\"tid\":");
    scratch_.append_number(tid);
    scratch_.append(",\"ts\":");
    place.pid = pid;
    place.tid = tid;
    place.text.assign(scratch_.text());
  }
  pid_ = pid;
  tid_ = tid;
  place_ = &place.text;
  return place.text;
}

void ChromeWriter::append_metadata(uint32_t pid, uint32_t tid, std::string_view event, std::string_view key) {
  next_event();
  output_.append("{\"ph\":\"M\",\"name\":\"");
  output_.append(event);
  output_.append("\",\"pid\":");
  output_.append_number(pid);
  if (tid != 0) {
    output_.append(",\"tid\":");
    output_.append_number(tid);
  }
  output_.append(",\"args\":{\"");
  output_.append(key);
  output_.append("\":");
}

void ChromeWriter::on_process(const Process& process) {
  append_metadata(process.pid, 0, "process_name", "name");
  append_string(process.name);
  output_.append("}}");
  if (!process.label.empty()) {
    append_metadata(process.pid, 0, "process_labels", "labels");
    append_string(process.label);
    output_.append("}}");
  }
  append_metadata(process.pid, 0, "process_sort_index", "sort_index");
  output_.append_number(process.pid);
  output_.append("}}");
}

void ChromeWriter::on_track(const Track& track) {
  append_metadata(track.pid, track.tid, "thread_name", "name");
  append_string(track.name);
  output_.append(",\"device\":");
  append_string(track.device);
  if (track.context_id) {
    output_.append(",\"context\":");
    output_.append_number(*track.context_id);
  }
  if (track.process_id != 0) {
    output_.append(",\"process\":");
    output_.append_number(track.process_id);
  }
  output_.append("}}");
  append_metadata(track.pid, track.tid, "thread_sort_index", "sort_index");
  output_.append_number(track.tid);
  output_.append("}}");
}

void ChromeWriter::on_slice(const Slice& slice) {
  next_event();
  const RememberedSlice* const alike = slice.alike != 0 ? &remember(slice) : nullptr;
  if (alike != nullptr) {
    alike->start.append_to(output_);
  } else {
    append_start(output_, slice);
  }
  place_of(slice.pid, slice.tid).append_to(output_);
  append_micros(slice.start_ns);
  output_.append(",\"dur\":");
  append_micros(slice.duration_ns);
  size_t num_written = 0;
  if (alike != nullptr) {
    alike->arguments.append_to(output_);
    num_written = slice.num_alike_arguments;
  }
  append_arguments(output_, slice, num_written, slice.num_arguments);
  output_.append(slice.num_arguments > 0 ? std::string_view("}}") : "}");
  // The end of an arrow is a point in time. If two slices meet there, Catapult attaches the arrow to the slice that
  // ends, not to the one that starts. The point is therefore inside the slice, by less than the ns to which Perfetto
  // truncates. A slice without duration has no inside. The arrow of a waiting call must not start inside it either: the
  // launched activity may have no duration and start with the call.
  const bool has_inside = slice.duration_ns > 0;
  const bool starts_inside = has_inside && slice.category != Category::kSync;
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) {
    append_flow(kFlowStart, slice.first_flow_out + i, kLaunchFlow, slice.start_ns, starts_inside);
  }
  if (slice.flow_in != 0) append_flow(kFlowEnd, slice.flow_in, kLaunchFlow, slice.start_ns, has_inside);
  for (uint64_t i = 0; i < slice.num_events_out; ++i) {
    append_flow(kFlowStart, slice.first_event_out + i, kEventFlow, slice.start_ns, starts_inside);
  }
  if (slice.event_in != 0) append_flow(kFlowEnd, slice.event_in, kEventFlow, slice.start_ns, has_inside);
  for (uint64_t i = 0; i < slice.num_backwards_out; ++i) {
    append_flow(kFlowStart, slice.first_backward_out + i, kBackwardFlow, slice.start_ns, starts_inside);
  }
  if (slice.backward_in != 0) append_flow(kFlowEnd, slice.backward_in, kBackwardFlow, slice.start_ns, has_inside);
  // The arrow of a wait ends in the last ns of the wait and starts one ns earlier, because Perfetto requires the order
  // of time.
  const int64_t end_ns = slice.start_ns + slice.duration_ns;
  for (uint64_t i = 0; i < slice.num_waits_out; ++i) {
    append_flow(kFlowStart, slice.first_wait_out + i, kWaitFlow, end_ns - 2, true);
  }
  if (slice.wait_in != 0) append_flow(kFlowEnd, slice.wait_in, kWaitFlow, end_ns - 1, true);
}

const ChromeWriter::RememberedSlice& ChromeWriter::remember(const Slice& slice) {
  RememberedSlice& remembered = alike_[slice.alike % alike_.size()];
  if (remembered.alike != slice.alike) {
    TextOutput start;
    append_start(start, slice);
    TextOutput arguments;
    append_arguments(arguments, slice, 0, slice.num_alike_arguments);
    remembered = {slice.alike, Fragment(start.text()), Fragment(arguments.text())};
  }
  return remembered;
}

void ChromeWriter::append_start(Output& output, const Slice& slice) {
  output.append("{\"ph\":\"X\",\"name\":");
  append_json_string(output, slice.name);
  output.append(kCategoryText[static_cast<size_t>(slice.category)]);
  if (slice.color != 0) {  // only ops and other ranges, whose categories have no colour, state one
    output.append(",\"cname\":\"");
    output.append(color_name(slice.color));
    output.append('"');
  }
}

void ChromeWriter::append_arguments(Output& output, const Slice& slice, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Argument& argument = slice.arguments[i];
    output.append(i == 0 ? ",\"args\":{\"" : ",\"");
    output.append(argument.key);
    output.append("\":");
    switch (argument.kind) {
      case Argument::Kind::kNumber:
        output.append_number(argument.number);
        break;
      case Argument::Kind::kText:
        append_json_string(output, argument.text);
        break;
      case Argument::Kind::kNumbers:
        output.append('[');
        output.append(argument.text);
        output.append(']');
        break;
    }
  }
}

void ChromeWriter::append_flow(std::string_view start, uint64_t id, std::string_view name, int64_t time_ns,
                               bool inside) {
  next_event();
  output_.append(start);
  output_.append_number(id);
  output_.append(name);
  place_->append_to(output_);  // the place of the slice just written
  append_micros(time_ns);
  output_.append(inside ? "1}" : "}");
}

void ChromeWriter::on_value(const Value& value) {
  next_event();
  output_.append("{\"ph\":\"C\",\"name\":");
  append_string(value.counter_name);
  output_.append(",\"pid\":");
  output_.append_number(value.pid);
  output_.append(",\"ts\":");
  append_micros(value.time_ns);
  output_.append(",\"args\":{");
  append_string(value.unit);
  output_.append(':');
  output_.append_number(value.value);
  output_.append("}}");
}

void ChromeWriter::on_instant(const Instant& instant) {
  next_event();
  output_.append("{\"ph\":\"i\",\"s\":\"g\",\"name\":");
  append_string(instant.name);
  output_.append(",\"cat\":\"collector\"");
  place_of(pid_, tid_).append_to(output_);
  append_micros(instant.time_ns);
  if (!instant.details.empty()) {
    output_.append(",\"args\":{\"details\":");
    append_string(instant.details);
    output_.append('}');
  }
  output_.append('}');
}

}  // namespace collector::write
