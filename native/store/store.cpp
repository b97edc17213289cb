#include "store/store.h"

#include <algorithm>

namespace collector::store {
namespace {

template <typename Row>
auto time_key(const Row& row) {
  return std::tie(row.start_ns, row.end_ns, row.correlation_id, row.graph_node_id);
}

template <typename Row>
void sort_chunks(Chunks<Row>& rows) {
  const auto before = [](const Row& a, const Row& b) { return time_key(a) < time_key(b); };
  bool sorted = true;
  for (size_t i = 1; i < rows.size() && sorted; ++i) sorted = !before(rows[i], rows[i - 1]);
  if (sorted) return;
  std::vector<Row> copy;
  copy.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) copy.push_back(rows[i]);
  std::stable_sort(copy.begin(), copy.end(), before);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = copy[i];
}

}  // namespace

Stream& Store::find_stream(StreamKey key) {
  Stream& stream = streams_[key];
  stream.key = key;
  last_ = &stream;
  return stream;
}

void Store::sort() {
  for (auto& entry : streams_) {
    sort_chunks(entry.second.kernels);
    sort_chunks(entry.second.memcpys);
    sort_chunks(entry.second.memsets);
  }
}

void Store::clear() {
  for (auto& entry : streams_) {
    entry.second.kernels.clear();
    entry.second.memcpys.clear();
    entry.second.memsets.clear();
  }
  api_calls.clear();
  external_correlations.clear();
  synchronizations.clear();
  overheads.clear();
  memory_operations.clear();
  strings.clear();
}

}  // namespace collector::store
