#include "write/perfetto_writer.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "stepstats/utf8.h"
#include "stepstats/wire.h"

namespace collector::convert {
namespace {

// Field numbers of Perfetto's messages, as far as they are written here.
namespace field {
constexpr uint32_t kTracePacket = 1;
// TracePacket
constexpr uint32_t kChromeEvents = 5, kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
// TrackEvent
constexpr uint32_t kCategoryIids = 3, kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                   kCounterValue = 30, kFlowIds = 47, kTerminatingFlowIds = 48;
// DebugAnnotation
constexpr uint32_t kKeyIid = 1, kIntValue = 4, kArrayValues = 12, kTextIid = 17;
// InternedData
constexpr uint32_t kCategories = 1, kEventNames = 2, kAnnotationKeys = 3, kAnnotationTexts = 29;
// Every interned text
constexpr uint32_t kIid = 1, kText = 2;
// TrackDescriptor
constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8, kChildOrdering = 11,
                   kSiblingRank = 12, kProcessOrdering = 19, kThreadOrdering = 20;
// ProcessDescriptor, ThreadDescriptor, CounterDescriptor
constexpr uint32_t kPid = 1, kProcessName = 6, kProcessLabels = 8, kTid = 2, kThreadName = 5, kUnitName = 6;
// ClockSnapshot, Clock
constexpr uint32_t kClocks = 1, kClockId = 1, kClockTime = 2;
// ChromeEventBundle, ChromeMetadata
constexpr uint32_t kMetadata = 2, kMetadataName = 1, kMetadataText = 2;
}  // namespace field

enum EventType : uint64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterEvent = 4 };
enum SequenceFlags : uint64_t { kNone = 0, kCleared = 1, kNeedsState = 2 };
constexpr uint64_t kOrderedByRank = 3;     // TrackDescriptor.ChildTracksOrdering.EXPLICIT
constexpr uint64_t kAllOrderedByRank = 1;  // TrackDescriptor.ProcessOrdering, .ThreadOrdering
// Of a process's children: threads by their numbers, counters, the closed track.
constexpr int64_t kCountersRank = 1 << 30, kCopiesRank = kCountersRank + 1;
constexpr uint64_t kSequence = 1;  // all packets come from one writer
constexpr uint64_t kWallClock = 1, kTraceClock = 6;
// Texts held in memory before everything interned is dropped: some ten thousand long kernel names.
constexpr size_t kMaxInternedBytes = 8 << 20;

// Every kind of track has numbers of its own.
constexpr uint64_t ProcessUuid(uint32_t pid) { return 4 * uint64_t{pid} + 1; }
constexpr uint64_t ThreadUuid(size_t index) { return 4 * uint64_t{index} + 2; }
constexpr uint64_t CounterUuid(uint32_t id) { return 4 * uint64_t{id} + 3; }
constexpr uint64_t CopiesUuid(uint32_t pid) { return 4 * uint64_t{pid} + 4; }  // 8 and more
constexpr uint64_t kInstantsUuid = 4;
constexpr uint64_t kRootUuid = 0;

void PutVarint(std::string& to, uint64_t value) {
  while (value >= 0x80) {
    to.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  to.push_back(static_cast<char>(value));
}

void PutNumber(std::string& to, uint32_t number, uint64_t value) {
  PutVarint(to, Tag(number, kVarint));
  PutVarint(to, value);
}

void PutSigned(std::string& to, uint32_t number, int64_t value) { PutNumber(to, number, static_cast<uint64_t>(value)); }

void PutFixed64(std::string& to, uint32_t number, uint64_t value) {
  PutVarint(to, Tag(number, kFixed64));
  for (int shift = 0; shift < 64; shift += 8) to.push_back(static_cast<char>(value >> shift));
}

void PutBytes(std::string& to, uint32_t number, std::string_view bytes) {
  PutVarint(to, Tag(number, kBytes));
  PutVarint(to, bytes.size());
  to.append(bytes);
}

// Text as protobuf wants it: what is not UTF-8 becomes U+FFFD.
void PutText(std::string& to, uint32_t number, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; })) {
    PutBytes(to, number, text);
    return;
  }
  std::string mended;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t at = 0; at < text.size();) {
    uint32_t code_point = 0;
    const size_t length = bytes[at] < 0x80 ? 1 : DecodeUtf8(bytes + at, text.size() - at, code_point);
    mended.append(length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length));
    at += length == 0 ? BrokenUtf8Length(bytes + at, text.size() - at) : length;
  }
  PutBytes(to, number, mended);
}

