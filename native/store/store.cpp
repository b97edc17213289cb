#include "store/store.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace collector::store {
namespace {

template <typename Row>
void sort_rows(Chunks<Row>& rows) {
  bool sorted = true;
  for (size_t i = 1; i < rows.size() && sorted; ++i) sorted = !before(rows[i], rows[i - 1]);
  if (sorted) return;
  // The indices are sorted, and then each row moves once to its place: a sorted copy would double the memory of the
  // rows.
  std::vector<uint32_t> from(rows.size());
  std::iota(from.begin(), from.end(), 0);
  std::sort(from.begin(), from.end(), [&rows](uint32_t a, uint32_t b) {
    if (before(rows[a], rows[b])) return true;
    return !before(rows[b], rows[a]) && a < b;
  });
  for (uint32_t first = 0; first < from.size(); ++first) {
    if (from[first] == first) continue;
    const Row moved = rows[first];
    uint32_t to = first;
    while (from[to] != first) {
      rows[to] = rows[from[to]];
      to = std::exchange(from[to], to);
    }
    rows[to] = moved;
    from[to] = to;
  }
}

}  // namespace

Stream& Store::find_stream(StreamKey key) {
  last_ = &streams_.try_emplace(key, key, blocks_).first->second;
  return *last_;
}

void Store::sort() {
  const auto sort_list = [](auto& list) { sort_rows(list); };
  for (auto& entry : streams_) entry.second.rows.each(sort_list);
  rows.each(sort_list);
}

void Store::clear_rows() {
  streams_.clear();
  last_ = nullptr;
  rows.each([](auto& list) { list.clear(); });
}

void Store::clear() {
  clear_rows();
  strings.clear();
}

}  // namespace collector::store
