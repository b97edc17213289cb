#include "analysis/critical_path.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace collector::analysis {
namespace {

size_t place(int64_t number) { return static_cast<size_t>(number); }

// The activities of each stream in their order, and the times of the launches into it.
class Queues {
 public:
  explicit Queues(const PathActivities& activities) : activities_(activities), before_(activities.size(), kNone) {
    int64_t largest = kNone;
    for (size_t row = 0; row < activities.size(); ++row) largest = std::max(largest, activities.queues[row]);
    rows_.resize(place(largest + 1));
    launched_by_.resize(rows_.size());
    for (size_t row = 0; row < activities.size(); ++row) {
      const int64_t queue = activities.queues[row];
      if (queue < 0) throw std::out_of_range("a stream that is not there");
      std::vector<int64_t>& rows = rows_[place(queue)];
      std::vector<int64_t>& launched_by = launched_by_[place(queue)];
      if (!rows.empty()) before_[row] = rows.back();
      rows.push_back(static_cast<int64_t>(row));
      const int64_t so_far = launched_by.empty() ? INT64_MIN : launched_by.back();
      const bool is_known = activities.threads[row] != kNone;
      launched_by.push_back(is_known ? std::max(so_far, activities.call_times[row]) : so_far);
    }
  }

  // The activity before this one on its stream.
  int64_t before(int64_t row) const { return before_[place(row)]; }

  // The last activity that was launched into a stream before one time, and began before another and above the row
  // `below`.
  int64_t last_launched(int64_t queue, int64_t before_ns, int64_t begun_ns, int64_t below) const {
    if (!has(queue)) return kNone;
    const std::vector<int64_t>& launched_by = launched_by_[place(queue)];
    const std::vector<int64_t>& rows = rows_[place(queue)];
    const auto launched = std::lower_bound(launched_by.begin(), launched_by.end(), before_ns) - launched_by.begin();
    const auto begun = std::lower_bound(rows.begin(), rows.begin() + launched, below, [&](int64_t row, int64_t bound) {
      return row < bound && activities_.times.starts[place(row)] < begun_ns;
    });
    return begun == rows.begin() ? kNone : *(begun - 1);
  }

  // The first activity that was launched into a stream after a time.
  int64_t first_launched(int64_t queue, int64_t after_ns) const {
    if (!has(queue)) return kNone;
    const std::vector<int64_t>& launched_by = launched_by_[place(queue)];
    const auto found = std::upper_bound(launched_by.begin(), launched_by.end(), after_ns) - launched_by.begin();
    return found == static_cast<std::ptrdiff_t>(launched_by.size()) ? kNone : rows_[place(queue)][place(found)];
  }

 private:
  bool has(int64_t queue) const { return queue >= 0 && place(queue) < rows_.size(); }

  const PathActivities& activities_;
  std::vector<int64_t> before_;
  std::vector<std::vector<int64_t>> rows_;
  // The latest call up to each of the rows. A stream runs what it is given in order, so this is when an activity whose
  // call is not known had been launched at the earliest.
  std::vector<std::vector<int64_t>> launched_by_;
};

// Of each activity the activities that a wait of its stream was for.
class EventEdges {
 public:
  EventEdges(const StreamWaits& waits, const Queues& queues) {
    for (size_t wait = 0; wait < waits.queues.size; ++wait) {
      const int64_t target = queues.first_launched(waits.queues[wait], waits.called_at[wait]);
      if (target == kNone) continue;
      const int64_t source = queues.last_launched(waits.sources[wait], waits.recorded_at[wait], INT64_MAX, target);
      if (source != kNone) edges_.emplace_back(target, source);
    }
    std::sort(edges_.begin(), edges_.end());
  }

  template <typename Visit>
  void for_each_source(int64_t target, Visit visit) const {
    auto edge = std::lower_bound(edges_.begin(), edges_.end(), std::pair{target, INT64_MIN});
    for (; edge != edges_.end() && edge->first == target; ++edge) visit(edge->second);
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> edges_;  // target, source
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
    // A node without length may end where this one begins, and be no earlier: of these only the rows before count.
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

// Every hop between activities goes to an earlier row, so that the walk ends whatever the times are.
class Walk {
 public:
  Walk(const PathActivities& activities, const StreamWaits& stream_waits, const HostWaits& host_waits, int64_t first,
       int64_t kernel_gap_ns)
      : activities_(activities),
        host_waits_(host_waits),
        first_(first),
        kernel_gap_ns_(kernel_gap_ns),
        queues_(activities),
        events_(stream_waits, queues_),
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
    bool is_before = false;  // on the stream
  };

  int64_t last_to_end() const {
    int64_t last = kNone;
    for (size_t row = 0; row < activities_.size(); ++row) {
      if (last == kNone || activities_.times.ends[row] >= activities_.times.ends[place(last)])
        last = static_cast<int64_t>(row);
    }
    return last;
  }

  // Goes back to `start`, which may not lie later than now.
  void add(SegmentKind kind, int64_t start, int64_t row) {
    if (start >= now_) return;
    path_.kinds.push_back(static_cast<uint8_t>(kind));
    path_.starts.push_back(start);
    path_.ends.push_back(now_);
    path_.rows.push_back(row);
    now_ = start;
  }

  // The activity with which the path goes on before this one; kNone: it is at its beginning.
  int64_t cause_of(int64_t row) {
    const Cause cause = last_met(row);
    if (cause.met == INT64_MIN) {
      add(SegmentKind::kUnknown, first_, row);
      return kNone;
    }
    if (cause.row == kNone) {
      add(SegmentKind::kLaunchLatency, cause.met, row);
      return back_along_host(row);
    }
    const int64_t end = std::min(activities_.times.ends[place(cause.row)], now_);
    const bool is_short = cause.is_before && length_of(end, now_) <= kernel_gap_ns_;
    add(is_short ? SegmentKind::kKernelGap : SegmentKind::kDependency, end, row);
    return cause.row;
  }

  Cause last_met(int64_t row) const {
    Cause cause;
    const auto offer = [&cause](int64_t met, int64_t source, bool is_before) {
      if (met > cause.met) cause = {met, source, is_before};
    };
    const auto end_of = [this](int64_t source) { return std::min(activities_.times.ends[place(source)], now_); };
    if (const int64_t before = queues_.before(row); before != kNone) {
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

  // From the call of an activity, where the path is, to the end of the wait of its thread.
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

  // The number of waits in order of thread and end up to those of this thread that ended until a time.
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

  // The activity, earlier than `below`, that a wait of the host ended with; kNone where it did not have to wait.
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
    const size_t set = place(host_waits_.queue_sets[wait]);
    for (int64_t at = host_waits_.set_bounds[set]; at < host_waits_.set_bounds[set + 1]; ++at) {
      const int64_t queue = host_waits_.set_queues[place(at)];
      offer(queues_.last_launched(queue, host_waits_.launched_until[wait], end, below));
    }
    return found;
  }

  const PathActivities& activities_;
  const HostWaits& host_waits_;
  const int64_t first_;
  const int64_t kernel_gap_ns_;
  const Queues queues_;
  const EventEdges events_;
  const GraphNodes graphs_;
  Path path_;
  int64_t now_ = 0;  // the path is known from here on
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
