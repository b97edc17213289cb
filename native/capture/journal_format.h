// The format of journals, for the writer (journal.h, packed_rows.h) and its twin, the reader
// (collector/recording/journal_frames.py, journal_contents.py, packed_rows.py).
//
// A journal is kMagic followed by frames. Every frame is complete, except that the last one may be truncated if the
// process was killed while writing it.
//
//   frame   u32 kFrame, u32 flags (FrameFlag), u64 bytes of the rest; then blocks
//   block   u32 kind (Block), u32 count, u64 bytes of the rest; then `count` items of that kind
//   text    u32 bytes, then the text
//
// Numbers are little-endian and unaligned. A block of the first frame gives the name, offset and size of the columns of
// each table. Items are appended to those of earlier frames; a fact (a text or a number) replaces the earlier fact of
// the same name.
//
// The number "journal.ended" of the last frame is 1 if the session ended; before that frame the file is a journal of a
// session that had not ended. If nothing more could be written although the session went on, as on a full disk, the
// first frame has the flag kBrokeOff: it is set in place, which needs no room and is no matter of the last frame.
//
// A frame with rows begins with the time of CUPTI's clock at which it was written ("journal.written_ns"). A row of this
// or an earlier frame that ends later is damaged: it does not say how long a session lasted that had not ended.
//
// Rows
//
// Rows are written as they are in memory (kRows) or packed (kPackedRows), whichever is smaller: a frame with few rows
// has them as they are. Packed rows are stored column by column. Each column takes its values as 64-bit numbers (signed
// columns are sign-extended), and all arithmetic is modulo 2^64:
//
//   u8 coding (Coding), u8 width, u64 base; kDifferences: u64 first value
//   then the residuals of `width` bytes each (0 to 8; 0: all of them are 0), as many as rows, or one less for
//   kDifferences, where the first row has none
//
//   kValues        value = base + residual
//   kDifferences   value = value of the row before + base + residual
//   kFromColumn    value = value of the same row in the column before + base + residual
//
// A block has at most kMostPackedRows of them. The writer takes the coding that needs the smallest width. The base is
// the smallest number of the coding, so that residuals are small. Most columns of a launch are constant within a block
// (no residuals), times are differences of 2 or 3 bytes to the row before, and ends are 1 or 2 bytes from their starts.
// The reader needs no loop over rows.
//
// Segments
//
// A journal of a long session may be cut into segments. Its name is then that of a folder, whose files are named
// 000001.journal, 000002.journal, and so on, and the oldest may have been removed. Each segment is a journal that can
// be read by itself. Its first frame has the number "segment.number" and, from the second segment on, the CUPTI time of
// its begin ("segment.begin_ns"), for each table the number of rows in earlier segments ("segment.rows_before.TABLE")
// and the counters up to then. What happened after the begin is in this segment or a later one. From the second segment
// on the second frame has the flag kRepeated: it repeats what earlier segments contain and later rows refer to: all
// details, from number 1 on, strings, from the number "segment.first_string" of the first frame on, annotations that
// are open or have just ended, with their paths, changes of graphs that exist, with the annotations of their captures,
// contexts, streams and devices. A reader that has read the segment before skips it, but for the strings. The last
// frame of a segment that was closed has the number "segment.closed" = 1, the clocks of that time, the counters up to
// then, and the earliest start and the latest end of its rows of activities ("segment.first_ns", "segment.last_ns").
// Counters are those of the session, not of the segment. Where CUPTI held buffers back that had records by then, the
// frame of a segment that was closed on request has their number ("segment.buffers_held"); the records are in a later
// segment.
//
// Strings are numbered in the order in which they are added in a session, and number 0 is the empty text. The writer
// forgets them where it forgets their rows: a string that is used again has another number then, and a segment has the
// strings of its own rows. The next string is the empty text again, whose number there no row has.
//
// Annotation paths, and other texts of ranges, are numbered in the order in which they are added in a session. The
// writer forgets texts, so that names which never repeat do not fill its memory: a text that is used again has another
// number then. The rows of a segment have numbers of texts in the same segment, in its second frame or in a later one
// up to that of the row.
//
// NVTX ranges that may end in another place than they began have a row when they end. A range that is open when a frame
// is written is stated (kOpenedRanges) with its row, which has no end; later frames state the ids of those of them that
// have ended (kEndedRanges), with their rows. Each segment states the ranges that are open at its begin again, up to a
// number of them.
//
// Annotations are numbered in their external_id, whose low kAnnotationBits are the number of the annotation's row in
// the session, from 1 on.
#pragma once

#include <cstdint>
#include <string_view>

namespace collector::capture::journal_format {

// The last byte is the version. Version 1 had no packed rows, flags and segments. Before version 3 annotation paths had
// no numbers (kAnnotationPaths): they were counted from 0, and each segment repeated all of them. Before version 4
// each segment repeated all strings, from number 0 on. Before version 5 open ranges were not stated.
inline constexpr std::string_view kMagic{"GPUJRNL\5", 8};
inline constexpr uint32_t kFrame = 0x4d415246;
inline constexpr int kAnnotationBits = 40;
inline constexpr uint32_t kMostPackedRows = 4096;  // of a block

enum class FrameFlag : uint32_t {
  kNone = 0,
  kRepeated = 1,
  kBrokeOff = 2,
};

enum class Block : uint32_t {
  kTexts = 1,            // name text, value text
  kNumbers = 2,          // name text, i64
  kLayout = 3,           // of one table: its name text, u32 bytes of a row; then `count` times column name text,
                         // u32 offset, u32 bytes, u32 whether signed
  kCallbackNames = 4,    // u32 domain, u32 id, name text: of the functions whose first calls in this file follow
  kStrings = 5,          // text; name_id counts them
  kRows = 6,             // table name text, u32 device, u32 context, u32 stream; then `count` rows
  kAnnotationPaths = 7,  // text; an annotation's name_id counts them. Not since version 3
  kAnnotationEnds = 8,   // u64 number of the annotation's row, from 0 on, i64 end_ns
  kDetails = 9,          // text: JSON of an annotation's metadata; details_id counts these from 1
  kPackedRows = 10,      // as kRows, but the rows are packed
  kNumberedPaths = 11,   // u32 number, text; an annotation's name_id is such a number, other texts have it plus 1
  kOpenedRanges = 12,    // `count` times u64 id of a range; then as many rows of the table nvtx_ranges
  kEndedRanges = 13,     // u64 id of a range
};

enum class Coding : uint8_t {
  kValues = 0,
  kDifferences = 1,
  kFromColumn = 2,
};

}  // namespace collector::capture::journal_format
