// Rows in the order of their starts; rows that are in order already are not sorted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace collector::analysis {

// A column of rows, which somebody else keeps.
template <typename Value>
struct Column {
  const Value* values = nullptr;
  size_t size = 0;

  const Value& operator[](size_t row) const { return values[row]; }
};
using Times = Column<int64_t>;

// A stretch of rows of one table whose starts ascend.
struct Run {
  uint32_t table;
  size_t begin;
  size_t end;
};

// Hands out the rows of runs in the order of their starts; of equal starts that of the earlier run first.
//
// A recording has one run for each stream, so that this is a merge of a few. Where runs are short, as in rows that are
// in no order, the rows are sorted instead.
class RowsByStart {
 public:
  struct Row {
    uint32_t table;
    size_t row;
    int64_t start;
  };

  // `starts` are those of each table. Both must live as long as this.
  RowsByStart(const std::vector<Times>& starts, const std::vector<Run>& runs);

  // Whether there was another row.
  bool next(Row& row);

 private:
  struct Head {
    int64_t start;
    size_t run;
    size_t row;

    bool operator<(const Head& other) const { return start != other.start ? start < other.start : run < other.run; }
  };

  void sort_rows();
  void sift_down(size_t place);

  const std::vector<Times>& starts_;
  const std::vector<Run>& runs_;
  std::vector<Head> heads_;  // a heap, least first
  std::vector<Row> sorted_;
  size_t next_sorted_ = 0;
};

// The runs of one table.
std::vector<Run> ascending_runs(const Times& starts);

// The runs of tables by device, in order of the devices' numbers; a run ends where the device changes. For each table
// there is a column of starts and one of devices.
std::map<uint32_t, std::vector<Run>> runs_by_device(const std::vector<Times>& starts,
                                                    const std::vector<Column<uint32_t>>& devices);

// The places of all rows, counted through all tables, in order of their devices, and of their starts on each.
std::vector<int64_t> order_by_device_and_start(const std::vector<Times>& starts,
                                               const std::vector<Column<uint32_t>>& devices);

}  // namespace collector::analysis
