// A list of rows that grows cheaply and releases its memory piece by piece.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/blocks.h"

namespace collector::store {

// The first few rows are in a small allocation, because there may be thousands of lists with a handful of rows each.
// When it is full, its rows move into a block. From then on the list grows by one block at a time and rows no longer
// move.
template <typename Row>
class Chunks {
  static_assert(std::is_trivially_copyable_v<Row> && alignof(Row) <= alignof(std::max_align_t));

 public:
  using RowType = Row;

  // Rows per block.
  static constexpr size_t kRows = Blocks::kBlockBytes / sizeof(Row);

  // `blocks` must outlive the list.
  explicit Chunks(Blocks& blocks) : blocks_(blocks) {}
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  Row& append() {
    if (next_ == end_) grow();
    return *next_++;
  }

  // Appends the row that `fill` makes of uninitialised memory, and none if it throws.
  template <typename Fill>
  void add(const Fill& fill) {
    if (next_ == end_) grow();
    fill(*next_);
    ++next_;
  }

  size_t size() const { return chunks_.empty() ? 0 : (chunks_.size() - 1) * kRows + rows_in_last(); }
  bool empty() const { return size() == 0; }
  Row& operator[](size_t i) { return chunks_[i / kRows][i % kRows]; }
  const Row& operator[](size_t i) const { return chunks_[i / kRows][i % kRows]; }

  // The contiguous rows from `first` on; `count` becomes their number.
  const Row* run(size_t first, size_t& count) const {
    const size_t chunk = first / kRows;
    const size_t skipped = first % kRows;
    count = (chunk + 1 == chunks_.size() ? rows_in_last() : kRows) - skipped;
    return chunks_[chunk].get() + skipped;
  }

  // Removes the rows for which `is_unwanted` is true.
  template <typename IsUnwanted>
  void remove_if(IsUnwanted is_unwanted) {
    const size_t rows = size();
    size_t kept = 0;
    for (size_t i = 0; i < rows; ++i) {
      if (is_unwanted((*this)[i])) continue;
      if (kept != i) (*this)[kept] = (*this)[i];
      ++kept;
    }
    if (kept == rows) return;
    if (kept == 0) return clear();
    const size_t chunks = (kept - 1) / kRows + 1;
    if (chunks < chunks_.size()) {
      chunks_.resize(chunks);
      end_ = chunks_.back().get() + kRows;
    }
    next_ = chunks_.back().get() + (kept - 1) % kRows + 1;
  }

  // Calls take(run, count) for all rows in order, and releases the memory of each run after its call.
  template <typename Take>
  void take_all(const Take& take) {
    for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      const size_t count = chunk + 1 == chunks_.size() ? rows_in_last() : kRows;
      take(static_cast<const Row*>(chunks_[chunk].get()), count);
      chunks_[chunk].reset();
    }
    clear();
  }

  // Removes all rows and releases their memory.
  void clear() {
    std::vector<Chunk>().swap(chunks_);
    next_ = end_ = nullptr;
  }

 private:
  static constexpr size_t kFirstRows = 64;

  struct GiveBack {
    Blocks* blocks;  // null: the chunk is not a block
    void operator()(Row* rows) const {
      if (blocks == nullptr) {
        delete[] rows;
      } else {
        blocks->give(rows);
      }
    }
  };
  using Chunk = std::unique_ptr<Row[], GiveBack>;

  size_t rows_in_last() const { return static_cast<size_t>(next_ - chunks_.back().get()); }

  void grow() {
    const size_t rows = size();
    const bool is_first = rows == 0;
    Chunk chunk = is_first ? Chunk(new Row[kFirstRows](), GiveBack{nullptr})
                           : Chunk(static_cast<Row*>(blocks_.take()), GiveBack{&blocks_});
    const size_t moved = rows % kRows;  // 0 if the last chunk is a block
    if (moved == 0) {
      chunks_.push_back(std::move(chunk));
    } else {
      std::memcpy(chunk.get(), chunks_.back().get(), moved * sizeof(Row));
      chunks_.back() = std::move(chunk);
    }
    next_ = chunks_.back().get() + moved;
    end_ = chunks_.back().get() + (is_first ? kFirstRows : kRows);
  }

  Blocks& blocks_;
  std::vector<Chunk> chunks_;  // all are blocks, except the only chunk of a short list
  Row* next_ = nullptr;        // the place of the next row, in the last chunk
  Row* end_ = nullptr;         // of the last chunk
};

}  // namespace collector::store
