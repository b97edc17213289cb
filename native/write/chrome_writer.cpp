#include "write/chrome_writer.h"

#include <array>

#include "write/json.h"

namespace collector::convert {
namespace {

// What follows a slice's name. Kernels and ops keep the colour that the viewer makes of their name, so that different
// ones look different; the others have one of Catapult's colours for their kind (Perfetto colours by name alone).
constexpr std::array<std::string_view, kCategories> kCategoryText = {
    R"(,"cat":"kernel")",
    R"(,"cat":"memcpy","cname":"rail_response")",
    R"(,"cat":"memset","cname":"olive")",
    R"(,"cat":"op")",
    R"(,"cat":"api","cname":"grey")",
    R"(,"cat":"sync","cname":"thread_state_sleeping")",
    R"(,"cat":"overhead","cname":"terrible")",
    R"(,"cat":"other")",
};

}  // namespace

std::string_view CategoryName(Category category) {
  constexpr std::array<std::string_view, kCategories> kNames = {"kernel", "memcpy", "memset",   "op",
                                                                "api",    "sync",   "overhead", "other"};
  return kNames[static_cast<size_t>(category)];
}

void ChromeWriter::Begin(const Summary&) {
  for (RememberedSlice& slice : alike_) slice.alike = 0;
  if (begun_) return;
  begun_ = true;
  output_.Append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void ChromeWriter::Finish(std::string_view other_data) {
  if (!begun_) Begin({});
  output_.Append("\n],\"otherData\":");
  output_.Append(other_data);
  output_.Append("}\n");
}

void ChromeWriter::NextEvent() {
  output_.Append(any_event_ ? ",\n" : "\n");
  any_event_ = true;
}

void ChromeWriter::AppendString(std::string_view text) { AppendJsonString(output_, text); }

void ChromeWriter::AppendMicros(int64_t ns) {
  char* at = output_.Reserve(kDecimalRoom + 4);
  at = PutDecimal(at, ns / 1000);
  const auto rest = static_cast<int>(ns % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  output_.Commit(at);
}

const Fragment& ChromeWriter::Place(uint32_t pid, uint32_t tid) {
  RememberedPlace& place = places_[tid % places_.size()];
  if (pid != place.pid || tid != place.tid) {
    place = {pid, tid, Fragment(",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"ts\":")};
  }
  pid_ = pid;
  tid_ = tid;
  place_ = &place.text;
  return place.text;
}

void ChromeWriter::AppendMetadata(uint32_t pid, uint32_t tid, std::string_view event, std::string_view key) {
  NextEvent();
  output_.Append("{\"ph\":\"M\",\"name\":\"");
  output_.Append(event);
  output_.Append("\",\"pid\":");
  output_.AppendNumber(pid);
  if (tid != 0) {
    output_.Append(",\"tid\":");
    output_.AppendNumber(tid);
  }
  output_.Append(",\"args\":{\"");
  output_.Append(key);
  output_.Append("\":");
}

void ChromeWriter::OnProcess(const Process& process) {
  AppendMetadata(process.pid, 0, "process_name", "name");
  AppendString(process.name);
  output_.Append("}}");
  if (!process.label.empty()) {
    AppendMetadata(process.pid, 0, "process_labels", "labels");
    AppendString(process.label);
    output_.Append("}}");
  }
  AppendMetadata(process.pid, 0, "process_sort_index", "sort_index");
  output_.AppendNumber(process.pid);
  output_.Append("}}");
}

void ChromeWriter::OnTrack(const Track& track) {
  AppendMetadata(track.pid, track.tid, "thread_name", "name");
  AppendString(track.name);
  output_.Append(",\"device\":");
  AppendString(track.device);
  output_.Append("}}");
  AppendMetadata(track.pid, track.tid, "thread_sort_index", "sort_index");
  output_.AppendNumber(track.tid);
  output_.Append("}}");
}

void ChromeWriter::OnSlice(const Slice& slice) {
  NextEvent();
  const RememberedSlice* const alike = slice.alike != 0 ? &Remembered(slice) : nullptr;
  if (alike != nullptr) {
    alike->start.AppendTo(output_);
  } else {
    AppendStart(output_, slice);
  }
  Place(slice.pid, slice.tid).AppendTo(output_);
  AppendMicros(slice.start_ns);
  output_.Append(",\"dur\":");
  AppendMicros(slice.duration_ns);
  size_t num_written = 0;
  if (alike != nullptr) {
    alike->arguments.AppendTo(output_);
    num_written = slice.num_alike_arguments;
  }
  AppendArguments(output_, slice, num_written, slice.num_arguments);
  output_.Append(slice.num_arguments > 0 ? std::string_view("}}") : "}");
  // An arrow's end is a moment, of which Catapult makes the slice that ends then rather than the one that starts then:
  // so it lies inside by less than the ns at which Perfetto cuts. What has no length has no inside, nor may a call that
  // waits lie behind what it caused: that may have no length and start with it.
  const bool has_inside = slice.duration_ns > 0;
  const bool starts_inside = has_inside && slice.category != Category::kSync;
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) {
    AppendFlow("{\"ph\":\"s\",\"id\":", slice.first_flow_out + i, slice.start_ns, starts_inside);
  }
  if (slice.flow_in != 0) AppendFlow("{\"ph\":\"f\",\"bp\":\"e\",\"id\":", slice.flow_in, slice.start_ns, has_inside);
}

const ChromeWriter::RememberedSlice& ChromeWriter::Remembered(const Slice& slice) {
  RememberedSlice& remembered = alike_[slice.alike % alike_.size()];
  if (remembered.alike != slice.alike) {
    TextOutput start;
    AppendStart(start, slice);
    TextOutput arguments;
    AppendArguments(arguments, slice, 0, slice.num_alike_arguments);
    remembered = {slice.alike, Fragment(start.text()), Fragment(arguments.text())};
  }
  return remembered;
}

void ChromeWriter::AppendStart(Output& output, const Slice& slice) {
  output.Append("{\"ph\":\"X\",\"name\":");
  AppendJsonString(output, slice.name);
  output.Append(kCategoryText[static_cast<size_t>(slice.category)]);
}

void ChromeWriter::AppendArguments(Output& output, const Slice& slice, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Argument& argument = slice.arguments[i];
    output.Append(i == 0 ? ",\"args\":{\"" : ",\"");
    output.Append(argument.key);
    output.Append("\":");
    switch (argument.kind) {
      case Argument::Kind::kNumber:
        output.AppendNumber(argument.number);
        break;
      case Argument::Kind::kText:
        AppendJsonString(output, argument.text);
        break;
      case Argument::Kind::kNumbers:
        output.Append('[');
        output.Append(argument.text);
        output.Append(']');
        break;
    }
  }
}

void ChromeWriter::AppendFlow(std::string_view start, uint64_t id, int64_t time_ns, bool inside) {
  NextEvent();
  output_.Append(start);
  output_.AppendNumber(id);
  output_.Append(",\"name\":\"launch\",\"cat\":\"launch\"");
  place_->AppendTo(output_);  // that of the slice just written
  AppendMicros(time_ns);
  output_.Append(inside ? "1}" : "}");
}

void ChromeWriter::OnValue(const Value& value) {
  NextEvent();
  output_.Append("{\"ph\":\"C\",\"name\":");
  AppendString(value.counter_name);
  output_.Append(",\"pid\":");
  output_.AppendNumber(value.pid);
  output_.Append(",\"ts\":");
  AppendMicros(value.time_ns);
  output_.Append(",\"args\":{\"");
  output_.Append(value.unit);
  output_.Append("\":");
  output_.AppendNumber(value.value);
  output_.Append("}}");
}

void ChromeWriter::OnInstant(const Instant& instant) {
  NextEvent();
  output_.Append("{\"ph\":\"i\",\"s\":\"g\",\"name\":");
  AppendString(instant.name);
  output_.Append(",\"cat\":\"collector\"");
  Place(pid_, tid_).AppendTo(output_);
  AppendMicros(instant.time_ns);
  if (!instant.details.empty()) {
    output_.Append(",\"args\":{\"details\":");
    AppendString(instant.details);
    output_.Append('}');
  }
  output_.Append('}');
}

}  // namespace collector::convert
