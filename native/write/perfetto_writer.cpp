#include "write/perfetto_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "stepstats/utf8.h"
#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"

namespace collector::write {

using draw::Argument;
using draw::CounterTrack;
using draw::Instant;
using draw::Process;
using draw::Slice;
using draw::Summary;
using draw::Track;
using draw::Value;
using stepstats::kBytes;
using stepstats::kFixed64;
using stepstats::kVarint;
using stepstats::NameTable;
using stepstats::varint_bytes;

namespace {

// The field numbers of Perfetto's messages that are written here.
namespace field {
constexpr uint32_t kTracePacket = 1;
// TracePacket
constexpr uint32_t kChromeEvents = 5, kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
// TrackEvent
constexpr uint32_t kCategoryIids = 3, kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kEventName = 23,
                   kCounterValue = 30, kFlowIds = 47, kTerminatingFlowIds = 48;
// DebugAnnotation
constexpr uint32_t kKeyIid = 1, kIntValue = 4, kTextValue = 6, kArrayValues = 12, kTextIid = 17;
// InternedData
constexpr uint32_t kCategories = 1, kEventNames = 2, kAnnotationKeys = 3, kAnnotationTexts = 29;
// Every interned text.
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
// The order of a process's children: threads by their numbers, counters, the collapsed track.
constexpr int64_t kCountersRank = 1 << 30, kCopiesRank = kCountersRank + 1;
constexpr uint64_t kSequence = 1;  // all packets come from one writer
constexpr uint64_t kWallClock = 1, kTraceClock = 6;
// Size of the texts in memory at which all interned texts are dropped: some thousand long kernel names, which fit into
// a processor's cache. If most texts occur only once, a look-up in a larger table would take longer than writing the
// text.
constexpr size_t kMaxInternedBytes = 1 << 20;

// Each kind of track has its own range of numbers.
constexpr uint64_t process_uuid(uint32_t pid) { return 4 * uint64_t{pid} + 1; }
constexpr uint64_t thread_uuid(size_t index) { return 4 * uint64_t{index} + 2; }
constexpr uint64_t counter_uuid(uint32_t id) { return 4 * uint64_t{id} + 3; }
constexpr uint64_t copies_uuid(uint32_t pid) { return 4 * uint64_t{pid} + 4; }  // 8 and more
constexpr uint64_t kInstantsUuid = 4;
constexpr uint64_t kRootUuid = 0;

constexpr size_t kVarintRoom = 10;
constexpr size_t kTagBytes = 1;  // of fields 1 to 15

char* put_varint(char* to, uint64_t value) { return stepstats::write_varint(value, to); }

// The tag of a field from 1 to 15.
char* put_tag(char* to, uint32_t number, stepstats::WireType type) {
  *to = static_cast<char>(make_tag(number, type));
  return to + kTagBytes;
}

void put_number(Output& to, uint32_t number, uint64_t value) {
  char* const at = to.reserve(2 * kVarintRoom);
  to.commit(put_varint(put_varint(at, make_tag(number, kVarint)), value));
}

void put_type_and_track(Output& to, EventType type, uint64_t track_uuid) {
  char* const at = put_varint(put_tag(to.reserve(4 * kVarintRoom), field::kType, kVarint), type);
  to.commit(put_varint(put_tag(at, field::kTrackUuid, kVarint), track_uuid));
}

void put_signed(Output& to, uint32_t number, int64_t value) { put_number(to, number, static_cast<uint64_t>(value)); }

void put_fixed64(Output& to, uint32_t number, uint64_t value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest byte comes first");
  char* const at = put_varint(to.reserve(kVarintRoom + sizeof(value)), make_tag(number, kFixed64));
  std::memcpy(at, &value, sizeof(value));
  to.commit(at + sizeof(value));
}

void put_bytes(Output& to, uint32_t number, std::string_view bytes) {
  char* at = to.reserve(2 * kVarintRoom + bytes.size());
  at = put_varint(put_varint(at, make_tag(number, kBytes)), bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  to.commit(at + bytes.size());
}

bool is_ascii(std::string_view text) {
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

// Writes text in the form that protobuf requires: bytes that are not UTF-8 become U+FFFD.
void put_text(Output& to, uint32_t number, std::string_view text) {
  if (is_ascii(text)) {
    put_bytes(to, number, text);
    return;
  }
  std::string mended;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t at = 0; at < text.size();) {
    uint32_t code_point = 0;
    const size_t length = bytes[at] < 0x80 ? 1 : stepstats::decode_utf8(bytes + at, text.size() - at, code_point);
    mended.append(length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length));
    at += length == 0 ? stepstats::broken_utf8_length(bytes + at, text.size() - at) : length;
  }
  put_bytes(to, number, mended);
}

// Writes comma-separated integers as the elements of an array.
void put_numbers(Output& to, std::string_view text) {
  TextOutput element;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t number = 0;
    at = std::from_chars(at, end, number).ptr;
    element.clear();
    put_signed(element, field::kIntValue, number);
    put_bytes(to, field::kArrayValues, element.text());
    at = std::find(at, end, ',');
    if (at < end) ++at;
  }
}

}  // namespace

uint64_t PerfettoWriter::Interned::number_of(std::string_view text, uint32_t field, Output& news) {
  return number_of(text, NameTable::hash_of(text), field, news);
}

uint64_t PerfettoWriter::Interned::number_if_repeated(std::string_view text, uint32_t field, Output& news) {
  const uint32_t hash = NameTable::hash_of(text);
  uint32_t& last_hash = last_hashes_[hash % kPlaces];
  if (std::exchange(last_hash, hash) != hash) return 0;
  return number_of(text, hash, field, news);
}

uint64_t PerfettoWriter::Interned::number_of(std::string_view text, uint32_t hash, uint32_t field, Output& news) {
  const auto entry = numbers_.insert_kept(text, hash, [this](std::string_view own) { return keep(own); });
  const uint64_t number = uint64_t{entry.number} + 1;
  if (!entry.is_new) return number;
  num_bytes_ += text.size() + sizeof(std::string);
  entry_.clear();
  put_number(entry_, field::kIid, number);
  put_text(entry_, field::kText, text);
  put_bytes(news, field, entry_.text());
  return number;
}

void PerfettoWriter::Interned::clear() {
  numbers_.clear();
  for (std::string& block : blocks_) block.clear();
  num_blocks_ = 0;
  num_bytes_ = 0;
}

std::string_view PerfettoWriter::Interned::keep(std::string_view text) {
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

void PerfettoWriter::on_begin(const Summary& summary) {
  forget();
  if (described_clock_) return;
  described_clock_ = true;
  TextOutput snapshot;
  for (const auto& [clock, time] : {std::pair<uint64_t, uint64_t>{kTraceClock, 0}, {kWallClock, summary.base_ns}}) {
    scratch_.clear();
    put_number(scratch_, field::kClockId, clock);
    put_number(scratch_, field::kClockTime, time);
    put_bytes(snapshot, field::kClocks, scratch_.text());
  }
  scratch_.clear();
  put_bytes(scratch_, field::kClockSnapshot, snapshot.text());
  write_packet(scratch_.text());
  // Versions of Perfetto's page before the summer of 2026 ignore these two fields and order by the number of slices.
  TextOutput root;
  put_number(root, field::kUuid, kRootUuid);
  put_number(root, field::kProcessOrdering, kAllOrderedByRank);
  put_number(root, field::kThreadOrdering, kAllOrderedByRank);
  scratch_.clear();
  put_bytes(scratch_, field::kTrackDescriptor, root.text());
  write_packet(scratch_.text());
}

void PerfettoWriter::on_process(const Process& process) {
  TextOutput descriptor;
  put_number(descriptor, field::kPid, process.pid);
  put_text(descriptor, field::kProcessName, process.name);
  if (!process.label.empty()) put_text(descriptor, field::kProcessLabels, process.label);
  TextOutput track;
  put_number(track, field::kUuid, process_uuid(process.pid));
  put_bytes(track, field::kProcess, descriptor.text());
  put_number(track, field::kChildOrdering, kOrderedByRank);
  put_signed(track, field::kSiblingRank, process.pid);
  scratch_.clear();
  put_bytes(scratch_, field::kTrackDescriptor, track.text());
  write_packet(scratch_.text());
}

void PerfettoWriter::on_track(const Track& track) {
  TextOutput descriptor;
  put_number(descriptor, field::kUuid, open_track_of(track.tid).uuid);
  if (track.is_copies) {
    begin_copies(track.pid);
    put_number(descriptor, field::kParentUuid, copies_uuid(track.pid));
    put_text(descriptor, field::kName, track.name);
  } else {
    TextOutput thread;
    put_number(thread, field::kPid, track.pid);
    put_number(thread, field::kTid, track.tid);
    put_text(thread, field::kThreadName, track.name);
    put_number(descriptor, field::kParentUuid, process_uuid(track.pid));
    put_bytes(descriptor, field::kThread, thread.text());
  }
  put_signed(descriptor, field::kSiblingRank, track.tid);
  scratch_.clear();
  put_bytes(scratch_, field::kTrackDescriptor, descriptor.text());
  write_packet(scratch_.text());
}

// Begins the track of a process's rows of copies, which viewers show collapsed. Because it is not a thread, it comes
// after the counters; page versions before the summer of 2026 order both by name, and its name has the same effect.
void PerfettoWriter::begin_copies(uint32_t pid) {
  if (!pids_with_copies_.insert(pid).second) return;
  TextOutput descriptor;
  put_number(descriptor, field::kUuid, copies_uuid(pid));
  put_number(descriptor, field::kParentUuid, process_uuid(pid));
  put_text(descriptor, field::kName, "copies");
  put_number(descriptor, field::kChildOrdering, kOrderedByRank);
  put_signed(descriptor, field::kSiblingRank, kCopiesRank);
  scratch_.clear();
  put_bytes(scratch_, field::kTrackDescriptor, descriptor.text());
  write_packet(scratch_.text());
}

void PerfettoWriter::on_slice(const Slice& slice) {
  OpenTrack& track = open_track_of(slice.tid);
  end_slices(track, slice.start_ns);
  start_anew();
  const RememberedSlice* const alike = slice.alike != 0 ? &remember(slice) : nullptr;
  event_.clear();
  put_type_and_track(event_, kSliceBegin, track.uuid);
  alike != nullptr ? alike->start.append_to(event_) : append_start(event_, slice, false);
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) put_fixed64(event_, field::kFlowIds, slice.first_flow_out + i);
  // The page draws arrows from the end of one slice to the start of the other; in the file, only the order of time
  // matters.
  for (uint64_t i = 0; i < slice.num_waits_out; ++i) put_fixed64(event_, field::kFlowIds, slice.first_wait_out + i);
  for (uint64_t i = 0; i < slice.num_events_out; ++i) put_fixed64(event_, field::kFlowIds, slice.first_event_out + i);
  for (uint64_t i = 0; i < slice.num_backwards_out; ++i) {
    put_fixed64(event_, field::kFlowIds, slice.first_backward_out + i);
  }
  if (slice.flow_in != 0) put_fixed64(event_, field::kTerminatingFlowIds, slice.flow_in);
  if (slice.event_in != 0) put_fixed64(event_, field::kTerminatingFlowIds, slice.event_in);
  if (slice.backward_in != 0) put_fixed64(event_, field::kTerminatingFlowIds, slice.backward_in);
  if (alike != nullptr) alike->arguments.append_to(event_);
  append_arguments(event_, slice, alike != nullptr ? slice.num_alike_arguments : 0, slice.num_arguments, false);
  write_event(slice.start_ns, true, event_.text());
  track.ends.push_back({slice.start_ns + slice.duration_ns, slice.wait_in});
}

// All interned parts were written by earlier packets or are written by the current one.
const PerfettoWriter::RememberedSlice& PerfettoWriter::remember(const Slice& slice) {
  RememberedSlice& remembered = alike_[slice.alike % alike_.size()];
  if (remembered.alike != slice.alike) {
    TextOutput start;
    append_start(start, slice, true);
    TextOutput arguments;
    append_arguments(arguments, slice, 0, slice.num_alike_arguments, true);
    remembered = {slice.alike, Fragment(start.text()), Fragment(arguments.text())};
  }
  return remembered;
}

void PerfettoWriter::forget() {
  for (RememberedSlice& slice : alike_) slice.alike = 0;
}

uint64_t PerfettoWriter::number_of_category(stepstats::Category category) {
  uint64_t& number = category_numbers_[static_cast<size_t>(category)];
  if (number == 0) number = categories_.number_of(stepstats::category_name(category), field::kCategories, interned_);
  return number;
}

void PerfettoWriter::append_start(Output& to, const Slice& slice, bool repeats) {
  put_number(to, field::kCategoryIids, number_of_category(slice.category));
  const uint64_t number = repeats ? names_.number_of(slice.name, field::kEventNames, interned_)
                                  : names_.number_if_repeated(slice.name, field::kEventNames, interned_);
  number != 0 ? put_number(to, field::kNameIid, number) : put_text(to, field::kEventName, slice.name);
}

void PerfettoWriter::append_arguments(Output& to, const Slice& slice, size_t first, size_t end, bool repeats) {
  for (size_t i = first; i < end; ++i) append_argument(to, slice.arguments[i], repeats);
}

void PerfettoWriter::append_argument(Output& to, const Argument& argument, bool repeats) {
  const uint64_t key = number_of_key(argument.key);
  const size_t key_bytes = kTagBytes + varint_bytes(key);
  // Puts the head of the argument, whose content after the key has `rest` bytes.
  const auto put_head = [&](size_t rest) {
    char* const at = to.reserve(4 * kVarintRoom + rest);
    return put_varint(
        put_tag(put_varint(put_tag(at, field::kDebugAnnotations, kBytes), key_bytes + rest), field::kKeyIid, kVarint),
        key);
  };
  const auto put_value = [&](uint32_t number, uint64_t value) {
    const size_t rest = stepstats::varint_bytes(make_tag(number, kVarint)) + varint_bytes(value);
    to.commit(put_varint(put_varint(put_head(rest), make_tag(number, kVarint)), value));
  };
  if (argument.kind == Argument::Kind::kNumber)
    return put_value(field::kIntValue, static_cast<uint64_t>(argument.number));
  scratch_.clear();
  if (argument.kind == Argument::Kind::kNumbers) {
    put_numbers(scratch_, argument.text);
  } else {
    const uint64_t number = repeats ? texts_.number_of(argument.text, field::kAnnotationTexts, interned_)
                                    : texts_.number_if_repeated(argument.text, field::kAnnotationTexts, interned_);
    if (number != 0) return put_value(field::kTextIid, number);
    put_text(scratch_, field::kTextValue, argument.text);
  }
  const std::string_view rest = scratch_.text();
  char* const at = put_head(rest.size());
  if (!rest.empty()) std::memcpy(at, rest.data(), rest.size());
  to.commit(at + rest.size());
}

uint64_t PerfettoWriter::number_of_key(std::string_view key) {
  KnownKey& known = known_keys_[reinterpret_cast<uintptr_t>(key.data()) / 8 % known_keys_.size()];
  if (known.number == 0 || known.kept != key) {
    known.number = keys_.number_of(key, field::kAnnotationKeys, interned_);
    known.kept = keys_.kept(known.number);
  }
  return known.number;
}

void PerfettoWriter::on_counter_track(const CounterTrack& counter) {
  TextOutput unit;
  put_text(unit, field::kUnitName, counter.unit);
  TextOutput track;
  put_number(track, field::kUuid, counter_uuid(counter.id));
  put_number(track, field::kParentUuid, process_uuid(counter.pid));
  put_text(track, field::kName, counter.name);
  put_bytes(track, field::kCounter, unit.text());
  put_signed(track, field::kSiblingRank, kCountersRank);
  scratch_.clear();
  put_bytes(scratch_, field::kTrackDescriptor, track.text());
  write_packet(scratch_.text());
}

void PerfettoWriter::on_value(const Value& value) {
  event_.clear();
  put_type_and_track(event_, kCounterEvent, counter_uuid(value.counter_id));
  put_signed(event_, field::kCounterValue, value.value);
  write_event(value.time_ns, false, event_.text());
}

void PerfettoWriter::on_instant(const Instant& instant) {
  if (!described_instants_) {
    described_instants_ = true;
    TextOutput track;
    put_number(track, field::kUuid, kInstantsUuid);
    put_text(track, field::kName, "Marks");
    scratch_.clear();
    put_bytes(scratch_, field::kTrackDescriptor, track.text());
    write_packet(scratch_.text());
  }
  start_anew();
  event_.clear();
  put_type_and_track(event_, kInstant, kInstantsUuid);
  put_number(event_, field::kCategoryIids, categories_.number_of("collector", field::kCategories, interned_));
  put_number(event_, field::kNameIid, names_.number_of(instant.name, field::kEventNames, interned_));
  if (!instant.details.empty()) {
    scratch_.clear();
    put_number(scratch_, field::kKeyIid, keys_.number_of("details", field::kAnnotationKeys, interned_));
    put_number(scratch_, field::kTextIid, texts_.number_of(instant.details, field::kAnnotationTexts, interned_));
    put_bytes(event_, field::kDebugAnnotations, scratch_.text());
  }
  write_event(instant.time_ns, true, event_.text());
}

void PerfettoWriter::on_end(const Summary&) {
  for (OpenTrack& track : open_tracks_) end_slices(track, std::numeric_limits<int64_t>::max());
}

void PerfettoWriter::add_metadata(std::string_view name, std::string_view text) {
  TextOutput entry;
  put_text(entry, field::kMetadataName, name);
  put_text(entry, field::kMetadataText, text);
  TextOutput bundle;
  put_bytes(bundle, field::kMetadata, entry.text());
  scratch_.clear();
  put_bytes(scratch_, field::kChromeEvents, bundle.text());
  write_packet(scratch_.text());
}

size_t PerfettoWriter::thread_index(uint32_t tid) {
  if (tid == last_tid_ && !open_tracks_.empty()) return last_index_;
  const auto [found, is_new] = thread_index_.try_emplace(tid, open_tracks_.size());
  if (is_new) open_tracks_.push_back({thread_uuid(found->second), {}});
  last_tid_ = tid;
  last_index_ = found->second;
  return last_index_;
}

void PerfettoWriter::end_slices(OpenTrack& track, int64_t time_ns) {
  while (!track.ends.empty() && track.ends.back().time_ns <= time_ns) {
    const SliceEnd end = track.ends.back();
    track.ends.pop_back();
    event_.clear();
    put_type_and_track(event_, kSliceEnd, track.uuid);
    if (end.wait_in != 0) put_fixed64(event_, field::kTerminatingFlowIds, end.wait_in);
    write_event(end.time_ns, false, event_.text());
  }
}

// Interned text belongs to the packet that first uses it, so this must precede that packet's first look-up.
void PerfettoWriter::start_anew() {
  if (names_.num_bytes() + keys_.num_bytes() + texts_.num_bytes() <= kMaxInternedBytes) return;
  for (Interned* table : {&names_, &categories_, &keys_, &texts_}) table->clear();
  category_numbers_.fill(0);
  known_keys_.fill({});
  forget();
  anew_ = true;
}

// Written in one piece, because there are two of these packets for each slice.
void PerfettoWriter::write_event(int64_t time_ns, bool uses_interned, std::string_view event) {
  const uint64_t sequence_flags = (uses_interned ? kNeedsState : kNone) | (anew_ ? kCleared : kNone);
  anew_ = false;
  const std::string_view interned = interned_.text();
  const auto time = static_cast<uint64_t>(time_ns);
  const auto message_bytes = [](size_t content) { return kTagBytes + varint_bytes(content) + content; };
  const size_t num_bytes = kTagBytes + varint_bytes(time) + (interned.empty() ? 0 : message_bytes(interned.size())) +
                           kTagBytes + varint_bytes(kSequence) +
                           (sequence_flags == kNone ? 0 : kTagBytes + varint_bytes(sequence_flags)) +
                           message_bytes(event.size());
  char* to = output_.reserve(kTagBytes + kVarintRoom + num_bytes);
  to = put_varint(put_tag(to, field::kTracePacket, kBytes), num_bytes);
  to = put_varint(put_tag(to, field::kTimestamp, kVarint), time);
  if (!interned.empty()) {
    to = put_varint(put_tag(to, field::kInternedData, kBytes), interned.size());
    std::memcpy(to, interned.data(), interned.size());
    to += interned.size();
    interned_.clear();
  }
  to = put_varint(put_tag(to, field::kSequenceId, kVarint), kSequence);
  if (sequence_flags != kNone) to = put_varint(put_tag(to, field::kSequenceFlags, kVarint), sequence_flags);
  to = put_varint(put_tag(to, field::kTrackEvent, kBytes), event.size());
  std::memcpy(to, event.data(), event.size());
  output_.commit(to + event.size());
}

void PerfettoWriter::write_packet(std::string_view body) {
  const uint64_t sequence_flags = std::exchange(anew_, false) ? kCleared : kNone;
  char frame[4 * kVarintRoom];
  char* end = put_varint(put_tag(frame, field::kSequenceId, kVarint), kSequence);
  if (sequence_flags != kNone) end = put_varint(put_tag(end, field::kSequenceFlags, kVarint), sequence_flags);
  const auto frame_size = static_cast<size_t>(end - frame);
  char head[2 * kVarintRoom];
  end = put_varint(put_tag(head, field::kTracePacket, kBytes), body.size() + frame_size);
  const auto head_size = static_cast<size_t>(end - head);
  // Written at once, so that every piece that the output passes on consists of as many whole packets as fit.
  char* to = output_.reserve(head_size + body.size() + frame_size);
  for (const std::string_view part : {std::string_view(head, head_size), body, std::string_view(frame, frame_size)}) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  output_.commit(to);
}

}  // namespace collector::write