// Integers with commas between, as the elements of an array.
void PutNumbers(std::string& to, std::string_view text) {
  std::string element;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t number = 0;
    at = std::from_chars(at, end, number).ptr;
    element.clear();
    PutSigned(element, field::kIntValue, number);
    PutBytes(to, field::kArrayValues, element);
    at = std::find(at, end, ',');
    if (at < end) ++at;
  }
}

}  // namespace

uint64_t PerfettoWriter::Interned::Number(std::string_view text, uint32_t field, std::string& news) {
  const uint32_t known = numbers_.Find(text);
  if (known != NameTable::kNone) return uint64_t{known} + 1;
  texts_.emplace_back(text);
  num_bytes_ += text.size() + sizeof(std::string);
  const uint64_t number = uint64_t{numbers_.Insert(texts_.back()).number} + 1;
  std::string entry;
  PutNumber(entry, field::kIid, number);
  PutText(entry, field::kText, text);
  PutBytes(news, field, entry);
  return number;
}

void PerfettoWriter::Interned::Clear() {
  numbers_ = NameTable();
  texts_.clear();
  num_bytes_ = 0;
}

void PerfettoWriter::Begin(const Summary& summary) {
  if (described_clock_) return;
  described_clock_ = true;
  std::string snapshot;
  for (const auto& [clock, time] : {std::pair<uint64_t, uint64_t>{kTraceClock, 0}, {kWallClock, summary.base_ns}}) {
    scratch_.clear();
    PutNumber(scratch_, field::kClockId, clock);
    PutNumber(scratch_, field::kClockTime, time);
    PutBytes(snapshot, field::kClocks, scratch_);
  }
  scratch_.clear();
  PutBytes(scratch_, field::kClockSnapshot, snapshot);
  WritePacket(scratch_, kNone);
  // Perfetto's pages made before the summer of 2026 do not know these two, and show first what has the most slices.
  std::string root;
  PutNumber(root, field::kUuid, kRootUuid);
  PutNumber(root, field::kProcessOrdering, kAllOrderedByRank);
  PutNumber(root, field::kThreadOrdering, kAllOrderedByRank);
  scratch_.clear();
  PutBytes(scratch_, field::kTrackDescriptor, root);
  WritePacket(scratch_, kNone);
}

void PerfettoWriter::OnProcess(const Process& process) {
  std::string descriptor;
  PutNumber(descriptor, field::kPid, process.pid);
  PutText(descriptor, field::kProcessName, process.name);
  if (!process.label.empty()) PutText(descriptor, field::kProcessLabels, process.label);
  std::string track;
  PutNumber(track, field::kUuid, ProcessUuid(process.pid));
  PutBytes(track, field::kProcess, descriptor);
  PutNumber(track, field::kChildOrdering, kOrderedByRank);
  PutSigned(track, field::kSiblingRank, process.pid);
  scratch_.clear();
  PutBytes(scratch_, field::kTrackDescriptor, track);
  WritePacket(scratch_, kNone);
}

void PerfettoWriter::OnTrack(const Track& track) {
  std::string descriptor;
  PutNumber(descriptor, field::kUuid, OpenTrackOf(track.tid).uuid);
  if (track.is_copies) {
    BeginCopies(track.pid);
    PutNumber(descriptor, field::kParentUuid, CopiesUuid(track.pid));
    PutText(descriptor, field::kName, track.name);
  } else {
    std::string thread;
    PutNumber(thread, field::kPid, track.pid);
    PutNumber(thread, field::kTid, track.tid);
    PutText(thread, field::kThreadName, track.name);
    PutNumber(descriptor, field::kParentUuid, ProcessUuid(track.pid));
    PutBytes(descriptor, field::kThread, thread);
  }
  PutSigned(descriptor, field::kSiblingRank, track.tid);
  scratch_.clear();
  PutBytes(scratch_, field::kTrackDescriptor, descriptor);
  WritePacket(scratch_, kNone);
}

