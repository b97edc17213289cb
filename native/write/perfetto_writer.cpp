#include "write/perfetto_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
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

constexpr size_t kVarintRoom = 10;

char* PutVarint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

void PutNumber(Output& to, uint32_t number, uint64_t value) {
  char* const at = to.Reserve(2 * kVarintRoom);
  to.Commit(PutVarint(PutVarint(at, Tag(number, kVarint)), value));
}

void PutSigned(Output& to, uint32_t number, int64_t value) { PutNumber(to, number, static_cast<uint64_t>(value)); }

void PutFixed64(Output& to, uint32_t number, uint64_t value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest byte comes first");
  char* const at = PutVarint(to.Reserve(kVarintRoom + sizeof(value)), Tag(number, kFixed64));
  std::memcpy(at, &value, sizeof(value));
  to.Commit(at + sizeof(value));
}

void PutBytes(Output& to, uint32_t number, std::string_view bytes) {
  char* at = to.Reserve(2 * kVarintRoom + bytes.size());
  at = PutVarint(PutVarint(at, Tag(number, kBytes)), bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  to.Commit(at + bytes.size());
}

bool IsAscii(std::string_view text) {
  uint64_t all = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    all |= eight;
  }
  for (; at < text.size(); ++at) all |= static_cast<unsigned char>(text[at]);
  return (all & 0x8080808080808080u) == 0;
}

// Text as protobuf wants it: what is not UTF-8 becomes U+FFFD.
void PutText(Output& to, uint32_t number, std::string_view text) {
  if (IsAscii(text)) {
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
void PutNumbers(Output& to, std::string_view text) {
  TextOutput element;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t number = 0;
    at = std::from_chars(at, end, number).ptr;
    element.Clear();
    PutSigned(element, field::kIntValue, number);
    PutBytes(to, field::kArrayValues, element.text());
    at = std::find(at, end, ',');
    if (at < end) ++at;
  }
}

}  // namespace

uint64_t PerfettoWriter::Interned::Number(std::string_view text, uint32_t field, Output& news) {
  const uint32_t hash = NameTable::Hash(text);
  const uint32_t known = numbers_.Find(text, hash);
  if (known != NameTable::kNone) return uint64_t{known} + 1;
  num_bytes_ += text.size() + sizeof(std::string);
  const uint64_t number = uint64_t{numbers_.Insert(Keep(text), hash).number} + 1;
  entry_.Clear();
  PutNumber(entry_, field::kIid, number);
  PutText(entry_, field::kText, text);
  PutBytes(news, field, entry_.text());
  return number;
}

void PerfettoWriter::Interned::Clear() {
  numbers_.Clear();
  for (std::string& block : blocks_) block.clear();
  num_blocks_ = 0;
  num_bytes_ = 0;
}

std::string_view PerfettoWriter::Interned::Keep(std::string_view text) {
  constexpr size_t kBlockBytes = 1 << 16;
  const auto has_room = [&](const std::string& block) { return block.capacity() - block.size() >= text.size(); };
  while (num_blocks_ == 0 || !has_room(blocks_[num_blocks_ - 1])) {
    if (num_blocks_ == blocks_.size()) blocks_.emplace_back();
    std::string& block = blocks_[num_blocks_++];
    if (block.empty()) block.reserve(std::max(kBlockBytes, text.size()));
  }
  std::string& block = blocks_[num_blocks_ - 1];
  block.append(text);
  return std::string_view(block).substr(block.size() - text.size());
}

void PerfettoWriter::Begin(const Summary& summary) {
  Forget();
  if (described_clock_) return;
  described_clock_ = true;
  TextOutput snapshot;
  for (const auto& [clock, time] : {std::pair<uint64_t, uint64_t>{kTraceClock, 0}, {kWallClock, summary.base_ns}}) {
    scratch_.Clear();
    PutNumber(scratch_, field::kClockId, clock);
    PutNumber(scratch_, field::kClockTime, time);
    PutBytes(snapshot, field::kClocks, scratch_.text());
  }
  scratch_.Clear();
  PutBytes(scratch_, field::kClockSnapshot, snapshot.text());
  WritePacket(scratch_.text(), kNone);
  // Perfetto's pages made before the summer of 2026 do not know these two, and show first what has the most slices.
  TextOutput root;
  PutNumber(root, field::kUuid, kRootUuid);
  PutNumber(root, field::kProcessOrdering, kAllOrderedByRank);
  PutNumber(root, field::kThreadOrdering, kAllOrderedByRank);
  scratch_.Clear();
  PutBytes(scratch_, field::kTrackDescriptor, root.text());
  WritePacket(scratch_.text(), kNone);
}

