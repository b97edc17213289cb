#include "capture/annotations.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <set>
#include <utility>

#include "capture/journal_format.h"
#include "store/long_names.h"

namespace collector::capture {

// The high bits of an id are the session's number, the low bits the row's number + 1.
constexpr int kRowBits = journal_format::kAnnotationBits;
constexpr uint64_t kRowMask = (uint64_t{1} << kRowBits) - 1;

// The memory of a text beside its characters, roughly.
constexpr size_t kBytesBeside = 128;
// What a row takes in a journal, roughly.
constexpr size_t kBytesOfRow = 16;

// The numbers of the texts of a row.
template <typename Visit>
void each_text(const store::AnnotationRow& row, const Visit& visit) {
  visit(row.name_id);
  for (const uint32_t id : {row.domain_name_id, row.category_name_id, row.payload_text_id, row.shapes_text_id}) {
    if (id != 0) visit(id - 1);
  }
}

void AnnotationLog::begin(bool follow, bool forget, bool of_whole_run) {
  auto texts = std::make_shared<Texts>();
  Parts parts;
  auto kept = std::make_shared<const KeptTexts>();
  const threads::BriefLock lock(mutex_);
  next_session();
  for (RowSet& set : sets_) set.clear();
  texts_.swap(texts);
  parts_before_.swap(parts);
  kept_texts_.swap(kept);
  ranges_without_name_ = 0;
  names_cut_ = 0;
  ends_lost_ = 0;
  follow_ = follow;
  num_forgotten_ = 0;
  num_reported_ = 0;
  num_texts_reported_ = 0;
  changes_ = {};
  removes_rows_ = follow && forget;
  begins_part_ = false;
  num_left_ = 0;
  last_to_return_ = 0;
  open_rows_.clear();
  written_details_.clear();
  is_of_whole_run_ = of_whole_run;
  if (of_whole_run) changes_.details = run_details_;
}

PathCache::Line& PathCache::line_of(uint32_t outer, std::string_view name) {
  // The ends of a name distinguish most names of a program, and cost the same whatever its length.
  uint64_t first = name.size();
  uint64_t last = 0;
  if (name.size() >= sizeof(uint64_t)) {
    std::memcpy(&first, name.data(), sizeof(first));
    std::memcpy(&last, name.data() + name.size() - sizeof(last), sizeof(last));
  } else {
    for (const char letter : name) last = last << 8 | static_cast<unsigned char>(letter);
  }
  const uint64_t mixed = (first ^ (last << 1) ^ (uint64_t{outer} << 17)) * 0x9e3779b97f4a7c15;
  return lines[mixed >> 58];
}

const std::string* AnnotationLog::find_text(uint32_t number, const Parts& parts, const KeptTexts& kept) {
  const auto is_before = [](uint32_t wanted, const auto& part) { return wanted < part->first; };
  const auto after = std::upper_bound(parts.begin(), parts.end(), number, is_before);
  if (after != parts.begin()) return (*std::prev(after))->find(number);
  const auto found = kept.find(number);
  return found == kept.end() ? nullptr : &found->second;
}

const std::string* AnnotationLog::find_text(uint32_t number) const {
  const std::string* const text = texts_->find(number);
  return text == nullptr ? find_text(number, parts_before_, *kept_texts_) : text;
}

uint32_t AnnotationLog::path_of(uint32_t outer, std::string_view name, bool is_range) {
  Texts& part = *texts_;
  if (const auto known = part.numbers.find({outer, name}); known != part.numbers.end()) return known->second;
  const std::string* const around = outer == kNoPath ? nullptr : find_text(outer);
  const size_t size = around == nullptr ? name.size() : around->size() + 1 + name.size();
  if (size > store::kLongestName) {
    ++names_cut_;
    const std::string_view kept = store::beginning_of(name, store::kLongestName);
    return path_of(kNoPath, store::cut_name(around == nullptr ? std::string(name) : (*around + "/").append(kept)),
                   is_range);
  }
  const bool is_too_much =
      is_range && (part.num_range_paths >= kMostRangePaths || part.num_range_bytes + size > kMostRangeBytes);
  if ((is_too_much || part.next() >= kMostNumbers) && name != kManyNames) {
    ++ranges_without_name_;
    return path_of(kNoPath, kManyNames, is_range);
  }
  if (is_range) {
    ++part.num_range_paths;
    part.num_range_bytes += size;
  }
  return add_path(outer, name);
}

uint32_t AnnotationLog::add_path(uint32_t outer, std::string_view name) {
  Texts& part = *texts_;
  const uint32_t number = part.next();
  const std::string* const around = outer == kNoPath ? nullptr : find_text(outer);
  const std::string& path =
      part.texts.emplace_back(around == nullptr ? std::string(name) : *around + "/" + std::string(name));
  part.numbers.emplace(Name{outer, std::string_view(path).substr(path.size() - name.size())}, number);
  part.num_bytes += kBytesBeside + path.size();
  return number;
}

uint32_t AnnotationLog::text_id(std::string_view text) {
  if (text.empty()) return 0;
  Texts& part = *texts_;
  if (const auto known = part.numbers.find({kNoPath, text}); known != part.numbers.end()) return known->second + 1;
  if (text.size() > store::kLongestName) {
    ++names_cut_;
    return text_id(store::cut_name(text));
  }
  const bool is_too_much =
      part.num_range_texts >= kMostRangeTexts || part.num_range_bytes + text.size() > kMostRangeBytes;
  if ((is_too_much || part.next() >= kMostNumbers) && text != kManyNames) {
    ++ranges_without_name_;
    return text_id(kManyNames);
  }
  ++part.num_range_texts;
  part.num_range_bytes += text.size();
  return add_path(kNoPath, text) + 1;
}

uint32_t AnnotationLog::domain_id(Owner owner, std::string_view name) {
  if (name.empty()) return 0;
  std::vector<uint32_t>& ids = texts_->domain_ids;
  if (owner >= ids.size()) ids.resize(size_t{owner} + 1, 0);
  if (ids[owner] != 0) return ids[owner];
  const uint64_t before = ranges_without_name_ + names_cut_;
  const uint32_t id = text_id(name);
  if (before == ranges_without_name_ + names_cut_) ids[owner] = id;  // each range is counted
  return id;
}

uint32_t AnnotationLog::cached_text_id(PathCache& cache, std::string_view text) {
  if (text.empty()) return 0;
  PathCache::Line& line = cache.line_of(PathCache::kText, text);
  const bool is_known = line.session == session_ && line.path_id > texts_->first;
  if (!is_known || line.outer != PathCache::kText || line.name != text) {
    const uint64_t before = ranges_without_name_ + names_cut_;
    line.session = 0;  // until all of it is set: memory may run out
    line.path_id = text_id(text);
    line.outer = PathCache::kText;
    if (before == ranges_without_name_ + names_cut_) {  // otherwise each range is counted
      line.name = text;
      line.session = session_;
    }
  }
  return line.path_id;
}

uint32_t AnnotationLog::number_of_statement(Owner owner, PathCache& cache, const RangeTexts& range) {
  Statement statement{};
  statement.op_sequence = range.op_sequence;
  statement.domain_name_id = domain_id(owner, range.domain);
  statement.category_name_id = cached_text_id(cache, range.category);
  statement.payload_text_id = cached_text_id(cache, range.payload);
  statement.color = range.color;
  statement.shapes_text_id = cached_text_id(cache, range.shapes);
  Statements& statements = rows_->statements;
  const size_t count = statements.size();
  if (count == 0 || !(statements[count - 1] == statement)) statements.append() = statement;
  return static_cast<uint32_t>(statements.size());
}

store::AnnotationRow AnnotationLog::journal_row(const Row& row, uint64_t external_id, const Statements& statements) {
  store::AnnotationRow written{};
  written.start_ns = row.start_ns;
  written.end_ns = row.end_ns;
  written.external_id = external_id;
  written.name_id = row.name_id;
  written.thread_id = row.thread_id;
  written.depth = row.depth;
  if (!row.is_range) {
    written.details_id = row.stated;
  } else if (row.stated != 0) {
    const Statement& statement = statements[row.stated - 1];
    written.op_sequence = statement.op_sequence;
    written.domain_name_id = statement.domain_name_id;
    written.category_name_id = statement.category_name_id;
    written.payload_text_id = statement.payload_text_id;
    written.color = statement.color;
    written.shapes_text_id = statement.shapes_text_id;
  }
  return written;
}

void AnnotationLog::open(OpenAnnotation& entry, const Place& place, PathCache& cache, int64_t start_ns,
                         uint32_t thread_id, uint16_t depth, uint32_t details_id, const RangeTexts* range) {
  const threads::BriefLock lock(mutex_);
  // The path of an annotation of an earlier session is forgotten.
  const uint32_t outer = place.outer_id >> kRowBits == session_ ? place.outer_path_id : kNoPath;
  const uint64_t without_name = ranges_without_name_;
  const uint64_t cut = names_cut_;
  PathCache::Line& line = cache.line_of(outer, place.name);
  const bool is_known = line.session == session_ && line.path_id >= texts_->first;
  if (!is_known || line.outer != outer || line.name != place.name) {
    line.session = 0;  // until all of it is set: memory may run out
    line.path_id = path_of(outer, place.name, !is_program(entry.owner));
    line.outer = outer;
    if (without_name == ranges_without_name_ && cut == names_cut_) {  // otherwise each range is counted
      line.name = place.name;
      line.session = session_;
    }
  }
  entry.path_id = line.path_id;  // before a text takes the line
  const bool is_range = !is_program(entry.owner);
  uint32_t stated = details_id;
  if (is_range) stated = range == nullptr ? 0 : number_of_statement(entry.owner, cache, *range);
  if (range != nullptr && range->is_shared) ++ranges_without_name_;
  ranges_without_name_ = std::min(ranges_without_name_, without_name + 1);  // one range, whatever it lacks
  names_cut_ = std::min(names_cut_, cut + 1);
  rows_->rows.append() = {start_ns, 0, entry.path_id, thread_id, stated, depth, is_range};
  entry.id = session_ << kRowBits | (num_forgotten_ + rows_->rows.size());  // of a row that is there
}

uint64_t AnnotationLog::first_id() {
  const threads::BriefLock lock(mutex_);
  return session_ << kRowBits;
}

void AnnotationLog::close(uint64_t external_id, int64_t end_ns) {
  const threads::BriefLock lock(mutex_);
  const uint64_t row = (external_id & kRowMask) - 1;
  if (external_id >> kRowBits != session_ || row >= num_forgotten_ + rows_->rows.size()) return;
  if (row >= num_forgotten_) rows_->rows[row - num_forgotten_].end_ns = end_ns;
  if (!follow_ || row >= num_forgotten_ + num_reported_) return;
  try {
    changes_.closed.emplace_back(row, end_ns);
  } catch (const std::bad_alloc&) {
    if (row < num_forgotten_) ++ends_lost_;
  }
}

void AnnotationLog::note_details(std::string_view details) {
  const threads::BriefLock lock(mutex_);
  if (follow_) changes_.details.emplace_back(details);
}

void AnnotationLog::note_run_details(std::string_view details) {
  const threads::BriefLock lock(mutex_);
  run_details_.emplace_back(details);
  if (is_of_whole_run_) changes_.details.emplace_back(details);
}

AnnotationChanges AnnotationLog::changes() { return removes_rows_ ? changes_that_leave() : changes_that_stay(); }

bool AnnotationLog::has_changes() {
  const threads::BriefLock lock(mutex_);
  return !leaving_->rows.empty() || num_reported_ < rows_->rows.size() || num_texts_reported_ < texts_->texts.size() ||
         !changes_.closed.empty() || !changes_.details.empty();
}

void AnnotationLog::take_other_changes(AnnotationChanges& changes) {
  changes.closed.swap(changes_.closed);
  changes.details.swap(changes_.details);
  const Texts& part = *texts_;
  changes.paths.reserve(part.texts.size() - num_texts_reported_);
  for (; num_texts_reported_ < part.texts.size(); ++num_texts_reported_) {
    const auto number = part.first + static_cast<uint32_t>(num_texts_reported_);
    changes.paths.push_back({number, part.texts[num_texts_reported_]});
  }
}

AnnotationChanges AnnotationLog::changes_that_leave() {
  AnnotationChanges changes;
  if (leaving_->rows.empty()) {
    auto next = begins_part_ ? std::make_shared<Texts>() : nullptr;
    decltype(Texts::numbers) numbers;
    const threads::BriefLock lock(mutex_);
    take_other_changes(changes);
    std::swap(rows_, leaving_);
    first_leaving_id_ = session_ << kRowBits | (num_forgotten_ + 1);
    num_forgotten_ += leaving_->rows.size();
    if (next != nullptr) {
      next->first = texts_->next();
      texts_.swap(next);
      next->numbers.swap(numbers);  // nothing is added to it
      parts_before_.push_back(std::move(next));
      num_texts_reported_ = 0;
      begins_part_ = false;
    }
  }
  // Ends are those of rows that earlier calls returned: they were taken when all rows of before had been.
  for (const auto& [row, end_ns] : changes.closed) {
    const auto ended = open_rows_.find(row);
    if (ended == open_rows_.end()) continue;
    ended->second.end_ns = end_ns;
    changes.left.push_back(ended->second);
    open_rows_.erase(ended);
  }
  written_details_.insert(written_details_.end(), changes.details.begin(), changes.details.end());
  const size_t end = std::min(num_left_ + kMostRowsAtOnce, leaving_->rows.size());
  changes.opened.reserve(end - num_left_);
  for (; num_left_ < end; ++num_left_) {
    changes.opened.push_back(
        journal_row(leaving_->rows[num_left_], first_leaving_id_ + num_left_, leaving_->statements));
    const store::AnnotationRow& row = changes.opened.back();
    if (row.end_ns == 0) open_rows_.emplace((row.external_id & kRowMask) - 1, row);
  }
  if (num_left_ == leaving_->rows.size()) {
    leaving_->clear();
    num_left_ = 0;
  }
  changes.has_more = !leaving_->rows.empty() || begins_part_;
  return changes;
}

AnnotationChanges AnnotationLog::changes_that_stay() {
  constexpr size_t kRowsUnderLock = 1024;
  AnnotationChanges changes;
  size_t rest = 0;
  {
    const threads::BriefLock lock(mutex_);
    take_other_changes(changes);
    if (num_reported_ >= last_to_return_) last_to_return_ = rows_->rows.size();
    rest = std::min(last_to_return_ - num_reported_, kMostRowsAtOnce);
  }
  changes.opened.reserve(rest);
  while (rest > 0) {
    const threads::BriefLock lock(mutex_);
    for (size_t count = std::min(rest, kRowsUnderLock); count > 0; --count, --rest, ++num_reported_) {
      const uint64_t id = session_ << kRowBits | (num_reported_ + 1);
      changes.opened.push_back(journal_row(rows_->rows[num_reported_], id, rows_->statements));
    }
    changes.has_more = num_reported_ < last_to_return_;
  }
  return changes;
}

bool AnnotationLog::has_long_part() {
  const threads::BriefLock lock(mutex_);
  return removes_rows_ && texts_->num_bytes > kMostPartBytes;
}

RepeatedAnnotations AnnotationLog::to_repeat(const RepeatedRows& others, size_t most_bytes) {
  Parts parts;
  std::shared_ptr<const KeptTexts> before;
  {
    const threads::BriefLock lock(mutex_);
    parts = parts_before_;
    before = kept_texts_;
  }
  RepeatedAnnotations repeated;
  repeated.details = written_details_;
  auto kept = std::make_shared<KeptTexts>();
  const auto keep = [&](uint32_t number) {
    if (const std::string* const text = find_text(number, parts, *before)) kept->emplace(number, *text);
  };
  std::set<uint64_t> ids;
  const auto tell = [&](const store::AnnotationRow& row) {
    if (!ids.insert(row.external_id).second) return false;
    repeated.rows.push_back(row);
    return true;
  };
  const auto tell_and_keep = [&](const store::AnnotationRow& row) {
    if (tell(row)) each_text(row, keep);
  };
  for (const auto& [number, row] : open_rows_) tell_and_keep(row);
  others.graphs.each_annotation(tell_and_keep);
  uint32_t first_needed = UINT32_MAX;
  for (const store::AnnotationRow& row : others.ended) {
    each_text(row, [&](uint32_t number) {
      if (!parts.empty() && number >= parts.front()->first) {
        first_needed = std::min(first_needed, number);
      } else {
        keep(number);
      }
    });
  }
  while (!parts.empty() && parts.front()->next() <= first_needed) parts.pop_front();

  std::map<uint32_t, std::string_view> texts;
  size_t bytes = 0;
  const auto state = [&](uint32_t number) {
    const std::string* const text = find_text(number, parts, *kept);
    if (text != nullptr && texts.emplace(number, *text).second) bytes += sizeof(number) + text->size();
  };
  for (const store::AnnotationRow& row : repeated.rows) each_text(row, state);
  bytes = 0;
  for (auto row = others.ended.rbegin(); row != others.ended.rend() && bytes < most_bytes; ++row) {
    if (!tell(*row)) continue;
    each_text(*row, state);
    bytes += kBytesOfRow;
  }
  for (const auto& [number, text] : texts) repeated.paths.push_back({number, text});
  const threads::BriefLock lock(mutex_);
  parts_before_.swap(parts);
  kept_texts_ = std::move(kept);
  return repeated;
}

std::vector<store::AnnotationRow> AnnotationLog::take_rows(store::Chunks<Row>& rows, const Statements& statements,
                                                           uint64_t first_id, int64_t end_ns) {
  std::vector<store::AnnotationRow> written;
  written.reserve(rows.size());
  rows.take_all([&](const Row* run, size_t count) {
    for (const Row* row = run; row != run + count; ++row) {
      written.push_back(journal_row(*row, first_id + written.size(), statements));
      if (row->end_ns == 0) written.back().end_ns = end_ns;
    }
  });
  return written;
}

std::vector<store::AnnotationRow> AnnotationLog::take(int64_t end_ns, std::vector<std::string>& paths) {
  auto texts = std::make_shared<Texts>();
  Parts parts;
  auto kept = std::make_shared<const KeptTexts>();
  const threads::BriefLock lock(mutex_);
  if (removes_rows_) rows_->rows.clear();
  std::vector<store::AnnotationRow> rows =
      take_rows(rows_->rows, rows_->statements, session_ << kRowBits | (num_forgotten_ + 1), end_ns);
  rows_->statements.clear();
  next_session();  // annotations that are closed from now on belong to no session
  texts_.swap(texts);
  parts_before_.swap(parts);
  kept_texts_.swap(kept);
  paths.assign(std::make_move_iterator(texts->texts.begin()), std::make_move_iterator(texts->texts.end()));
  return rows;
}

uint64_t AnnotationLog::ends_lost() {
  const threads::BriefLock lock(mutex_);
  return ends_lost_;
}

uint64_t AnnotationLog::names_cut() {
  const threads::BriefLock lock(mutex_);
  return names_cut_;
}

uint64_t AnnotationLog::ranges_without_name() {
  const threads::BriefLock lock(mutex_);
  return ranges_without_name_;
}

}  // namespace collector::capture
