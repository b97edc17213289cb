#include "read/chrome_scanner.h"

#include <algorithm>
#include <optional>

#include "read/decimal_time.h"

namespace collector::read {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpaces = " \t\r\n";
constexpr char kBetween = '\x1F';  // between process and thread; a JSON value has it inside strings only

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

}  // namespace

ChromeScanner::ChromeScanner() {
  strings_.intern("");
  shape();
}

bool ChromeScanner::feed(std::string_view piece) {
  if (state_ == State::kClosed || state_ == State::kFailed) return false;
  window_.erase(0, at_);
  before_ += at_;
  at_ = 0;
  window_.append(piece);
  if (window_.size() >= retry_bytes_) scan();
  return state_ != State::kClosed && state_ != State::kFailed;
}

void ChromeScanner::finish() {
  if (state_ == State::kClosed || state_ == State::kFailed) return;
  scan();
  const bool is_between = window_.find_first_not_of(kSpaces, at_) == std::string::npos;
  if (state_ == State::kEvents && is_between && is_list_) {
    state_ = State::kClosed;  // Chrome's format lets a bare list lack its bracket
  } else if (state_ == State::kEvents && !is_between) {
    at_ = window_.find_first_not_of(kSpaces, at_);
    fail("cut off");
  } else if (!has_events_ && state_ != State::kClosed) {
    fail("cut off");
  }
  window_.clear();
  window_.shrink_to_fit();
}

void ChromeScanner::fail(const char* why) {
  state_ = State::kFailed;
  failure_ = why;
  failed_at_ = position(window_.data() + at_);
}

// Reads value by value up to the end of the window. A value that is not complete is read again from its start, a long
// one once the window has twice the bytes, so that the time stays linear.
void ChromeScanner::scan() {
  const char* const end = window_.data() + window_.size();
  try {
    while (state_ != State::kClosed) {
      JsonCursor cursor(window_.data() + at_, end);
      step(cursor);
      if (cursor.num_ill_formed() > 0) {
        if (num_ill_formed_ == 0) first_ill_formed_ = position(cursor.first_ill_formed());
        num_ill_formed_ += cursor.num_ill_formed();
      }
      at_ = static_cast<size_t>(cursor.at() - window_.data());
    }
    retry_bytes_ = 0;
  } catch (const NeedsMore&) {
    const size_t left = window_.size() - at_;
    if (left > kMaxValueBytes) return fail("a value of more than 64 MiB");
    retry_bytes_ = left < (size_t{1} << 20) ? 0 : 2 * left;
  } catch (const NotJson& error) {
    at_ = std::min(window_.find_first_not_of(kSpaces, at_), window_.size());
    if (has_events_ && state_ == State::kMembers) {
      state_ = State::kFailed;  // all events were read
    } else {
      fail(error.what());
    }
  }
}

void ChromeScanner::step(JsonCursor& cursor) {
  switch (state_) {
    case State::kStart:
      return start(cursor);
    case State::kMembers:
      return member(cursor);
    default:
      return entry(cursor);
  }
}

void ChromeScanner::start(JsonCursor& cursor) {
  if (before_ == 0 && at_ == 0) {
    if (window_.size() < kByteOrderMark.size()) {
      if (kByteOrderMark.substr(0, window_.size()) == window_) throw NeedsMore();
    } else if (window_.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
      cursor = JsonCursor(window_.data() + kByteOrderMark.size(), window_.data() + window_.size());
    }
  }
  if (cursor.take('[')) {
    is_list_ = has_events_ = true;
    state_ = State::kEvents;
  } else if (cursor.take('{')) {
    state_ = State::kMembers;
  } else {
    throw NotJson("neither a JSON object nor a list");
  }
}

// One member of the outermost object, or its end.
void ChromeScanner::member(JsonCursor& cursor) {
  if (cursor.take('}')) {
    state_ = State::kClosed;
    return;
  }
  if (cursor.take(',')) return;
  const std::string_view name = cursor.string(name_scratch_);
  cursor.expect(':');
  if (name == "traceEvents" && cursor.peek() == '[') {
    cursor.take('[');
    has_events_ = true;
    state_ = State::kEvents;
    return;
  }
  const std::string_view written = cursor.raw();
  members_.emplace_back(name, written);
}

// One entry of the list of events, or its end.
void ChromeScanner::entry(JsonCursor& cursor) {
  if (comma_may_follow_) {  // a step of its own, so that an incomplete entry is read again from behind the comma
    const bool follows = cursor.take(',');
    comma_may_follow_ = false;
    if (follows) return;
  }
  if (cursor.take(']')) {
    state_ = is_list_ ? State::kClosed : State::kMembers;
    return;
  }
  if (cursor.peek() == '{') {
    read_event(cursor);
  } else {
    cursor.raw(1);
    ++num_not_objects_;
  }
  ++num_entries_;
  comma_may_follow_ = true;
}

void ChromeScanner::read_event(JsonCursor& cursor) {
  ChromeEvent event{kNoTime, kNoTime, 0, 0, 0, 0, 0};
  given_.clear();
  not_finite_ = arguments_left_out_ = 0;
  written_start_ = written_duration_ = -1;
  process_ = thread_ = "";
  cursor.expect('{');
  if (!cursor.take('}')) {
    do {
      const std::string_view name = cursor.string(name_scratch_);
      cursor.expect(':');
      read_member(cursor, name, event);
    } while (cursor.take(','));
    cursor.expect('}');
  }
  num_not_finite_ += not_finite_;
  num_arguments_left_out_ += arguments_left_out_;
  if (event.phase == 0) return;
  event.track = last_track_ = track();
  event.shape = last_shape_ = shape();
  const auto row = static_cast<uint32_t>(events_.size());
  events_.append() = event;
  if (written_start_ >= 0) written_starts_.set(row, written_start_);
  if (written_duration_ >= 0) written_durations_.set(row, written_duration_);
  for (const Given& each : given_) {
    Argument& argument = arguments_[each.argument];
    (each.is_text ? argument.texts : argument.numbers).set(row, each.value);
  }
}

