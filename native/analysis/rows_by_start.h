// Rows in the order of their starts. Runs of rows that are in order already are merged instead of sorted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace collector::analysis {

// A view of a column; its values are owned elsewhere.
template <typename Value>
struct Column {
  const Value* values = nullptr;
  size_t size = 0;

  const Value& operator[](size_t row) const { return values[row]; }
};
using Times = Column<int64_t>;

// Consecutive rows of one table whose starts ascend.
struct Run {
  uint32_t table;
  size_t begin;
  size_t end;
};

// Iterates over the rows of runs in the order of their starts; of equal starts the row of the earlier run comes first.
//
// A recording has one run for each stream, so few runs are merged. If runs are short, as in rows without an order, the
// rows are sorted instead.
class RowsByStart {
 public:
  struct Row {
    uint32_t table;
    size_t row;
    int64_t start;
  };

  // `starts` has a column for each table. Both arguments must outlive this object.
  RowsByStart(const std::vector<Times>& starts, const std::vector<Run>& runs);

  // Assigns the next row; false: there is none.
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

// The runs of tables by device, in order of the devices' ordinals; a run ends where the device changes. Each table has
// a column of starts and a column of devices.
std::map<uint32_t, std::vector<Run>> runs_by_device(const std::vector<Times>& starts,
                                                    const std::vector<Column<uint32_t>>& devices);

// The row numbers, in the concatenation of all tables, in order of the rows' devices and of their starts on each
// device.
std::vector<int64_t> order_by_device_and_start(const std::vector<Times>& starts,
                                               const std::vector<Column<uint32_t>>& devices);

}  // namespace collector::analysis
