// A vector as a numpy array, without a copy.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <utility>
#include <vector>

namespace collector::bindings {

// `To` is as large as `From`: numpy has no array of char.
template <typename To, typename From>
pybind11::array_t<To> moved_array(std::vector<From> values) {
  static_assert(sizeof(To) == sizeof(From));
  auto owned = std::make_unique<std::vector<From>>(std::move(values));
  const std::vector<From>& kept = *owned;
  const pybind11::capsule owner(owned.get(), [](void* held) { delete static_cast<std::vector<From>*>(held); });
  static_cast<void>(owned.release());
  return pybind11::array_t<To>(static_cast<pybind11::ssize_t>(kept.size()), reinterpret_cast<const To*>(kept.data()),
                               owner);
}

}  // namespace collector::bindings