void ChromeScanner::read_member(JsonCursor& cursor, std::string_view name, ChromeEvent& event) {
  if (name == "args") {
    given_.clear();
    if (cursor.peek() == '{') {
      read_arguments(cursor);
    } else {
      cursor.raw(2);
    }
  } else if (name == "ts") {
    event.start_ns = time_of(cursor, written_start_);
  } else if (name == "dur") {
    event.duration_ns = time_of(cursor, written_duration_);
  } else if (name == "name") {
    event.name = text_of(cursor);
  } else if (name == "cat") {
    event.category = last_category_ = category_of(cursor);
  } else if (name == "pid") {
    process_ = cursor.raw(2);
  } else if (name == "tid") {
    thread_ = cursor.raw(2);
  } else if (name == "ph") {
    const std::string_view phase = cursor.raw(2);
    event.phase = phase.size() == 3 && phase[0] == '"' ? phase[1] : '\0';
  } else {
    cursor.raw(2);
  }
}

void ChromeScanner::read_arguments(JsonCursor& cursor) {
  cursor.expect('{');
  if (cursor.take('}')) return;
  do {
    const std::string_view name = cursor.string(name_scratch_);
    cursor.expect(':');
    if (cursor.peek() == '"') {
      give(name, true, text_of(cursor));
      continue;
    }
    int64_t number = 0;
    if (cursor.short_integer(number)) {
      give(name, false, number);
      continue;
    }
    const std::string_view written = cursor.raw(3);
    if (written == "NaN" || written == "Infinity" || written == "-Infinity") ++not_finite_;
    const bool is_number = is_integer(written, number);
    give(name, !is_number, is_number ? number : int64_t{2} * values_.intern(written) + 1);
  } while (cursor.take(','));
  cursor.expect('}');
}

// Most events have the arguments of the event before, in the same order.
uint32_t ChromeScanner::argument_number(std::string_view name) {
  const std::vector<uint16_t>& likely = shapes_[last_shape_];
  if (given_.size() < likely.size() && argument_names_[likely[given_.size()]] == name) return likely[given_.size()];
  return argument_table_.intern(name);
}

void ChromeScanner::give(std::string_view name, bool is_text, int64_t value) {
  const uint32_t number = argument_number(name);
  if (number >= kMaxArguments) {
    ++arguments_left_out_;
    return;
  }
  if (number == argument_names_.size()) {
    argument_names_.emplace_back(name);
    arguments_.emplace_back(blocks_);
  }
  const Given given{static_cast<uint16_t>(number), is_text, value};
  const auto same = [number](const Given& each) { return each.argument == number; };
  if (const auto before = std::find_if(given_.begin(), given_.end(), same); before != given_.end()) {
    *before = given;
  } else {
    given_.push_back(given);
  }
}

uint32_t ChromeScanner::category_of(JsonCursor& cursor) {
  if (cursor.peek() != '"') return text_of(cursor);
  const std::string_view category = cursor.string(text_scratch_);
  const bool is_last = last_category_ % 2 == 0 && category == strings_[last_category_ / 2];
  return is_last ? last_category_ : 2 * strings_.intern(category);
}

uint32_t ChromeScanner::text_of(JsonCursor& cursor) {
  if (cursor.peek() == '"') return 2 * strings_.intern(cursor.string(text_scratch_));
  return 2 * values_.intern(cursor.raw(2)) + 1;
}

int64_t ChromeScanner::time_of(JsonCursor& cursor, int64_t& written) {
  const bool is_string = cursor.peek() == '"';
  const std::string_view text = is_string ? stripped(cursor.string(text_scratch_)) : cursor.raw(2);
  const std::optional<int64_t> nanoseconds = nanoseconds_of_microseconds(text);
  written = nanoseconds ? -1 : int64_t{2} * (is_string ? strings_ : values_).intern(text) + (is_string ? 0 : 1);
  return nanoseconds.value_or(kImpossibleTime);
}

uint32_t ChromeScanner::track() {
  if (!tracks_.empty() && tracks_[last_track_].first == process_ && tracks_[last_track_].second == thread_) {
    return last_track_;
  }
  track_scratch_.assign(process_);
  track_scratch_ += kBetween;
  track_scratch_.append(thread_);
  const uint32_t number = track_names_.intern(track_scratch_);
  if (number == tracks_.size()) tracks_.emplace_back(process_, thread_);
  return number;
}

uint16_t ChromeScanner::shape() {
  const auto is_same = [](const Given& each, uint16_t argument) { return each.argument == argument; };
  if (!shapes_.empty()) {
    const std::vector<uint16_t>& likely = shapes_[last_shape_];
    if (std::equal(given_.begin(), given_.end(), likely.begin(), likely.end(), is_same)) return last_shape_;
  }
  shape_scratch_.clear();
  for (const Given& each : given_) shape_scratch_ += static_cast<char>(each.argument);
  static_assert(kMaxArguments <= 256);
  const uint32_t number = shape_table_.intern(shape_scratch_);
  if (number >= kMaxShapes) return 0;
  if (number == shapes_.size()) {
    std::vector<uint16_t>& arguments = shapes_.emplace_back();
    for (const Given& each : given_) arguments.push_back(each.argument);
  }
  return static_cast<uint16_t>(number);
}

}  // namespace collector::read
