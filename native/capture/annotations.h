// Annotations: the op names that a program puts around its launches, their times, and the ids that link launches to
// them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/journal_format.h"
#include "capture/open_annotations.h"
#include "capture/range_texts.h"
#include "capture/repeated_rows.h"
#include "kinds/generated/kinds.h"
#include "store/chunks.h"
#include "threads/brief_mutex.h"
#include "threads/mutex.h"

namespace collector::capture {

// A path of annotations, or another text of ranges. Rows have its number.
struct NumberedText {
  uint32_t number;
  std::string_view text;
};

// The changes to annotations since the last call of changes(). The texts are valid until the next call of to_repeat(),
// or until the session is taken.
struct AnnotationChanges {
  std::vector<store::AnnotationRow> opened;
  std::vector<NumberedText> paths;                   // and other texts, added since then
  std::vector<std::pair<uint64_t, int64_t>> closed;  // row and end_ns of annotations that an earlier call reported
  std::vector<std::string> details;
  std::vector<store::AnnotationRow> left;  // those that an earlier call reported as open, with their ends
  bool has_more = false;                   // the next call returns further annotations that had begun by then
};

// The annotations that a new segment of a journal repeats: those that changes() has returned and later rows refer to.
struct RepeatedAnnotations {
  std::vector<store::AnnotationRow> rows;
  std::vector<NumberedText> paths;  // and other texts of the rows; valid until the next call of to_repeat()
  std::vector<std::string> details;
};

// The paths and texts that a thread used last. Belongs to the thread.
struct PathCache {
  struct Line {
    uint64_t session = 0;
    uint32_t outer = 0;
    uint32_t path_id = 0;
    std::string name;
  };

  // In place of `outer`: the name is no path, but another text of a range.
  static constexpr uint32_t kText = UINT32_MAX - 1;

  Line& line_of(uint32_t outer, std::string_view name);

  std::array<Line, 64> lines;
};

// Thread-safe. The lock is never held around a CUPTI call, and never taken in a CUPTI callback.
class AnnotationLog {
 public:
  // The number of different paths that ranges may add to a session, or to a part of it, and of their domains,
  // categories and payloads. A text beyond it is replaced by kManyNames.
  static constexpr size_t kMostRangePaths = size_t{1} << 17;
  static constexpr size_t kMostRangeTexts = size_t{1} << 17;
  static constexpr size_t kMostRangeBytes = size_t{64} << 20;
  static constexpr std::string_view kManyNames = "(one of too many names)";
  // Each session takes two numbers. Behind the last one they begin again.
  static constexpr uint64_t kMostSessions = UINT64_MAX >> journal_format::kAnnotationBits;

  // `last_session`: the number that was taken last; 0: none was.
  explicit AnnotationLog(uint64_t last_session = 0) : session_(last_session) {}

  // Begins a new session and forgets all rows. Ids never repeat, so that an annotation left open by an earlier session
  // cannot be mistaken for one of this session. `follow`: changes() will be called; `forget`: it removes the rows that
  // it returns, so that take() returns none of them.
  void begin(bool follow, bool forget = false, bool of_whole_run = false);

  // Records the annotation that begins at `start_ns` in `place`, and sets the id and path of its `entry`. The id is to
  // be pushed to CUPTI. The entry's owner decides whether its path counts among those of ranges. `range`: further
  // facts about a range; null: there are none.
  void open(OpenAnnotation& entry, const Place& place, PathCache& cache, int64_t start_ns, uint32_t thread_id,
            uint16_t depth, uint32_t details_id, const RangeTexts* range = nullptr);

  // The ids of the session are not smaller.
  uint64_t first_id();

  // Closes an annotation; an annotation of an earlier session is ignored.
  void close(uint64_t external_id, int64_t end_ns);

  // Stores the metadata of an annotation if changes are followed; details_id counts these from 1.
  void note_details(std::string_view details);

  // The same for annotations that outlast sessions: all that were ever noted belong to each session of the whole run.
  void note_run_details(std::string_view details);

  // Called by one thread at a time, as to_repeat() is. The program's threads do not wait while it makes the rows that
  // it returns, at most kMostRowsAtOnce.
  static constexpr size_t kMostRowsAtOnce = size_t{1} << 15;
  AnnotationChanges changes();
  // Whether changes() would return anything. Called by the same thread.
  bool has_changes();

