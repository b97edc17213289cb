#include "write/xspace_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "write/json.h"
#include "write/xspace_fields.h"

namespace collector::write {

using stepstats::kBytes;
using stepstats::kFixed64;
using stepstats::kVarint;
using stepstats::make_tag;
using stepstats::WireReader;

namespace {

constexpr uint64_t kLargestId = std::numeric_limits<uint32_t>::max();
constexpr int64_t kPicoseconds = 1000;  // of a nanosecond

constexpr uint32_t kLineEventsTag = make_tag(kLineEvents, kBytes);
constexpr uint32_t kEventMetadataTag = make_tag(kEventMetadata, kVarint);
constexpr uint32_t kEventOffsetTag = make_tag(kEventOffset, kVarint);
constexpr uint32_t kEventDurationTag = make_tag(kEventDuration, kVarint);
constexpr uint32_t kEventStatsTag = make_tag(kEventStats, kBytes);
constexpr uint32_t kStatMetadataTag = make_tag(kStatMetadata, kVarint);
constexpr uint32_t kStatDoubleTag = make_tag(kStatDouble, kFixed64);
constexpr uint32_t kStatUint64Tag = make_tag(kStatUint64, kVarint);
constexpr uint32_t kStatInt64Tag = make_tag(kStatInt64, kVarint);
constexpr uint32_t kStatTextTag = make_tag(kStatText, kBytes);
constexpr uint32_t kStatBytesTag = make_tag(kStatBytes, kBytes);
constexpr uint32_t kStatReferenceTag = make_tag(kStatReference, kVarint);

constexpr bool is_value(uint32_t tag) {
  return tag == kStatDoubleTag || tag == kStatUint64Tag || tag == kStatInt64Tag || tag == kStatTextTag ||
         tag == kStatBytesTag || tag == kStatReferenceTag;
}

// A string of JSON.
std::string json_string(std::string_view text) {
  std::string quoted(json_room(text) + 2, '"');
  const char* const end = put_json_text(quoted.data() + 1, text, BadText::kRefuse);
  // Protobuf has parsed the text, so that it is UTF-8.
  quoted.resize(static_cast<size_t>(end - quoted.data()));
  quoted.push_back('"');
  return quoted;
}

template <typename Number>
void append_number(std::string& to, Number number) {
  char digits[std::numeric_limits<Number>::digits10 + 3];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  to.append(digits, end);
}

}  // namespace

void XSpaceText::begin_plane(const PlaneTexts& texts, uint64_t process) {
  events_.clear();
  stat_texts_.clear();
  keys_.clear();
  key_texts_.clear();
  key_names_.clear();
  keys_by_name_.clear();
  unnamed_ = key_of("");
  correlation_ = key_of("correlation_id");
  launch_correlation_ = key_of("launch_correlation_id");
  for (const auto& [number, metadata] : texts.events) events_[number] = {json_string(metadata.name), metadata.stats};
  for (const auto& [number, text] : texts.stats) {
    stat_texts_[number] = json_string(text);
    keys_[number] = key_of(text);
  }
  argument_of_key_.assign(key_texts_.size(), 0);
  process_ = process;
}

uint32_t XSpaceText::key_of(const std::string& text) {
  const auto [found, is_new] = keys_by_name_.try_emplace(text, static_cast<uint32_t>(key_texts_.size()));
  if (is_new) {
    key_texts_.push_back(json_string(text));
    key_names_.push_back(text);
  }
  return found->second;
}

void XSpaceText::begin_line(std::string_view line, int64_t timestamp_ns, uint64_t thread) {
  line_ = WireReader(line, line);
  timestamp_ns_ = timestamp_ns;
  place_ = ", \"pid\": ";
  append_number(place_, process_);
  place_ += ", \"tid\": ";
  append_number(place_, thread);
}

std::string_view XSpaceText::next(size_t num_bytes) {
  text_.clear();
  while (!line_.at_end() && text_.size() < num_bytes) {
    const uint32_t tag = line_.read_tag();
    if (tag == kLineEventsTag) {
      put_event(line_.read_bytes());
    } else {
      line_.skip(tag);
    }
  }
  return text_;
}

void XSpaceText::put_event(std::string_view message) {
  int64_t metadata = 0;
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  WireReader reader(message, message);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == kEventMetadataTag) {
      metadata = reader.read_int64();
    } else if (tag == kEventOffsetTag) {
      offset_ps = reader.read_int64();
    } else if (tag == kEventDurationTag) {
      duration_ps = reader.read_int64();
    } else {
      reader.skip(tag);
    }
  }
  const auto known = events_.find(metadata);
  num_arguments_ = 0;
  if (known != events_.end()) read_stats(known->second.stats);
  read_stats(message);

  text_ += R"({"ph": "X", "name": )";
  if (known != events_.end()) {
    text_ += known->second.name;
  } else {
    text_ += "\"\"";
  }
  text_ += R"(, "ts": ")";
  put_microseconds(timestamp_ns_, offset_ps);
  text_ += R"(", "dur": ")";
  put_microseconds(0, duration_ps);
  text_ += R"(", "args": {)";
  for (size_t i = 0; i < num_arguments_; ++i) {
    const Argument& argument = arguments_[i];
    argument_of_key_[argument.key] = 0;
    if (i > 0) text_ += ", ";
    text_ += key_texts_[argument.key];
    text_ += ": ";
    const bool is_correlation = argument.key == correlation_ || argument.key == launch_correlation_;
    if (is_correlation && argument.number > kLargestId) {
      // Of traces of several ranks, each of which counts from 1.
      const uint64_t next = kLargestId - correlation_ids_.size();
      append_number(text_, correlation_ids_.try_emplace(argument.number, next).first->second);
    } else {
      text_ += argument.value;
    }
  }
  text_ += '}';
  text_ += place_;
  text_ += "},";
}

