// Names of CUPTI's enumerations by number, the same as collector/recording/cupti_enums.py has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::convert {

inline constexpr std::array<std::string_view, 11> kCopyKinds = {"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                                "AtoD",      "DtoA", "DtoD", "HtoH", "PtoP"};
inline constexpr std::array<std::string_view, 8> kMemoryKinds = {
    "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "DeviceStatic", "ManagedStatic"};
inline constexpr std::array<std::string_view, 3> kLaunchTypes = {"regular", "cooperative", "cooperative multi-device"};

template <size_t kSize>
std::string_view NameOf(const std::array<std::string_view, kSize>& names, int64_t value) {
  return value >= 0 && static_cast<uint64_t>(value) < kSize ? names[static_cast<size_t>(value)]
                                                            : std::string_view("<unknown>");
}

}  // namespace collector::convert