  // A session that forgets its rows forgets their texts as well, in parts. All rows that changes() returns after the
  // begin of a part have texts with numbers of that part, in which earlier texts have other numbers.
  //
  // Whether so much memory is taken by the texts of this part that another is to begin.
  static constexpr size_t kMostPartBytes = size_t{4} << 20;
  bool has_long_part();
  // The next part begins with one of the next calls of changes(), the last of which returns no `has_more`. Then
  // to_repeat() is to be called.
  void begin_part() { begins_part_ = true; }
  // The annotations that are open, those of graphs, and of those that have ended the latest ones, whose rows and texts
  // take about `most_bytes`. Texts of earlier parts that none of all these has are forgotten.
  RepeatedAnnotations to_repeat(const RepeatedRows& others, size_t most_bytes);

  // Ends the session at `end_ns`, which becomes the end of annotations that are still open. The rows' name_id counts
  // the paths from 0; the numbers of other texts begin at 1, and 0 stands for no text. A session that forgets its rows
  // returns no rows and no texts.
  std::vector<store::AnnotationRow> take(int64_t end_ns, std::vector<std::string>& paths);

  // The number of ranges of the session that have a text beyond the limit.
  uint64_t ranges_without_name();
  // The number of its annotations and ranges of which a text was cut.
  uint64_t names_cut();
  // Annotations whose ends there was no memory for.
  uint64_t ends_lost();

 private:
  // A name inside a path. The text is part of a stored path.
  struct Name {
    uint32_t outer;
    std::string_view text;
    bool operator==(const Name& other) const { return outer == other.outer && text == other.text; }
  };
  struct NameHash {
    size_t operator()(const Name& name) const {
      return std::hash<std::string_view>()(name.text) ^ name.outer * size_t{0x9e3779b97f4a7c15};
    }
  };
  static constexpr uint32_t kNoPath = UINT32_MAX;

  // A row is written for each annotation, so it has the size of half a cache line: facts that few annotations have are
  // stored elsewhere.
  struct Row {
    int64_t start_ns;
    int64_t end_ns;  // 0: it is open
    uint32_t name_id;
    uint32_t thread_id;
    uint32_t stated;  // of the program's annotations details_id; of ranges the number of their statement, 0: none
    uint16_t depth;
    bool is_range;
  };
  static_assert(sizeof(Row) == 32);

  // The columns of a row with further facts about a range.
  struct Statement {
    uint64_t op_sequence;
    uint32_t domain_name_id;
    uint32_t category_name_id;
    uint32_t payload_text_id;
    uint32_t color;
    uint32_t shapes_text_id;

    bool operator==(const Statement& other) const {
      return op_sequence == other.op_sequence && domain_name_id == other.domain_name_id &&
             category_name_id == other.category_name_id && payload_text_id == other.payload_text_id &&
             color == other.color && shapes_text_id == other.shapes_text_id;
    }
  };

  // The texts that were added in one part of a session.
  struct Texts {
    uint32_t first = 0;             // the number of the first one
    std::deque<std::string> texts;  // a deque never moves its strings
    std::unordered_map<Name, uint32_t, NameHash> numbers;
    size_t num_bytes = 0;
    size_t num_range_paths = 0;
    size_t num_range_texts = 0;
    size_t num_range_bytes = 0;        // of both
    std::vector<uint32_t> domain_ids;  // by owner; 0: not known yet

    uint32_t next() const { return first + static_cast<uint32_t>(texts.size()); }
    const std::string* find(uint32_t number) const {
      return number >= first && number < next() ? &texts[number - first] : nullptr;
    }
  };
  // Single texts of forgotten parts, by number.
  using KeptTexts = std::map<uint32_t, std::string>;
  // The highest numbers are none of texts, and kManyNames is to be added to parts to come.
  static constexpr uint32_t kMostNumbers = UINT32_MAX - (uint32_t{1} << 20);

