// The journal: the records of an open session in a file that outlives the process, in case the program ends before the
// session does (killed, out of memory, crashed). collector/recording/journal.py reads it.
//
// The file is kMagic followed by frames. Every frame is complete, except that the last one may be truncated if the
// process was killed while writing it. The number "journal.ended" of the last frame is 1 if the session ended; before
// that frame the file is a journal of a session that had not ended.
//
//   frame   u32 kFrame, u32 0, u64 bytes of the rest; then blocks
//   block   u32 kind (Journal::Block), u32 count, u64 bytes of the rest; then `count` items of that kind
//   text    u32 bytes, then the text
//
// Numbers are little-endian and unaligned. Rows are stored as they are in memory; a block of the first frame gives the
// name, offset and size of their columns. Items are appended to those of earlier frames; a fact replaces the earlier
// fact of the same name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/annotations.h"
#include "cupti/library.h"
#include "kinds/generated/kinds.h"
#include "store/store.h"

namespace collector::capture {

// Any failure ends only the journal, not the session; `trouble` contains its cause. Not thread-safe.
class Journal {
 public:
  static constexpr std::string_view kMagic{"GPUJRNL\1", 8};  // the last byte is the version
  static constexpr uint32_t kFrame = 0x4d415246;

  enum class Block : uint32_t {
    kTexts = 1,            // name text, value text
    kNumbers = 2,          // name text, i64
    kLayout = 3,           // of one table: its name text, u32 bytes of a row; then `count` times column name text,
                           // u32 offset, u32 bytes, u32 whether signed
    kCallbackNames = 4,    // u32 domain, u32 id, name text
    kStrings = 5,          // text; name_id counts them
    kRows = 6,             // table name text, u32 device, u32 context, u32 stream; then `count` rows
    kAnnotationPaths = 7,  // text; an annotation's name_id counts them
    kAnnotationEnds = 8,   // u64 number of the annotation's row, i64 end_ns
    kDetails = 9,          // text: JSON of an annotation's metadata; details_id counts these from 1
  };

  // Creates the file, which must not exist yet.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Writes the first frame: the layout of all rows, and the facts known before there are rows.
  void begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
             const std::map<std::string, int64_t>& numbers);

  // Writes a frame with the rows and texts added since the last frame.
  void append(const store::Store& store, AnnotationLog& annotations, const std::map<std::string, int64_t>& numbers);

  // The rows written so far have been removed from the store.
  void forget_rows() { rows_written_.clear(); }

  // Writes the last frame, by which a reader knows that the session has ended. The facts replace those of before.
  void finish(const std::map<std::string, std::string>& texts, std::map<std::string, int64_t> numbers);

  // Closes the file, which stays.
  void close();

  // Closes the file and deletes it, if this object created it.
  void remove();

  // Ends the journal early: the frames already written stay, and trouble() contains the reason.
  void give_up(const std::string& why);

  const std::string& trouble() const { return trouble_; }

 private:
  template <typename Row>
  void put_layout();
  template <typename Row>
  void put_rows(const store::StreamKey& key, const store::Chunks<Row>& rows);
  void put_callback_names(const cupti::Library& library);
  void put_annotations(AnnotationLog& annotations);
  void put_texts(const std::map<std::string, std::string>& texts);
  void put_numbers(const std::map<std::string, int64_t>& numbers);
  bool is_still_open() const;
  bool open_again();

  void begin_block(Block kind, size_t count);
  void end_block();
  void put(const void* data, size_t bytes);
  void put_text(std::string_view text);
  template <typename Value>
  void put_value(Value value) {
    put(&value, sizeof(value));
  }
  template <typename Fill>
  void write_frame(Fill fill);
  void write(const void* data, size_t bytes);

  std::string path_;
  int file_ = -1;
  bool is_ours_ = false;
  dev_t device_ = 0;  // of the file, with its inode: a program may close our descriptor and be given its number
  ino_t inode_ = 0;
  std::string trouble_;
  std::vector<char> frame_;
  size_t block_begin_ = 0;
  std::map<std::pair<std::string_view, store::StreamKey>, size_t> rows_written_;
  size_t strings_written_ = 0;
};

}  // namespace collector::capture