void PerfettoWriter::OnProcess(const Process& process) {
  TextOutput descriptor;
  PutNumber(descriptor, field::kPid, process.pid);
  PutText(descriptor, field::kProcessName, process.name);
  if (!process.label.empty()) PutText(descriptor, field::kProcessLabels, process.label);
  TextOutput track;
  PutNumber(track, field::kUuid, ProcessUuid(process.pid));
  PutBytes(track, field::kProcess, descriptor.text());
  PutNumber(track, field::kChildOrdering, kOrderedByRank);
  PutSigned(track, field::kSiblingRank, process.pid);
  scratch_.Clear();
  PutBytes(scratch_, field::kTrackDescriptor, track.text());
  WritePacket(scratch_.text(), kNone);
}

void PerfettoWriter::OnTrack(const Track& track) {
  TextOutput descriptor;
  PutNumber(descriptor, field::kUuid, OpenTrackOf(track.tid).uuid);
  if (track.is_copies) {
    BeginCopies(track.pid);
    PutNumber(descriptor, field::kParentUuid, CopiesUuid(track.pid));
    PutText(descriptor, field::kName, track.name);
  } else {
    TextOutput thread;
    PutNumber(thread, field::kPid, track.pid);
    PutNumber(thread, field::kTid, track.tid);
    PutText(thread, field::kThreadName, track.name);
    PutNumber(descriptor, field::kParentUuid, ProcessUuid(track.pid));
    PutBytes(descriptor, field::kThread, thread.text());
  }
  PutSigned(descriptor, field::kSiblingRank, track.tid);
  scratch_.Clear();
  PutBytes(scratch_, field::kTrackDescriptor, descriptor.text());
  WritePacket(scratch_.text(), kNone);
}

// The track that holds a process's rows of copies, which a viewer shows closed. Not being a thread it comes after the
// counters; of the pages before the summer of 2026, which order both by name, because of theirs.
void PerfettoWriter::BeginCopies(uint32_t pid) {
  if (!pids_with_copies_.insert(pid).second) return;
  TextOutput descriptor;
  PutNumber(descriptor, field::kUuid, CopiesUuid(pid));
  PutNumber(descriptor, field::kParentUuid, ProcessUuid(pid));
  PutText(descriptor, field::kName, "copies");
  PutNumber(descriptor, field::kChildOrdering, kOrderedByRank);
  PutSigned(descriptor, field::kSiblingRank, kCopiesRank);
  scratch_.Clear();
  PutBytes(scratch_, field::kTrackDescriptor, descriptor.text());
  WritePacket(scratch_.text(), kNone);
}

void PerfettoWriter::OnSlice(const Slice& slice) {
  OpenTrack& track = OpenTrackOf(slice.tid);
  EndSlices(track, slice.start_ns);
  StartAnew();
  const RememberedSlice* const alike = slice.alike != 0 ? &Remembered(slice) : nullptr;
  event_.Clear();
  PutNumber(event_, field::kType, kSliceBegin);
  PutNumber(event_, field::kTrackUuid, track.uuid);
  alike != nullptr ? alike->start.AppendTo(event_) : AppendStart(event_, slice);
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) PutFixed64(event_, field::kFlowIds, slice.first_flow_out + i);
  if (slice.flow_in != 0) PutFixed64(event_, field::kTerminatingFlowIds, slice.flow_in);
  if (alike != nullptr) alike->arguments.AppendTo(event_);
  AppendArguments(event_, slice, alike != nullptr ? slice.num_alike_arguments : 0, slice.num_arguments);
  WriteEvent(slice.start_ns, true);
  track.ends.push_back(slice.start_ns + slice.duration_ns);
}

// What it consists of is interned by now, or is by the packet at hand.
const PerfettoWriter::RememberedSlice& PerfettoWriter::Remembered(const Slice& slice) {
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

void PerfettoWriter::Forget() {
  for (RememberedSlice& slice : alike_) slice.alike = 0;
}

void PerfettoWriter::AppendStart(Output& to, const Slice& slice) {
  PutNumber(to, field::kCategoryIids, categories_.Number(CategoryName(slice.category), field::kCategories, interned_));
  PutNumber(to, field::kNameIid, names_.Number(slice.name, field::kEventNames, interned_));
}

void PerfettoWriter::AppendArguments(Output& to, const Slice& slice, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Argument& argument = slice.arguments[i];
    scratch_.Clear();
    PutNumber(scratch_, field::kKeyIid, keys_.Number(argument.key, field::kAnnotationKeys, interned_));
    if (argument.kind == Argument::Kind::kNumber) {
      PutSigned(scratch_, field::kIntValue, argument.number);
    } else if (argument.kind == Argument::Kind::kNumbers) {
      PutNumbers(scratch_, argument.text);
    } else {
      PutNumber(scratch_, field::kTextIid, texts_.Number(argument.text, field::kAnnotationTexts, interned_));
    }
    PutBytes(to, field::kDebugAnnotations, scratch_.text());
  }
}

