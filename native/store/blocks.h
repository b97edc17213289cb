// Memory for rows in blocks of equal size. A returned block goes back to the system, or into a small stock for the next
// session.
#pragma once

#include <cstddef>
#include <vector>

namespace collector::store {

// The blocks come from the system and not from malloc, which may keep freed memory for good. The stock exists because
// fresh memory costs several times as much as decoding into it. Not thread-safe.
class Blocks {
 public:
  static constexpr size_t kBlockBytes = size_t{256} << 10;
  static constexpr size_t kStockBytes = size_t{16} << 20;

  // Whether the system provides the pages of a new block when they are first used, or all at once, which costs less in
  // total but keeps the rest of a list's last block in memory.
  enum class Pages { kOnUse, kAtOnce };

  // Keeps at most `stock_bytes` of unused blocks.
  explicit Blocks(size_t stock_bytes = kStockBytes, Pages pages = Pages::kOnUse)
      : stock_blocks_(stock_bytes / kBlockBytes), pages_(pages) {}
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // A block with uninitialised contents, aligned for any row. Throws std::bad_alloc.
  void* take();

  // Returns a block.
  void give(void* block) noexcept;

 private:
  size_t stock_blocks_;
  Pages pages_;
  std::vector<void*> stock_;
  size_t out_ = 0;
};

}  // namespace collector::store
