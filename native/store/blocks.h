// Memory for rows in equal blocks, which go back to the system or wait in a small stock for the next session.
#pragma once

#include <cstddef>
#include <vector>

namespace collector::store {

// Blocks come from the system itself, not from malloc: what malloc has been given back it may keep for good. A few wait
// here, as new memory costs several times what decoding into it does. Not thread-safe.
class Blocks {
 public:
  static constexpr size_t kBlockBytes = size_t{256} << 10;
  static constexpr size_t kStockBytes = size_t{16} << 20;

  // Keeps at most `stock_bytes` of blocks that are not in use.
  explicit Blocks(size_t stock_bytes = kStockBytes) : stock_blocks_(stock_bytes / kBlockBytes) {}
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // A block, aligned for any row; what is in it is not defined. Throws std::bad_alloc.
  void* take();

  // Takes a block back.
  void give(void* block) noexcept;

 private:
  size_t stock_blocks_;
  std::vector<void*> stock_;
  size_t out_ = 0;
};

}  // namespace collector::store