void PerfettoWriter::OnCounterTrack(const CounterTrack& counter) {
  TextOutput unit;
  PutText(unit, field::kUnitName, counter.unit);
  TextOutput track;
  PutNumber(track, field::kUuid, CounterUuid(counter.id));
  PutNumber(track, field::kParentUuid, ProcessUuid(counter.pid));
  PutText(track, field::kName, counter.name);
  PutBytes(track, field::kCounter, unit.text());
  PutSigned(track, field::kSiblingRank, kCountersRank);
  scratch_.Clear();
  PutBytes(scratch_, field::kTrackDescriptor, track.text());
  WritePacket(scratch_.text(), kNone);
}

void PerfettoWriter::OnValue(const Value& value) {
  event_.Clear();
  PutNumber(event_, field::kType, kCounterEvent);
  PutNumber(event_, field::kTrackUuid, CounterUuid(value.counter_id));
  PutSigned(event_, field::kCounterValue, value.value);
  WriteEvent(value.time_ns, false);
}

void PerfettoWriter::OnInstant(const Instant& instant) {
  if (!described_instants_) {
    described_instants_ = true;
    TextOutput track;
    PutNumber(track, field::kUuid, kInstantsUuid);
    PutText(track, field::kName, "Marks");
    scratch_.Clear();
    PutBytes(scratch_, field::kTrackDescriptor, track.text());
    WritePacket(scratch_.text(), kNone);
  }
  StartAnew();
  event_.Clear();
  PutNumber(event_, field::kType, kInstant);
  PutNumber(event_, field::kTrackUuid, kInstantsUuid);
  PutNumber(event_, field::kCategoryIids, categories_.Number("collector", field::kCategories, interned_));
  PutNumber(event_, field::kNameIid, names_.Number(instant.name, field::kEventNames, interned_));
  if (!instant.details.empty()) {
    scratch_.Clear();
    PutNumber(scratch_, field::kKeyIid, keys_.Number("details", field::kAnnotationKeys, interned_));
    PutNumber(scratch_, field::kTextIid, texts_.Number(instant.details, field::kAnnotationTexts, interned_));
    PutBytes(event_, field::kDebugAnnotations, scratch_.text());
  }
  WriteEvent(instant.time_ns, true);
}

void PerfettoWriter::End(const Summary&) {
  for (OpenTrack& track : open_tracks_) EndSlices(track, std::numeric_limits<int64_t>::max());
}

void PerfettoWriter::AddMetadata(std::string_view name, std::string_view text) {
  TextOutput entry;
  PutText(entry, field::kMetadataName, name);
  PutText(entry, field::kMetadataText, text);
  TextOutput bundle;
  PutBytes(bundle, field::kMetadata, entry.text());
  scratch_.Clear();
  PutBytes(scratch_, field::kChromeEvents, bundle.text());
  WritePacket(scratch_.text(), kNone);
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
    event_.Clear();
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
  Forget();
  anew_ = true;
}

void PerfettoWriter::WriteEvent(int64_t time_ns, bool uses_interned) {
  packet_.Clear();
  PutSigned(packet_, field::kTimestamp, time_ns);
  if (!interned_.empty()) {
    PutBytes(packet_, field::kInternedData, interned_.text());
    interned_.Clear();
  }
  PutBytes(packet_, field::kTrackEvent, event_.text());
  WritePacket(packet_.text(), uses_interned ? kNeedsState : kNone);
}

void PerfettoWriter::WritePacket(std::string_view body, uint64_t sequence_flags) {
  if (anew_) sequence_flags |= kCleared;
  anew_ = false;
  char frame[4 * kVarintRoom];
  char* end = PutVarint(PutVarint(frame, Tag(field::kSequenceId, kVarint)), kSequence);
  if (sequence_flags != kNone) end = PutVarint(PutVarint(end, Tag(field::kSequenceFlags, kVarint)), sequence_flags);
  const auto frame_size = static_cast<size_t>(end - frame);
  // In one go, so that every piece that the output hands on is made of whole packets.
  char head[2 * kVarintRoom];
  end = PutVarint(PutVarint(head, Tag(field::kTracePacket, kBytes)), body.size() + frame_size);
  const auto head_size = static_cast<size_t>(end - head);
  // In one go, so that every piece that the output hands on is made of whole packets, and of as many as fit.
  char* to = output_.Reserve(head_size + body.size() + frame_size);
  std::memcpy(to, head, head_size);
  to += head_size;
  std::memcpy(to, body.data(), body.size());
  std::memcpy(to + body.size(), frame, frame_size);
  output_.Commit(to + body.size() + frame_size);
}

}  // namespace collector::convert