  void next_session() REQUIRES(mutex_) { session_ = session_ % kMostSessions + 1; }
  const std::string* find_text(uint32_t number) const REQUIRES(mutex_);
  uint32_t path_of(uint32_t outer, std::string_view name, bool is_range) REQUIRES(mutex_);
  uint32_t add_path(uint32_t outer, std::string_view name) REQUIRES(mutex_);
  uint32_t text_id(std::string_view text) REQUIRES(mutex_);
  uint32_t cached_text_id(PathCache& cache, std::string_view text) REQUIRES(mutex_);
  uint32_t domain_id(Owner owner, std::string_view name) REQUIRES(mutex_);
  // The number of the facts, which is a new one unless the range before had the same.
  uint32_t number_of_statement(Owner owner, PathCache& cache, const RangeTexts& range) REQUIRES(mutex_);
  using Statements = store::Chunks<Statement>;
  // Rows with their further facts.
  struct RowSet {
    store::Blocks blocks{size_t{2} << 20, store::Blocks::Pages::kAtOnce};  // before the lists
    store::Chunks<Row> rows{blocks};
    Statements statements{blocks};  // whose numbers count from 1

    void clear() {
      rows.clear();
      statements.clear();
    }
  };
  // What changes() returns besides rows.
  void take_other_changes(AnnotationChanges& changes) REQUIRES(mutex_);
  AnnotationChanges changes_that_leave() EXCLUDES(mutex_);
  AnnotationChanges changes_that_stay() EXCLUDES(mutex_);
  // A row as the journal has it.
  static store::AnnotationRow journal_row(const Row& row, uint64_t external_id, const Statements& statements);
  // All rows, which leave `rows`. `first_id`: the external id of the first one; `end_ns`: the end of those that are
  // open.
  static std::vector<store::AnnotationRow> take_rows(store::Chunks<Row>& rows, const Statements& statements,
                                                     uint64_t first_id, int64_t end_ns);

  threads::BriefMutex mutex_;
  uint64_t session_ GUARDED_BY(mutex_);
  std::array<RowSet, 2> sets_;
  RowSet* rows_ GUARDED_BY(mutex_) = sets_.data();
  // Of this part; of the parts before it, as long as annotations that have just ended have texts of them; and of parts
  // before these. What is const changes no more: the thread that calls changes() reads it without the lock.
  using Parts = std::deque<std::shared_ptr<const Texts>>;
  static const std::string* find_text(uint32_t number, const Parts& parts, const KeptTexts& kept);
  std::shared_ptr<Texts> texts_ GUARDED_BY(mutex_) = std::make_shared<Texts>();
  Parts parts_before_ GUARDED_BY(mutex_);
  std::shared_ptr<const KeptTexts> kept_texts_ GUARDED_BY(mutex_) = std::make_shared<KeptTexts>();
  uint64_t ranges_without_name_ GUARDED_BY(mutex_) = 0;
  uint64_t names_cut_ GUARDED_BY(mutex_) = 0;
  uint64_t ends_lost_ GUARDED_BY(mutex_) = 0;
  bool follow_ GUARDED_BY(mutex_) = false;
  size_t num_forgotten_ GUARDED_BY(mutex_) = 0;  // rows of the session that were removed, all of them before rows_
  std::vector<std::string> run_details_ GUARDED_BY(mutex_);
  bool is_of_whole_run_ GUARDED_BY(mutex_) = false;
  size_t num_reported_ GUARDED_BY(mutex_) = 0;        // rows in rows_ that changes() has already returned
  size_t num_texts_reported_ GUARDED_BY(mutex_) = 0;  // likewise, of this part
  AnnotationChanges changes_ GUARDED_BY(mutex_);      // only `closed` and `details`; opened annotations are in rows_

  // Of the thread that calls changes(). The rows of a session that forgets them change places with an empty set, so
  // that they can be read without the lock.
  bool removes_rows_ = false;
  bool begins_part_ = false;
  RowSet* leaving_ = sets_.data() + 1;
  size_t num_left_ = 0;  // rows of leaving_ that have been returned
  uint64_t first_leaving_id_ = 0;
  size_t last_to_return_ = 0;                           // of rows that stay: those that had begun at the first call
  std::map<uint64_t, store::AnnotationRow> open_rows_;  // by number, of forgotten ones
  std::vector<std::string> written_details_;
};

}  // namespace collector::capture
