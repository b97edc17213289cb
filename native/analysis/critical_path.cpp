#include "analysis/critical_path.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace collector::analysis {
namespace {

size_t place(int64_t number) { return static_cast<size_t>(number); }

// The activities of a stream that ran when the last one began, and of the others the one that ended last.
class RunningRows {
 public:
  // Goes on to the start of an activity that is to be added next.
  void go_to(int64_t start) {
    for (; !running_.empty() && running_.top().first <= start; running_.pop()) last_ended_ = running_.top().second;
  }
  void add(int64_t end, int64_t row) { running_.emplace(end, row); }

  int64_t last_ended() const { return last_ended_; }

 private:
  using Ending = std::pair<int64_t, int64_t>;  // end, row
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running_;
  int64_t last_ended_ = kNone;
};

// The activities of each stream in their order, and the times of the launches into it. Activities of a stream may run
// at once, as the nodes of a graph do.
class StreamRows {
 public:
  explicit StreamRows(const PathActivities& activities) : activities_(activities), before_(activities.size(), kNone) {
    int64_t largest = kNone;
    for (size_t row = 0; row < activities.size(); ++row) largest = std::max(largest, activities.streams[row]);
    rows_.resize(place(largest + 1));
    launched_by_.resize(rows_.size());
    last_to_end_.resize(rows_.size());
    std::vector<RunningRows> running(rows_.size());
    for (size_t row = 0; row < activities.size(); ++row) {
      const int64_t stream = activities.streams[row];
      if (stream < 0) throw std::out_of_range("no stream has this number");
      std::vector<int64_t>& rows = rows_[place(stream)];
      std::vector<int64_t>& launched_by = launched_by_[place(stream)];
      std::vector<int64_t>& last_to_end = last_to_end_[place(stream)];
      const int64_t start = activities.times.starts[row];
      const int64_t end = activities.times.ends[row];
      running[place(stream)].go_to(start);
      if (!rows.empty()) before_[row] = end_of(rows.back()) > start ? rows.back() : running[place(stream)].last_ended();
      running[place(stream)].add(end, static_cast<int64_t>(row));
      const bool is_last = last_to_end.empty() || end >= end_of(last_to_end.back());
      last_to_end.push_back(is_last ? static_cast<int64_t>(row) : last_to_end.back());
      rows.push_back(static_cast<int64_t>(row));
      const int64_t so_far = launched_by.empty() ? INT64_MIN : launched_by.back();
      const bool is_known = activities.threads[row] != kNone;
      launched_by.push_back(is_known ? std::max(so_far, activities.call_times[row]) : so_far);
    }
  }

  // The activity before this one on its stream, if that still ran when this one began; else the one that had ended
  // last.
  int64_t before(int64_t row) const { return before_[place(row)]; }

  // The activity that ended last of those that were launched into a stream before `before_ns`, began before `begun_ns`
  // and have a row less than `below`.
  int64_t last_launched(int64_t stream, int64_t before_ns, int64_t begun_ns, int64_t below) const {
    if (!has(stream)) return kNone;
    const std::vector<int64_t>& launched_by = launched_by_[place(stream)];
    const std::vector<int64_t>& rows = rows_[place(stream)];
    const auto launched = std::lower_bound(launched_by.begin(), launched_by.end(), before_ns) - launched_by.begin();
    const auto begun = std::lower_bound(rows.begin(), rows.begin() + launched, below, [&](int64_t row, int64_t bound) {
      return row < bound && activities_.times.starts[place(row)] < begun_ns;
    });
    return begun == rows.begin() ? kNone : last_to_end_[place(stream)][place(begun - rows.begin()) - 1];
  }

  // The first activity that was launched into a stream after a time.
  int64_t first_launched(int64_t stream, int64_t after_ns) const {
    if (!has(stream)) return kNone;
    const std::vector<int64_t>& launched_by = launched_by_[place(stream)];
    const auto found = std::upper_bound(launched_by.begin(), launched_by.end(), after_ns) - launched_by.begin();
    return found == static_cast<std::ptrdiff_t>(launched_by.size()) ? kNone : rows_[place(stream)][place(found)];
  }

 private:
  bool has(int64_t stream) const { return stream >= 0 && place(stream) < rows_.size(); }
  int64_t end_of(int64_t row) const { return activities_.times.ends[place(row)]; }

