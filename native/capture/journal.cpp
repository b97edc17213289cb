#include "capture/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <iterator>

#include "threads/signals_blocked.h"

namespace collector::capture {
namespace {

constexpr size_t kFrameHead = 16;
constexpr size_t kBlockHead = 16;
constexpr uint32_t kCallbackIds = 1024;

}  // namespace

Journal::Journal(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  is_ours_ = file_ >= 0;
  if (!is_ours_) trouble_ = std::strerror(errno);
  struct stat info{};
  if (is_ours_ && ::fstat(file_, &info) == 0) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
  }
}

// ::close throws only in a cancelled thread, and the threads that call it are never cancelled.
Journal::~Journal() { close(); }  // NOLINT(bugprone-exception-escape)

void Journal::close() {
  if (file_ >= 0 && is_still_open()) ::close(file_);
  file_ = -1;
}

// Programs that become daemons close all descriptors, and the number of ours may be that of a file of theirs by now.
bool Journal::is_still_open() const {
  struct stat info{};
  return ::fstat(file_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

bool Journal::open_again() {
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ >= 0 && is_still_open()) return true;
  trouble_ = "the program closed its file, which is no longer in its place";
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  return false;
}

void Journal::remove() {
  close();
  if (is_ours_) ::unlink(path_.c_str());
  is_ours_ = false;
}

void Journal::give_up(const std::string& why) {
  trouble_ = why;
  close();  // the frames already written stay
}

// --- Frames ------------------------------------------------------------------------------------------------------

void Journal::begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
                    const std::map<std::string, int64_t>& numbers) {
  write(kMagic.data(), kMagic.size());
  write_frame([&] {
    put_texts(texts);
    put_numbers(numbers);
    store::each_row_type(store::AllRows(), [this](auto type) { put_layout<typename decltype(type)::Type>(); });
    put_callback_names(library);
  });
}

void Journal::append(const store::Store& store, AnnotationLog& annotations,
                     const std::map<std::string, int64_t>& numbers) {
  write_frame([&] {
    const auto& strings = store.strings.texts();
    begin_block(Block::kStrings, strings.size() - strings_written_);
    for (; strings_written_ < strings.size(); ++strings_written_) put_text(strings[strings_written_]);
    end_block();
    for (const auto& [key, stream] : store.streams()) {
      stream.rows.each([this, &place = key](const auto& rows) { put_rows(place, rows); });
    }
    store.rows.each([this](const auto& rows) { put_rows(store::StreamKey{}, rows); });
    put_annotations(annotations);  // they were open when the launches were made
    put_numbers(numbers);
  });
}

void Journal::finish(const std::map<std::string, std::string>& texts, std::map<std::string, int64_t> numbers) {
  numbers["journal.ended"] = 1;
  write_frame([&] {
    put_texts(texts);
    put_numbers(numbers);
  });
}

template <typename Fill>
void Journal::write_frame(Fill fill) {
  if (file_ < 0) return;
  if (!is_still_open() && !open_again()) return;
  try {
    frame_.assign(kFrameHead, 0);
    fill();
    const uint64_t bytes = frame_.size() - kFrameHead;
    std::memcpy(frame_.data(), &kFrame, sizeof(kFrame));
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

template <typename Row>
void Journal::put_rows(const store::StreamKey& key, const store::Chunks<Row>& rows) {
  constexpr std::string_view kTable = store::Table<Row>::kName;
  size_t& written = rows_written_[{kTable, key}];
  if (written == rows.size()) return;
  begin_block(Block::kRows, rows.size() - written);
  put_text(kTable);
  put_value(key.device_id);
  put_value(key.context_id);
  put_value(key.stream_id);
  while (written < rows.size()) {
    size_t count = 0;
    const Row* const run = rows.run(written, count);
    put(run, count * sizeof(Row));
    written += count;
  }
  end_block();
}

void Journal::put_callback_names(const cupti::Library& library) {
  std::vector<std::tuple<uint32_t, uint32_t, std::string>> names;
  for (const auto domain : {cupti::CallbackDomain::kRuntimeApi, cupti::CallbackDomain::kDriverApi}) {
    for (uint32_t id = 1; id < kCallbackIds; ++id) {
      std::string name = library.callback_name(domain, id);
      if (!name.empty()) names.emplace_back(static_cast<uint32_t>(domain), id, std::move(name));
    }
  }
  begin_block(Block::kCallbackNames, names.size());
  for (const auto& [domain, id, name] : names) {
    put_value(domain);
    put_value(id);
    put_text(name);
  }
  end_block();
}

void Journal::put_annotations(AnnotationLog& annotations) {
  const AnnotationChanges changes = annotations.changes();
  begin_block(Block::kAnnotationPaths, changes.paths.size());
  for (const std::string& path : changes.paths) put_text(path);
  end_block();
  if (!changes.opened.empty()) {
    begin_block(Block::kRows, changes.opened.size());
    put_text(store::Table<store::AnnotationRow>::kName);
    for (int part = 0; part < 3; ++part) put_value(uint32_t{0});
    put(changes.opened.data(), changes.opened.size() * sizeof(store::AnnotationRow));
    end_block();
  }
  begin_block(Block::kAnnotationEnds, changes.closed.size());
  for (const auto& [row, end_ns] : changes.closed) {
    put_value(row);
    put_value(end_ns);
  }
  end_block();
  begin_block(Block::kDetails, changes.details.size());
  for (const std::string& details : changes.details) put_text(details);
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
