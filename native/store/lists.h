// One list of rows for each of several row types.
#pragma once

#include <tuple>

#include "kinds/tables.h"
#include "store/blocks.h"
#include "store/chunks.h"

namespace collector::store {

template <typename Types>
class Lists;

template <typename... Rows>
class Lists<RowTypes<Rows...>> {
 public:
  // `blocks` must outlive the lists.
  explicit Lists(Blocks& blocks) : lists_((static_cast<void>(sizeof(Rows)), blocks)...) {}

  template <typename Row>
  Chunks<Row>& of() {
    return std::get<Chunks<Row>>(lists_);
  }
  template <typename Row>
  const Chunks<Row>& of() const {
    return std::get<Chunks<Row>>(lists_);
  }

  // Calls visit(list) for each list in order.
  template <typename Visit>
  void each(const Visit& visit) {
    std::apply([&visit](auto&... list) { (visit(list), ...); }, lists_);
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    std::apply([&visit](const auto&... list) { (visit(list), ...); }, lists_);
  }

 private:
  std::tuple<Chunks<Rows>...> lists_;
};

}  // namespace collector::store