  const PathActivities& activities_;
  std::vector<int64_t> before_;
  std::vector<std::vector<int64_t>> rows_;
  // For each row the one that ended last up to it.
  std::vector<std::vector<int64_t>> last_to_end_;
  // The latest call up to each row. A stream runs its work in the order of the launches, so an activity whose call is
  // unknown was launched no earlier.
  std::vector<std::vector<int64_t>> launched_by_;
};

// For each activity the activities for which a wait of its stream waited.
class EventEdges {
 public:
  EventEdges(const StreamWaits& waits, const StreamRows& streams) {
    for (size_t wait = 0; wait < waits.streams.size; ++wait) {
      const int64_t target = streams.first_launched(waits.streams[wait], waits.called_at[wait]);
      if (target == kNone) continue;
      if (waits.sources[wait] == kNone) {
        with_unknown_.push_back(target);
        continue;
      }
      const int64_t source = streams.last_launched(waits.sources[wait], waits.recorded_at[wait], INT64_MAX, target);
      if (source != kNone) edges_.emplace_back(target, source);
    }
    std::sort(edges_.begin(), edges_.end());
    std::sort(with_unknown_.begin(), with_unknown_.end());
  }

  // Whether a wait of its stream was for an event whose record is unknown.
  bool has_unknown_source(int64_t target) const {
    return std::binary_search(with_unknown_.begin(), with_unknown_.end(), target);
  }

  template <typename Visit>
  void for_each_source(int64_t target, Visit visit) const {
    auto edge = std::lower_bound(edges_.begin(), edges_.end(), std::pair{target, INT64_MIN});
    for (; edge != edges_.end() && edge->first == target; ++edge) visit(edge->second);
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> edges_;  // target, source
  std::vector<int64_t> with_unknown_;
};

// The nodes of each launch of a graph in order of their ends.
class GraphNodes {
 public:
  explicit GraphNodes(const PathActivities& activities) : activities_(activities) {
    for (size_t row = 0; row < activities.size(); ++row) {
      if (activities.graphs[row] != kNone) nodes_.push_back(static_cast<int64_t>(row));
    }
    std::sort(nodes_.begin(), nodes_.end(), [this](int64_t a, int64_t b) { return key(a) < key(b); });
  }

  // The node of the same launch that ended last before this one began.
  int64_t before(int64_t row) const {
    const int64_t graph = activities_.graphs[place(row)];
    if (graph == kNone) return kNone;
    // A node without length may end at the start of this node without being earlier: only rows before this one count.
    const Key latest{graph, activities_.times.starts[place(row)], row - 1};
    const auto found = std::upper_bound(nodes_.begin(), nodes_.end(), latest,
                                        [this](const Key& bound, int64_t node) { return bound < key(node); });
    return found == nodes_.begin() || activities_.graphs[place(*(found - 1))] != graph ? kNone : *(found - 1);
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  Key key(int64_t row) const { return {activities_.graphs[place(row)], activities_.times.ends[place(row)], row}; }

  const PathActivities& activities_;
  std::vector<int64_t> nodes_;
};

// Every step goes to an activity of an earlier row, so that the walk ends for any times.
class Walk {
 public:
  Walk(const PathActivities& activities, const StreamWaits& stream_waits, const HostWaits& host_waits, int64_t first,
       int64_t kernel_gap_ns)
      : activities_(activities),
        host_waits_(host_waits),
        first_(first),
        kernel_gap_ns_(kernel_gap_ns),
        streams_(activities),
        events_(stream_waits, streams_),
        graphs_(activities) {}

  Path path() {
    int64_t row = last_to_end();
    if (row == kNone) return {};
    now_ = activities_.times.ends[place(row)];
    while (row != kNone) {
      add(SegmentKind::kActivity, activities_.times.starts[place(row)], row);
      row = cause_of(row);
    }
    for (auto* const column : {&path_.starts, &path_.ends, &path_.rows}) std::reverse(column->begin(), column->end());
    std::reverse(path_.kinds.begin(), path_.kinds.end());
    return std::move(path_);
  }

 private:
  struct Cause {
    int64_t met = INT64_MIN;
    int64_t row = kNone;     // kNone: the call
    bool is_before = false;  // whether it is the activity before on the stream
  };

  int64_t last_to_end() const {
    int64_t last = kNone;
    for (size_t row = 0; row < activities_.size(); ++row) {
      if (last == kNone || activities_.times.ends[row] >= activities_.times.ends[place(last)])
        last = static_cast<int64_t>(row);
    }
    return last;
  }

  // Goes back to `start`. A segment without length is left out.
  void add(SegmentKind kind, int64_t start, int64_t row) {
    if (start >= now_) return;
    path_.kinds.push_back(static_cast<uint8_t>(kind));
    path_.starts.push_back(start);
    path_.ends.push_back(now_);
    path_.rows.push_back(row);
    now_ = start;
  }

