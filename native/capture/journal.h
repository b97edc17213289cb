// What has been recorded so far, in a file that outlives the process: written while the session is open, for the case
// that the program ends before it (killed, out of memory, a crash). collector/recording/journal.py reads it.
//
// The file: kMagic, then frames. A frame is whole or, if the process was killed while it wrote, the last one.
//
//   frame   u32 kFrame, u32 0, u64 bytes of what follows; then blocks
//   block   u32 kind (Journal::Block), u32 count, u64 bytes of what follows; then `count` items of that kind
//   text    u32 bytes, then the text
//
// Numbers are little-endian, nothing is aligned. Rows stand as they are in memory; a block of the first frame says
// which columns they have where. An item adds to what was before, a fact replaces the one of the same name.
#pragma once

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

// Whatever goes wrong ends the journal and nothing else: `trouble` says what it was. Not thread-safe.
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
    kDetails = 9,          // text: JSON of an annotation's metadata; details_id counts them from 1
  };

  // Makes the file, which must not be there yet.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The first frame: what all rows look like, and what is known before there are any.
  void begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
             const std::map<std::string, int64_t>& numbers);

  // A frame with what was added since the last one.
  void append(const store::Store& store, AnnotationLog& annotations, const std::map<std::string, int64_t>& numbers);

  // Nothing more will come. The file stays.
  void close();

  // Closes it and takes the file away, if it was made here.
  void remove();

  // Ends it early: what is in the file stays, and trouble() says why no more came.
  void give_up(const std::string& why);

  const std::string& trouble() const { return trouble_; }

 private:
  template <typename Row>
  void put_layout();
  template <typename Row>
  void put_rows(const store::StreamKey& key, const store::Chunks<Row>& rows);
  void put_callback_names(const cupti::Library& library);
  void put_annotations(AnnotationLog& annotations);
  void put_numbers(const std::map<std::string, int64_t>& numbers);

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
  std::string trouble_;
  std::vector<char> frame_;
  size_t block_begin_ = 0;
  std::map<std::pair<std::string_view, store::StreamKey>, size_t> rows_written_;
  size_t strings_written_ = 0;
};

}  // namespace collector::capture
