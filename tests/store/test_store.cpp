// What stays in a store whose rows are removed again and again.
#include <doctest/doctest.h>

#include "store/store.h"

namespace collector::store {

TEST_CASE("A store whose rows are removed forgets their streams, and keeps their names") {
  Store store;
  const uint32_t name = store.strings.intern("kernel");
  for (uint32_t stream = 0; stream < 1000; ++stream) store.append<KernelRow>({0, 1, stream}) = {};
  CHECK(store.streams().size() == 1000);
  store.clear_rows();
  CHECK(store.streams().empty());
  store.append<KernelRow>({0, 1, 999}) = {};  // the stream of the last row before
  CHECK(store.streams().size() == 1);
  CHECK(store.streams().begin()->second.rows.of<KernelRow>().size() == 1);
  CHECK(store.strings.texts()[name] == "kernel");
  store.clear();
  CHECK(store.streams().empty());
  CHECK(store.strings.texts().size() == 1);  // the empty one
}

TEST_CASE("Sorted rows with the same times stay in the order in which they came") {
  Store store;
  constexpr uint32_t kRows = 2000;
  for (uint32_t number = 0; number < kRows; ++number) {
    KernelRow row{};
    row.start_ns = number % 7;
    row.grid_x = static_cast<int32_t>(number);
    store.append<KernelRow>({0, 1, 7}) = row;
  }
  store.sort();
  const auto& rows = store.streams().begin()->second.rows.of<KernelRow>();
  REQUIRE(rows.size() == kRows);
  for (size_t row = 1; row < kRows; ++row) {
    const bool is_later = rows[row - 1].start_ns < rows[row].start_ns;
    CHECK((is_later || (rows[row - 1].start_ns == rows[row].start_ns && rows[row - 1].grid_x < rows[row].grid_x)));
  }
}

}  // namespace collector::store