  // The activity with which the path continues before this one; kNone: the path begins here.
  int64_t cause_of(int64_t row) {
    const Cause cause = last_met(row);
    if (cause.met == INT64_MIN) {
      add(SegmentKind::kUnknown, first_, row);
      return kNone;
    }
    if (cause.row == kNone) {
      add(events_.has_unknown_source(row) ? SegmentKind::kEventWait : SegmentKind::kLaunchLatency, cause.met, row);
      return back_along_host(row);
    }
    const int64_t end = std::min(activities_.times.ends[place(cause.row)], now_);
    const bool is_short = cause.is_before && length_of(end, now_) <= kernel_gap_ns_;
    const bool is_unclear = cause.is_before && events_.has_unknown_source(row);
    add(is_short ? SegmentKind::kKernelGap : is_unclear ? SegmentKind::kEventWait : SegmentKind::kDependency, end, row);
    return cause.row;
  }

  Cause last_met(int64_t row) const {
    Cause cause;
    const auto offer = [&cause](int64_t met, int64_t source, bool is_before) {
      if (met > cause.met) cause = {met, source, is_before};
    };
    const auto end_of = [this](int64_t source) { return std::min(activities_.times.ends[place(source)], now_); };
    if (const int64_t before = streams_.before(row); before != kNone) {
      const bool still_ran = activities_.times.ends[place(before)] > now_;
      offer(still_ran ? activities_.times.starts[place(before)] : end_of(before), before, true);
    }
    events_.for_each_source(row, [&](int64_t source) { offer(end_of(source), source, false); });
    if (const int64_t node = graphs_.before(row); node != kNone) offer(end_of(node), node, false);
    if (activities_.threads[place(row)] != kNone) {
      offer(std::clamp(activities_.call_times[place(row)], std::min(first_, now_), now_), kNone, false);
    }
    return cause;
  }

  // Goes back from the call of an activity along its thread to the last wait, and returns the activity that it awaited.
  int64_t back_along_host(int64_t row) {
    const int64_t thread = activities_.threads[place(row)];
    size_t wait = waits_until(thread, now_);
    for (; wait > 0 && host_waits_.threads[wait - 1] == thread; --wait) {
      const int64_t source = waited_for(wait - 1, row);
      if (source == kNone) continue;
      const int64_t returned = host_waits_.times.ends[wait - 1];
      add(SegmentKind::kHost, returned, row);
      add(SegmentKind::kSynchronize, std::min(activities_.times.ends[place(source)], returned),
          static_cast<int64_t>(wait - 1));
      return source;
    }
    add(SegmentKind::kHost, first_, row);
    return kNone;
  }

  // The number of waits, in order of threads and ends, up to the last wait of this thread that ended by a time.
  size_t waits_until(int64_t thread, int64_t time) const {
    size_t low = 0;
    for (size_t high = host_waits_.times.size(); low < high;) {
      const size_t middle = low + (high - low) / 2;
      const bool is_earlier =
          std::pair{host_waits_.threads[middle], host_waits_.times.ends[middle]} <= std::pair{thread, time};
      (is_earlier ? low : high) = is_earlier ? middle + 1 : middle;
    }
    return low;
  }

  // The activity with a row less than `below` whose end a wait of the host awaited; kNone: the host did not have to
  // wait.
  int64_t waited_for(size_t wait, int64_t below) const {
    const int64_t begin = host_waits_.times.starts[wait];
    const int64_t end = host_waits_.times.ends[wait];
    int64_t found = kNone;
    const auto offer = [&](int64_t row) {
      if (row == kNone || row >= below || activities_.times.starts[place(row)] >= end) return;
      const int64_t ended = std::min(activities_.times.ends[place(row)], end);
      if (ended <= begin) return;
      if (found == kNone ||
          std::pair{ended, row} > std::pair{std::min(activities_.times.ends[place(found)], end), found}) {
        found = row;
      }
    };
    if (host_waits_.activities[wait] != kNone) {
      offer(host_waits_.activities[wait]);
      return found;
    }
    const size_t set = place(host_waits_.stream_sets[wait]);
    for (int64_t at = host_waits_.set_bounds[set]; at < host_waits_.set_bounds[set + 1]; ++at) {
      const int64_t stream = host_waits_.set_streams[place(at)];
      offer(streams_.last_launched(stream, host_waits_.launched_until[wait], end, below));
    }
    return found;
  }

  const PathActivities& activities_;
  const HostWaits& host_waits_;
  const int64_t first_;
  const int64_t kernel_gap_ns_;
  const StreamRows streams_;
  const EventEdges events_;
  const GraphNodes graphs_;
  Path path_;
  int64_t now_ = 0;  // start of the path as far as it is known
};

}  // namespace

Path critical_path(const PathActivities& activities, const StreamWaits& stream_waits, const HostWaits& host_waits,
                   int64_t first, int64_t kernel_gap_ns) {
  for (size_t row = 1; row < activities.size(); ++row) {
    if (activities.times.starts[row] < activities.times.starts[row - 1]) {
      throw std::invalid_argument("activities are not in order of their starts");
    }
  }
  return Walk(activities, stream_waits, host_waits, first, kernel_gap_ns).path();
}

}  // namespace collector::analysis
