// Copies rows into numpy columns, by the rows' layout.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bindings/gil.h"
#include "kinds/generated/kinds.h"
#include "store/store.h"

namespace collector::bindings {

// Pages that come from the system directly and are returned to it.
class Pages {
 public:
  // Throws std::bad_alloc.
  explicit Pages(size_t bytes)
      : bytes_(bytes), data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// An uninitialised array. A large array gets its own pages: after malloc has mapped and freed an array of some size, it
// keeps the memory of arrays of that size, so that a large step would occupy its memory permanently.
inline pybind11::array new_column(const pybind11::dtype& type, size_t rows) {
  constexpr size_t kLarge = size_t{128} << 10;
  const std::vector<size_t> shape{rows};
  const size_t bytes = rows * static_cast<size_t>(type.itemsize());
  if (bytes < kLarge) return {type, shape};
  auto pages = std::make_unique<Pages>(bytes);
  void* const data = pages->data();
  const pybind11::capsule owner(pages.get(), [](void* owned) { delete static_cast<Pages*>(owned); });
  static_cast<void>(pages.release());
  return {type, shape, data, owner};
}

// A table under construction. `Context` holds the values that all rows of one list share (a stream's key).
template <typename Row, typename Context>
class TableBuilder {
 public:
  TableBuilder() {
    for (const store::Column& column : store::Table<Row>::kColumns) {
      makers_.push_back([column](pybind11::dict& out, size_t rows) -> Filler {
        const std::string type = (column.is_signed ? "i" : "u") + std::to_string(column.bytes);
        pybind11::array array = new_column(pybind11::dtype(type), rows);
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

  // Adds a column that is not a field of the rows.
  template <typename Get>
  TableBuilder& column(const char* name, Get get) {
    using Value = std::decay_t<decltype(get(std::declval<const Context&>(), std::declval<const Row&>()))>;
    makers_.push_back([name, get](pybind11::dict& out, size_t rows) -> Filler {
      pybind11::array array = new_column(pybind11::dtype::of<Value>(), rows);
      auto* const to = static_cast<Value*>(array.mutable_data());
      out[name] = std::move(array);
      return [to, get](const Context& context, const Row* run, size_t count, size_t at) {
        for (size_t i = 0; i < count; ++i) to[at + i] = get(context, run[i]);
      };
    });
    return *this;
  }

  // Adds rows, which `build` will take.
  void add(const Context& context, store::Chunks<Row>& rows) {
    add(context, rows.size(), [&rows](const Take& take) { rows.take_all(take); });
  }
  void add(const Context& context, std::vector<Row>& rows) {
    add(context, rows.size(), [&rows](const Take& take) {
      take(rows.data(), rows.size());
      std::vector<Row>().swap(rows);
    });
  }

  // {column: array}, in the order of the parts. Within a run, one column is copied after the other, so that rows and
  // columns stay in cache. The memory of a run is released after its copy, so that rows and columns never exist as a
  // whole at the same time.
  pybind11::dict build() {
    pybind11::dict out;
    std::vector<Filler> fillers;
    fillers.reserve(makers_.size());
    for (const Maker& make : makers_) fillers.push_back(make(out, rows_));
    const GilRelease release;
    size_t at = 0;
    for (const Part& part : parts_) {
      part.take_all([&](const Row* run, size_t count) {
        for (const Filler& fill : fillers) fill(part.context, run, count, at);
        at += count;
      });
    }
    return out;
  }

 private:
  using Filler = std::function<void(const Context&, const Row*, size_t count, size_t at)>;
  using Maker = std::function<Filler(pybind11::dict&, size_t rows)>;
  using Take = std::function<void(const Row*, size_t count)>;
  struct Part {
    Context context;
    std::function<void(const Take&)> take_all;
  };

  template <typename TakeAll>
  void add(const Context& context, size_t rows, TakeAll take_all) {
    if (rows != 0) parts_.push_back({context, take_all});
    rows_ += rows;
  }

  template <size_t width>
  static void gather(const char* from, size_t count, char* to) {
    for (size_t i = 0; i < count; ++i) std::memcpy(to + i * width, from + i * sizeof(Row), width);
  }

  std::vector<Maker> makers_;
  std::vector<Part> parts_;
  size_t rows_ = 0;
};

}  // namespace collector::bindings