// The track that holds a process's rows of copies, which a viewer shows closed. Not being a thread it comes after the
// counters; of the pages before the summer of 2026, which order both by name, because of theirs.
void PerfettoWriter::BeginCopies(uint32_t pid) {
  if (!pids_with_copies_.insert(pid).second) return;
  std::string descriptor;
  PutNumber(descriptor, field::kUuid, CopiesUuid(pid));
  PutNumber(descriptor, field::kParentUuid, ProcessUuid(pid));
  PutText(descriptor, field::kName, "copies");
  PutNumber(descriptor, field::kChildOrdering, kOrderedByRank);
  PutSigned(descriptor, field::kSiblingRank, kCopiesRank);
  scratch_.clear();
  PutBytes(scratch_, field::kTrackDescriptor, descriptor);
  WritePacket(scratch_, kNone);
}

void PerfettoWriter::OnSlice(const Slice& slice) {
  OpenTrack& track = OpenTrackOf(slice.tid);
  EndSlices(track, slice.start_ns);
  StartAnew();
  event_.clear();
  PutNumber(event_, field::kType, kSliceBegin);
  PutNumber(event_, field::kTrackUuid, track.uuid);
  PutNumber(event_, field::kCategoryIids,
            categories_.Number(CategoryName(slice.category), field::kCategories, interned_));
  PutNumber(event_, field::kNameIid, names_.Number(slice.name, field::kEventNames, interned_));
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) PutFixed64(event_, field::kFlowIds, slice.first_flow_out + i);
  if (slice.flow_in != 0) PutFixed64(event_, field::kTerminatingFlowIds, slice.flow_in);
  AppendArguments(slice);
  WriteEvent(slice.start_ns, true);
  track.ends.push_back(slice.start_ns + slice.duration_ns);
}

void PerfettoWriter::AppendArguments(const Slice& slice) {
  for (size_t i = 0; i < slice.num_arguments; ++i) {
    const Argument& argument = slice.arguments[i];
    scratch_.clear();
    PutNumber(scratch_, field::kKeyIid, keys_.Number(argument.key, field::kAnnotationKeys, interned_));
    if (argument.kind == Argument::Kind::kNumber) {
      PutSigned(scratch_, field::kIntValue, argument.number);
    } else if (argument.kind == Argument::Kind::kNumbers) {
      PutNumbers(scratch_, argument.text);
    } else {
      PutNumber(scratch_, field::kTextIid, texts_.Number(argument.text, field::kAnnotationTexts, interned_));
    }
    PutBytes(event_, field::kDebugAnnotations, scratch_);
  }
}

void PerfettoWriter::OnCounterTrack(const CounterTrack& counter) {
  std::string unit;
  PutText(unit, field::kUnitName, counter.unit);
  std::string track;
  PutNumber(track, field::kUuid, CounterUuid(counter.id));
  PutNumber(track, field::kParentUuid, ProcessUuid(counter.pid));
  PutText(track, field::kName, counter.name);
  PutBytes(track, field::kCounter, unit);
  PutSigned(track, field::kSiblingRank, kCountersRank);
  scratch_.clear();
  PutBytes(scratch_, field::kTrackDescriptor, track);
  WritePacket(scratch_, kNone);
}

void PerfettoWriter::OnValue(const Value& value) {
  event_.clear();
  PutNumber(event_, field::kType, kCounterEvent);
  PutNumber(event_, field::kTrackUuid, CounterUuid(value.counter_id));
  PutSigned(event_, field::kCounterValue, value.value);
  WriteEvent(value.time_ns, false);
}

