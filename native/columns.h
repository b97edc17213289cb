// Rows -> numpy columns, as the rows' layout says.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/layout.h"
#include "store/store.h"

namespace collector {

// A table under construction. `Context` is what the rows of one chain share (a stream's key).
template <typename Row, typename Context>
class TableBuilder {
 public:
  TableBuilder() {
    for (const store::Column& column : store::columns_of<Row>()) {
      makers_.push_back([column](pybind11::dict& out, size_t rows) -> Filler {
        const std::string type = (column.is_signed ? "i" : "u") + std::to_string(column.bytes);
        pybind11::array array(pybind11::dtype(type), std::vector<size_t>{rows});
        auto* const to = static_cast<char*>(array.mutable_data());
        out[std::string(column.name).c_str()] = std::move(array);
        return [to, column](const Context&, const Row* run, size_t count, size_t at) {
          const char* const from = reinterpret_cast<const char*>(run) + column.offset;
          char* const target = to + at * column.bytes;
          switch (column.bytes) {
            case 1:
              return gather<1>(from, count, target);
            case 2:
              return gather<2>(from, count, target);
            case 4:
              return gather<4>(from, count, target);
            default:
              return gather<8>(from, count, target);
          }
        };
      });
    }
  }

  // A column that the rows do not hold themselves.
  template <typename Get>
  TableBuilder& column(const char* name, Get get) {
    using Value = std::decay_t<decltype(get(std::declval<const Context&>(), std::declval<const Row&>()))>;
    makers_.push_back([name, get](pybind11::dict& out, size_t rows) -> Filler {
      pybind11::array_t<Value> array(static_cast<pybind11::ssize_t>(rows));
      Value* const to = array.mutable_data();
      out[name] = std::move(array);
      return [to, get](const Context& context, const Row* run, size_t count, size_t at) {
        for (size_t i = 0; i < count; ++i) to[at + i] = get(context, run[i]);
      };
    });
    return *this;
  }

  void add(const Context& context, const store::Chunks<Row>& rows) {
    if (!rows.empty()) parts_.emplace_back(context, &rows);
    rows_ += rows.size();
  }

  // {column: array}, in the order of the parts. Column by column within a run, so that both stay in cache.
  pybind11::dict build() const {
    pybind11::dict out;
    std::vector<Filler> fillers;
    fillers.reserve(makers_.size());
    for (const Maker& make : makers_) fillers.push_back(make(out, rows_));
    const pybind11::gil_scoped_release release;
    size_t at = 0;
    for (const auto& [context, rows] : parts_) {
      for (size_t first = 0; first < rows->size(); first += store::Chunks<Row>::kRows) {
        size_t count = 0;
        const Row* const run = rows->run(first, count);
        for (const Filler& fill : fillers) fill(context, run, count, at);
        at += count;
      }
    }
    return out;
  }

 private:
  using Filler = std::function<void(const Context&, const Row*, size_t count, size_t at)>;
  using Maker = std::function<Filler(pybind11::dict&, size_t rows)>;

  template <size_t kBytes>
  static void gather(const char* from, size_t count, char* to) {
    for (size_t i = 0; i < count; ++i) std::memcpy(to + i * kBytes, from + i * sizeof(Row), kBytes);
  }

  std::vector<Maker> makers_;
  std::vector<std::pair<Context, const store::Chunks<Row>*>> parts_;
  size_t rows_ = 0;
};

}  // namespace collector
