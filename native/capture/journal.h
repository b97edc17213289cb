// One file of a journal: the records of an open session, in a file that outlives the process in case the program ends
// before the session does (killed, out of memory, crashed). journal_format.h explains the format;
// collector/recording/journal_contents.py reads it.
#pragma once

#include <sys/types.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/annotations.h"
#include "capture/journal_format.h"
#include "capture/packed_rows.h"
#include "capture/range_log.h"
#include "capture/repeated_rows.h"
#include "cupti/library.h"
#include "kinds/generated/kinds.h"
#include "store/store.h"

namespace collector::capture {

// Any failure ends only the journal, not the session; `trouble` contains its cause. Not thread-safe.
class Journal {
 public:
  // Creates the file, which must not exist yet.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Writes the first frame: the layout of all rows, and the facts known before there are rows.
  void begin(const cupti::Library& library, const std::map<std::string, std::string>& texts,
             const std::map<std::string, int64_t>& numbers);

  // Writes a frame with the texts and rows of earlier segments that later rows refer to; see journal_format.h.
  void repeat(const store::Store& store, const RepeatedAnnotations& annotations, const RepeatedRows& rows);

  // Writes a frame with the rows and texts added since the last frame.
  void append(const store::Store& store, const AnnotationChanges& annotations, const OpenRangeChanges& ranges,
              const std::map<std::string, int64_t>& numbers);

  // The rows written so far have been removed from the store.
  void forget_rows() { rows_written_.clear(); }

  // Writes a frame with facts, which replace those of before.
  void state(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);

  // Closes the file, which stays. What was written to a file system over a network may be lost as late as this: the
  // journal has broken off then.
  void close();

  // Closes the file and deletes it, if this object created it and it is in its place still.
  void remove();

  // Ends the journal early: the frames already written stay, the first one says that the journal broke off, as far as
  // the file can still be reached, and trouble() contains the reason.
  void give_up(const std::string& why);

  const std::string& trouble() const { return trouble_; }

  // Keeps a second descriptor, if there is a free one, whose number another file of ours can get in a program that has
  // used up its descriptors; free_spare() gives the number back.
  void keep_spare();
  void free_spare();
  // Whether the file could not be created because no descriptor was free.
  bool lacks_descriptor() const { return lacks_descriptor_; }

  // The bytes written.
  uint64_t num_bytes() const { return num_bytes_; }
  // The rows written of each table, without repeated ones.
  const std::map<std::string_view, uint64_t>& num_rows() const { return num_rows_; }
  // Whether ends were written of annotations that were open when they were written.
  bool has_ends() const { return has_ends_; }
  // The earliest start and the latest end of these rows; 0 without rows.
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }
  // The latest start of those that are no annotations, and that had begun when they were written: a wrong time of CUPTI
  // may lie in the future. 0 without rows.
  int64_t decoded_ns() const { return decoded_ns_; }

 private:
  using Block = journal_format::Block;

  template <typename Row>
  void put_layout();
  template <typename Row>
  void put_rows(const store::StreamKey& key, const store::Chunks<Row>& rows);
  template <typename Row>
  void put_run(const store::StreamKey& key, const Row* rows, size_t count);
  template <typename Row>
  void put_block(const store::StreamKey& key, const Row* rows, size_t count);
  template <typename Row>
  void put_repeated(const std::vector<Row>& rows);
  template <typename Row>
  void note_times(const Row* rows, size_t count);
  // The names of functions of which these are the first calls.
  void put_new_callback_names(const store::Chunks<store::ApiCallRow>& calls);
  void put_annotations(const AnnotationChanges& annotations);
  void put_open_ranges(const OpenRangeChanges& changes);
  // The texts of the store that the file does not have.
  void put_new_strings(const store::StringTable& strings);
  template <typename Texts>
  void put_text_block(Block kind, const Texts& texts, size_t first);
  void put_numbered_texts(const std::vector<NumberedText>& texts);
  void put_texts(const std::map<std::string, std::string>& texts);
  void put_numbers(const std::map<std::string, int64_t>& numbers);
  // Whether a descriptor of ours is still one of this file.
  bool is_of_file(int descriptor) const;
  bool is_still_open() const { return is_of_file(file_); }
  bool open_again();
  // Closes a descriptor of ours, unless the program has closed it; returns the number of the error, or 0.
  int close_descriptor(int& descriptor);
  // Whether the file can still be found under its name.
  bool is_in_its_folder() const;
  // Sets a flag of the first frame, which is written already.
  void set_flag(journal_format::FrameFlag flag);

  void begin_block(Block kind, size_t count);
  void change_block_kind(Block kind);
  void end_block();
  void put(const void* data, size_t bytes);
  void put_text(std::string_view text);
  template <typename Value>
  void put_value(Value value) {
    put(&value, sizeof(value));
  }
  template <typename Fill>
  void write_frame(Fill fill, journal_format::FrameFlag flag = journal_format::FrameFlag::kNone);
  void write(const void* data, size_t bytes);

  const cupti::Library* library_ = nullptr;
  std::string path_;
  int file_ = -1;
  int spare_ = -1;
  bool lacks_descriptor_ = false;
  bool is_ours_ = false;
  dev_t device_ = 0;  // of the file, with its inode: a program may close our descriptor and be given its number
  ino_t inode_ = 0;
  bool counts_links_ = false;  // whether its file system shows that a file has been removed
  std::string trouble_;
  std::vector<char> frame_;
  size_t block_begin_ = 0;
  RowPacker packer_;
  uint64_t num_bytes_ = 0;
  std::map<std::string_view, uint64_t> num_rows_;
  bool has_ends_ = false;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
  int64_t decoded_ns_ = 0;
  int64_t written_ns_ = INT64_MAX;  // on CUPTI's clock, when the frame's rows are written
  std::map<std::pair<std::string_view, store::StreamKey>, size_t> rows_written_;
  uint32_t first_string_ = 0;                                        // of the store's texts
  size_t strings_written_ = 0;                                       // of them
  std::array<std::bitset<cupti::kCallbackIds>, 2> known_callbacks_;  // by index_of: named already
};

}  // namespace collector::capture