void PerfettoWriter::OnInstant(const Instant& instant) {
  if (!described_instants_) {
    described_instants_ = true;
    std::string track;
    PutNumber(track, field::kUuid, kInstantsUuid);
    PutText(track, field::kName, "Marks");
    scratch_.clear();
    PutBytes(scratch_, field::kTrackDescriptor, track);
    WritePacket(scratch_, kNone);
  }
  StartAnew();
  event_.clear();
  PutNumber(event_, field::kType, kInstant);
  PutNumber(event_, field::kTrackUuid, kInstantsUuid);
  PutNumber(event_, field::kCategoryIids, categories_.Number("collector", field::kCategories, interned_));
  PutNumber(event_, field::kNameIid, names_.Number(instant.name, field::kEventNames, interned_));
  if (!instant.details.empty()) {
    scratch_.clear();
    PutNumber(scratch_, field::kKeyIid, keys_.Number("details", field::kAnnotationKeys, interned_));
    PutNumber(scratch_, field::kTextIid, texts_.Number(instant.details, field::kAnnotationTexts, interned_));
    PutBytes(event_, field::kDebugAnnotations, scratch_);
  }
  WriteEvent(instant.time_ns, true);
}

void PerfettoWriter::End(const Summary&) {
  for (OpenTrack& track : open_tracks_) EndSlices(track, std::numeric_limits<int64_t>::max());
}

void PerfettoWriter::AddMetadata(std::string_view name, std::string_view text) {
  std::string entry;
  PutText(entry, field::kMetadataName, name);
  PutText(entry, field::kMetadataText, text);
  std::string bundle;
  PutBytes(bundle, field::kMetadata, entry);
  scratch_.clear();
  PutBytes(scratch_, field::kChromeEvents, bundle);
  WritePacket(scratch_, kNone);
}

size_t PerfettoWriter::ThreadIndex(uint32_t tid) {
  if (tid == last_tid_ && !open_tracks_.empty()) return last_index_;
  const auto [found, is_new] = thread_index_.try_emplace(tid, open_tracks_.size());
  if (is_new) open_tracks_.push_back({ThreadUuid(found->second), {}});
  last_tid_ = tid;
  last_index_ = found->second;
  return last_index_;
}

void PerfettoWriter::EndSlices(OpenTrack& track, int64_t time_ns) {
  while (!track.ends.empty() && track.ends.back() <= time_ns) {
    event_.clear();
    PutNumber(event_, field::kType, kSliceEnd);
    PutNumber(event_, field::kTrackUuid, track.uuid);
    const int64_t end_ns = track.ends.back();
    track.ends.pop_back();
    WriteEvent(end_ns, false);
  }
}

// Interned text belongs to the packet that first needs it, so this comes before that packet's first lookup.
void PerfettoWriter::StartAnew() {
  if (names_.num_bytes() + keys_.num_bytes() + texts_.num_bytes() <= kMaxInternedBytes) return;
  for (Interned* table : {&names_, &categories_, &keys_, &texts_}) table->Clear();
  anew_ = true;
}

void PerfettoWriter::WriteEvent(int64_t time_ns, bool uses_interned) {
  packet_.clear();
  PutSigned(packet_, field::kTimestamp, time_ns);
  if (!interned_.empty()) {
    PutBytes(packet_, field::kInternedData, interned_);
    interned_.clear();
  }
  PutBytes(packet_, field::kTrackEvent, event_);
  WritePacket(packet_, uses_interned ? kNeedsState : kNone);
}

void PerfettoWriter::WritePacket(std::string_view body, uint64_t sequence_flags) {
  frame_.clear();
  PutNumber(frame_, field::kSequenceId, kSequence);
  if (anew_) sequence_flags |= kCleared;
  anew_ = false;
  if (sequence_flags != kNone) PutNumber(frame_, field::kSequenceFlags, sequence_flags);
  head_.clear();
  PutVarint(head_, Tag(field::kTracePacket, kBytes));
  PutVarint(head_, body.size() + frame_.size());
  // In one go, so that every piece that the output hands on is made of whole packets.
  output_.Reserve(head_.size() + body.size() + frame_.size());
  output_.Append(head_);
  output_.Append(body);
  output_.Append(frame_);
}

}  // namespace collector::convert
