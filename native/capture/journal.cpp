#include "capture/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <iterator>
#include <type_traits>
#include <utility>

#include "capture/file_numbers.h"
#include "threads/signals_blocked.h"

namespace collector::capture {
namespace {

using journal_format::FrameFlag;
using journal_format::kFrame;
using journal_format::kMagic;

constexpr size_t kFrameHead = 16;
constexpr size_t kBlockHead = 16;

}  // namespace

Journal::Journal(const std::string& path) : path_(path) {
  file_ = beyond_standard_files(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  is_ours_ = file_ >= 0;
  if (!is_ours_) {
    lacks_descriptor_ = errno == EMFILE || errno == ENFILE;
    trouble_ = std::strerror(errno);
    return;
  }
  struct stat info{};
  if (::fstat(file_, &info) != 0) {
    trouble_ = std::strerror(errno);
    ::close(std::exchange(file_, -1));
    return;
  }
  device_ = info.st_dev;
  inode_ = info.st_ino;
  counts_links_ = info.st_nlink > 0;
}

// ::close throws only in a cancelled thread, and the threads that call it are never cancelled.
Journal::~Journal() { close(); }  // NOLINT(bugprone-exception-escape)

void Journal::close() {
  free_spare();
  const int error = close_descriptor(file_);
  if (error == 0) return;
  if (open_again()) {
    set_flag(FrameFlag::kBrokeOff);
    close_descriptor(file_);
  }
  trouble_ = std::strerror(error);
}

int Journal::close_descriptor(int& descriptor) {
  const int closed = std::exchange(descriptor, -1);
  if (closed < 0 || !is_of_file(closed) || ::close(closed) == 0) return 0;
  return errno == EINTR ? 0 : errno;  // Linux has closed it then
}

void Journal::keep_spare() {
  if (file_ >= 0 && spare_ < 0) spare_ = ::fcntl(file_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void Journal::free_spare() {
  if (const int error = close_descriptor(spare_); error != 0) give_up(std::strerror(error));
}

// Programs that become daemons close all descriptors, and the number of ours may be that of a file of theirs by now.
bool Journal::is_of_file(int descriptor) const {
  struct stat info{};
  return ::fstat(descriptor, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

// Something else may be in the file's place by now: the decode thread, which the end of a session waits for, must not
// wait for the reader of a pipe, and no terminal may become that of a daemon.
bool Journal::open_again() {
  struct stat info{};
  if (file_ >= 0 && ::fstat(file_, &info) != 0 && errno != EBADF) {  // as on a server that is gone
    trouble_ = std::strerror(errno);
    file_ = -1;
    return false;
  }
  const int file = beyond_standard_files(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int error = errno;
  file_ = file;
  // The number of a removed file is soon that of another one.
  if (file >= 0 && is_still_open() && ::lseek(file, 0, SEEK_END) == static_cast<off_t>(num_bytes_)) return true;
  file_ = -1;
  if (file >= 0) ::close(file);
  const bool is_elsewhere = file >= 0 || error == ENOENT || error == ENXIO;  // the last one: a pipe without a reader
  trouble_ = "the program closed its file, which ";
  trouble_ +=
      is_elsewhere ? "is no longer in its place" : std::string("cannot be opened again: ") + std::strerror(error);
  return false;
}

bool Journal::is_in_its_folder() const {
  struct stat info{};
  return !counts_links_ || ::fstat(file_, &info) != 0 || info.st_nlink > 0;
}

void Journal::remove() {
  close();
  struct stat info{};
  const bool is_there = is_ours_ && ::lstat(path_.c_str(), &info) == 0;
  const bool is_unchanged = S_ISREG(info.st_mode) && info.st_size == static_cast<off_t>(num_bytes_);
  if (is_there && is_unchanged) ::unlink(path_.c_str());  // otherwise the program has put something in its place
  is_ours_ = false;
}

void Journal::give_up(const std::string& why) {
  set_flag(FrameFlag::kBrokeOff);
  close();
  trouble_ = why;
}

void Journal::set_flag(FrameFlag flag) {
  if (file_ < 0 || num_bytes_ < kMagic.size() + kFrameHead || !is_still_open()) return;
  threads::without_signal(SIGXFSZ, [&] {
    const auto place = static_cast<off_t>(kMagic.size() + sizeof(kFrame));
    while (::pwrite(file_, &flag, sizeof(flag), place) < 0 && errno == EINTR) {
    }
  });
}

// --- Frames ------------------------------------------------------------------------------------------------------

void Journal::begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
                    const std::map<std::string, int64_t>& numbers) {
  library_ = &library;
  write(kMagic.data(), kMagic.size());
  write_frame([&] {
    put_texts(texts);
    put_numbers(numbers);
    store::each_row_type(store::AllRows(), [this](auto type) { put_layout<typename decltype(type)::Type>(); });
  });
}

void Journal::repeat(const store::Store& store, const RepeatedAnnotations& annotations, const RepeatedRows& rows) {
  std::vector<store::GraphChangeRow> changes;
  rows.graphs.each_change([&](const store::GraphChangeRow& row) { changes.push_back(row); });
  write_frame(
      [&] {
        put_new_strings(store.strings);
        put_numbered_texts(annotations.paths);
        put_text_block(Block::kDetails, annotations.details, 0);
        put_repeated(annotations.rows);
        put_repeated(changes);
        put_repeated(std::vector<store::ContextRow>(rows.contexts.begin(), rows.contexts.end()));
        put_repeated(std::vector<store::StreamObjectRow>(rows.streams.begin(), rows.streams.end()));
        put_repeated(std::vector<store::DeviceRow>(rows.devices.begin(), rows.devices.end()));
      },
      FrameFlag::kRepeated);
}

void Journal::append(const store::Store& store, const AnnotationChanges& annotations, const OpenRangeChanges& ranges,
                     const std::map<std::string, int64_t>& numbers) {
  write_frame([&] {
    written_ns_ = library_->clock().now().value_or(INT64_MAX);
    if (written_ns_ != INT64_MAX) put_numbers({{"journal.written_ns", written_ns_}});
    put_new_strings(store.strings);
    put_new_callback_names(store.rows.of<store::ApiCallRow>());
    for (const auto& [key, stream] : store.streams()) {
      stream.rows.each([this, &place = key](const auto& rows) { put_rows(place, rows); });
    }
    store.rows.each([this](const auto& rows) { put_rows(store::StreamKey{}, rows); });
    put_annotations(annotations);  // they were open when the launches were made
    put_open_ranges(ranges);
    put_numbers(numbers);
  });
}

void Journal::state(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers) {
  write_frame([&] {
    put_texts(texts);
    put_numbers(numbers);
  });
}

template <typename Fill>
void Journal::write_frame(Fill fill, FrameFlag flag) {
  if (file_ < 0) return;
  try {
    if (!is_still_open() && !open_again()) return;
    if (!is_in_its_folder()) return give_up("its file was removed");
    frame_.assign(kFrameHead, 0);
    fill();
    const uint64_t bytes = frame_.size() - kFrameHead;
    std::memcpy(frame_.data(), &kFrame, sizeof(kFrame));
    std::memcpy(frame_.data() + 4, &flag, sizeof(flag));
    std::memcpy(frame_.data() + 8, &bytes, sizeof(bytes));
    write(frame_.data(), frame_.size());
  } catch (const std::exception& error) {  // no memory for the frame
    give_up(error.what());
  }
}

void Journal::write(const void* data, size_t bytes) {
  const auto* rest = static_cast<const char*>(data);
  threads::without_signal(SIGXFSZ, [&] {  // a file that becomes too large must not end the program
    while (bytes > 0 && file_ >= 0) {
      const ssize_t written = ::write(file_, rest, bytes);
      if (written > 0) {
        rest += written;
        bytes -= static_cast<size_t>(written);
        num_bytes_ += static_cast<size_t>(written);
      } else if (written == 0 || errno != EINTR) {
        give_up(written == 0 ? "nothing could be written" : std::strerror(errno));
      }
    }
  });
}

// --- Blocks ------------------------------------------------------------------------------------------------------

void Journal::put(const void* data, size_t bytes) {
  const auto* const begin = static_cast<const char*>(data);
  frame_.insert(frame_.end(), begin, begin + bytes);
}

void Journal::put_text(std::string_view text) {
  put_value(static_cast<uint32_t>(text.size()));
  put(text.data(), text.size());
}

void Journal::begin_block(Block kind, size_t count) {
  block_begin_ = frame_.size();
  put_value(static_cast<uint32_t>(kind));
  put_value(static_cast<uint32_t>(count));
  put_value(uint64_t{0});
}

void Journal::change_block_kind(Block kind) { std::memcpy(frame_.data() + block_begin_, &kind, sizeof(kind)); }

void Journal::end_block() {
  const uint64_t bytes = frame_.size() - block_begin_ - kBlockHead;
  std::memcpy(frame_.data() + block_begin_ + 8, &bytes, sizeof(bytes));
}

template <typename Row>
void Journal::put_layout() {
  const auto& columns = store::Table<Row>::kColumns;
  begin_block(Block::kLayout, std::size(columns));
  put_text(store::Table<Row>::kName);
  put_value(static_cast<uint32_t>(sizeof(Row)));
  for (const store::Column& column : columns) {
    put_text(column.name);
    put_value(column.offset);
    put_value(uint32_t{column.bytes});
    put_value(uint32_t{column.is_signed});
  }
  end_block();
}

// The earliest start and the latest end of rows that have these times. Times that CUPTI did not give are 0, and later
// times than the present are damaged.
template <typename Row>
void Journal::note_times(const Row* rows, size_t count) {
  const auto& columns = store::Table<Row>::kColumns;
  if (columns[0].name != "start_ns" || columns[1].name != "end_ns") return;
  const auto* at = reinterpret_cast<const char*>(rows);
  for (size_t i = 0; i < count; ++i, at += sizeof(Row)) {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    std::memcpy(&start_ns, at + columns[0].offset, sizeof(start_ns));
    std::memcpy(&end_ns, at + columns[1].offset, sizeof(end_ns));
    if (start_ns > 0 && (first_ns_ == 0 || start_ns < first_ns_)) first_ns_ = start_ns;
    for (const int64_t time_ns : {start_ns, end_ns}) {
      if (time_ns <= written_ns_) last_ns_ = std::max(last_ns_, time_ns);
    }
    if (!std::is_same_v<Row, store::AnnotationRow> && start_ns <= written_ns_) {
      decoded_ns_ = std::max(decoded_ns_, start_ns);
    }
  }
}

template <typename Row>
void Journal::put_run(const store::StreamKey& key, const Row* rows, size_t count) {
  for (; count > journal_format::kMostPackedRows; count -= journal_format::kMostPackedRows) {
    put_block(key, rows, journal_format::kMostPackedRows);
    rows += journal_format::kMostPackedRows;
  }
  put_block(key, rows, count);
}

template <typename Row>
void Journal::put_block(const store::StreamKey& key, const Row* rows, size_t count) {
  const auto& columns = store::Table<Row>::kColumns;
  begin_block(Block::kPackedRows, count);
  put_text(store::Table<Row>::kName);
  put_value(key.device_id);
  put_value(key.context_id);
  put_value(key.stream_id);
  if (!packer_.pack({reinterpret_cast<const char*>(rows), count, sizeof(Row), columns, std::size(columns)}, frame_)) {
    change_block_kind(Block::kRows);
    put(rows, count * sizeof(Row));
  }
  end_block();
}

template <typename Row>
void Journal::put_rows(const store::StreamKey& key, const store::Chunks<Row>& rows) {
  if (rows.empty()) return;  // most of a stream's lists are
  size_t& written = rows_written_[{store::Table<Row>::kName, key}];
  while (written < rows.size()) {
    size_t count = 0;
    const Row* const run = rows.run(written, count);
    put_run(key, run, count);
    note_times(run, count);
    num_rows_[store::Table<Row>::kName] += count;
    written += count;
  }
}

template <typename Row>
void Journal::put_repeated(const std::vector<Row>& rows) {
  if (!rows.empty()) put_run({}, rows.data(), rows.size());
}

// libcupti names 1,400 functions, which take 52 KB: more than a small segment. A program calls some tens of them.
void Journal::put_new_callback_names(const store::Chunks<store::ApiCallRow>& calls) {
  struct Named {
    uint32_t domain;
    uint32_t id;
    std::string name;
  };
  std::vector<Named> found;
  const auto written = rows_written_.find({store::Table<store::ApiCallRow>::kName, store::StreamKey{}});
  for (size_t at = written == rows_written_.end() ? 0 : written->second; at < calls.size();) {
    size_t count = 0;
    const store::ApiCallRow* const run = calls.run(at, count);
    for (const store::ApiCallRow* row = run; row != run + count; ++row) {
      const auto domain = static_cast<cupti::CallbackDomain>(row->domain);
      auto& known = known_callbacks_[cupti::index_of(domain)];
      if (row->callback_id >= known.size() || known[row->callback_id]) continue;
      known.set(row->callback_id);
      std::string name = library_->callback_name(domain, row->callback_id);
      if (!name.empty()) found.push_back({row->domain, row->callback_id, std::move(name)});
    }
    at += count;
  }
  if (found.empty()) return;
  begin_block(Block::kCallbackNames, found.size());
  for (const Named& each : found) {
    put_value(each.domain);
    put_value(each.id);
    put_text(each.name);
  }
  end_block();
}

void Journal::put_annotations(const AnnotationChanges& changes) {
  put_numbered_texts(changes.paths);
  if (!changes.opened.empty()) {
    put_run({}, changes.opened.data(), changes.opened.size());
    note_times(changes.opened.data(), changes.opened.size());
    num_rows_[store::Table<store::AnnotationRow>::kName] += changes.opened.size();
  }
  has_ends_ = has_ends_ || !changes.closed.empty();
  begin_block(Block::kAnnotationEnds, changes.closed.size());
  for (const auto& [row, end_ns] : changes.closed) {
    put_value(row);
    put_value(end_ns);
  }
  end_block();
  put_text_block(Block::kDetails, changes.details, 0);
}

void Journal::put_open_ranges(const OpenRangeChanges& changes) {
  const auto put_all = [this](const auto& values) { put(values.data(), values.size() * sizeof(values[0])); };
  if (!changes.opened.empty()) {
    begin_block(Block::kOpenedRanges, changes.opened.size());
    put_all(changes.opened_ids);
    put_all(changes.opened);
    end_block();
  }
  if (!changes.ended_ids.empty()) {
    begin_block(Block::kEndedRanges, changes.ended_ids.size());
    put_all(changes.ended_ids);
    end_block();
  }
}

void Journal::put_new_strings(const store::StringTable& strings) {
  if (strings.first() != first_string_) strings_written_ = 0;  // those before were forgotten
  first_string_ = strings.first();
  put_text_block(Block::kStrings, strings.texts(), strings_written_);
  strings_written_ = strings.texts().size();
}

template <typename Texts>
void Journal::put_text_block(Block kind, const Texts& texts, size_t first) {
  if (first == texts.size()) return;
  begin_block(kind, texts.size() - first);
  for (size_t i = first; i < texts.size(); ++i) put_text(texts[i]);
  end_block();
}

void Journal::put_numbered_texts(const std::vector<NumberedText>& texts) {
  if (texts.empty()) return;
  begin_block(Block::kNumberedPaths, texts.size());
  for (const NumberedText& each : texts) {
    put_value(each.number);
    put_text(each.text);
  }
  end_block();
}

void Journal::put_texts(const std::map<std::string, std::string>& texts) {
  begin_block(Block::kTexts, texts.size());
  for (const auto& [name, text] : texts) {
    put_text(name);
    put_text(text);
  }
  end_block();
}

void Journal::put_numbers(const std::map<std::string, int64_t>& numbers) {
  begin_block(Block::kNumbers, numbers.size());
  for (const auto& [name, value] : numbers) {
    put_text(name);
    put_value(value);
  }
  end_block();
}

}  // namespace collector::capture
