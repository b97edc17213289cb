#include "store/blocks.h"

#include <sys/mman.h>

#include <new>

namespace collector::store {

Blocks::~Blocks() {
  for (void* const block : stock_) ::munmap(block, kBlockBytes);
}

void* Blocks::take() {
  // Room for every block in use, so that `give` never allocates.
  if (stock_.capacity() <= stock_.size() + out_) stock_.reserve(2 * (stock_.size() + out_ + 1));
  void* block = nullptr;
  if (stock_.empty()) {
    const int populate = pages_ == Pages::kAtOnce ? MAP_POPULATE : 0;
    block = ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
  } else {
    block = stock_.back();
    stock_.pop_back();
  }
  ++out_;
  return block;
}

// `take` has made room for the block in the stock, so push_back does not allocate.
void Blocks::give(void* block) noexcept {  // NOLINT(bugprone-exception-escape)
  --out_;
  // If the system cannot split a mapping for lack of memory, the block is kept too.
  if (stock_.size() < stock_blocks_ || ::munmap(block, kBlockBytes) != 0) stock_.push_back(block);
}

}  // namespace collector::store