void XSpaceText::read_stats(std::string_view fields) {
  WireReader reader(fields, fields);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == kEventStatsTag) {
      read_stat(reader.read_bytes());
    } else {
      reader.skip(tag);
    }
  }
}

void XSpaceText::read_stat(std::string_view message) {
  uint32_t key = unnamed_;
  uint32_t kind = 0;  // the tag of the value; 0: there is none
  WireReader value("", "");
  WireReader reader(message, message);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == kStatMetadataTag) {
      const auto found = keys_.find(reader.read_int64());
      if (found != keys_.end()) key = found->second;
      continue;
    }
    if (is_value(tag)) {
      kind = tag;
      value = reader;
    }
    reader.skip(tag);
  }
  if (kind == kStatBytesTag) {
    ++not_kept_[key_names_[key]];
  } else if (kind != 0) {
    read_value(kind, value, argument_of(key));
  }
}

void XSpaceText::read_value(uint32_t tag, WireReader value, Argument& argument) {
  if (tag == kStatUint64Tag) {
    argument.number = value.read_varint();
    append_number(argument.value, argument.number);
  } else if (tag == kStatInt64Tag) {
    const int64_t number = value.read_int64();
    argument.number = number > 0 ? static_cast<uint64_t>(number) : 0;
    append_number(argument.value, number);
  } else if (tag == kStatReferenceTag) {
    const uint64_t number = value.read_varint();
    const bool can_be = number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const auto found = can_be ? stat_texts_.find(static_cast<int64_t>(number)) : stat_texts_.end();
    argument.value = found == stat_texts_.end() ? "\"\"" : found->second;
  } else if (tag == kStatTextTag) {
    argument.value = json_string(value.read_bytes());
  } else {
    double number = 0;
    std::memcpy(&number, value.position(), sizeof(number));
    if (std::isfinite(number)) {
      argument.value = number_text_(number);
    } else {
      argument.value = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    }
  }
}

// The argument with this key, without a value.
XSpaceText::Argument& XSpaceText::argument_of(uint32_t key) {
  size_t& place = argument_of_key_[key];
  if (place == 0) {
    if (num_arguments_ == arguments_.size()) arguments_.emplace_back();
    place = ++num_arguments_;
  }
  Argument& argument = arguments_[place - 1];
  argument.key = key;
  argument.value.clear();
  argument.number = 0;
  return argument;
}

// Appends microseconds, rounded to the nearest nanosecond, half to even.
void XSpaceText::put_microseconds(int64_t base_ns, int64_t picoseconds) {
  __extension__ using Wide = __int128;  // the sum may have 64 bits and a sign
  int64_t whole = picoseconds / kPicoseconds;
  int64_t rest = picoseconds % kPicoseconds;
  if (rest < 0) {
    rest += kPicoseconds;
    --whole;
  }
  Wide nanos = Wide{base_ns} + whole;
  nanos += rest > kPicoseconds / 2 || (rest == kPicoseconds / 2 && nanos % 2 != 0) ? 1 : 0;
  if (nanos < 0) {
    text_ += '-';
    nanos = -nanos;
  }
  append_number(text_, static_cast<uint64_t>(nanos / 1000));
  const auto below = static_cast<unsigned>(nanos % 1000);
  text_ += '.';
  for (const unsigned digit : {below / 100, below / 10 % 10, below % 10}) text_ += static_cast<char>('0' + digit);
}

}  // namespace collector::write
