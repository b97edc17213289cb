// The order of devices for people.
#pragma once

#include <string_view>

#include "stepstats/devices.h"

namespace collector::stepstats {

// Whether a device is shown before another device of the same owner; no two devices are equal.
bool comes_before(const DeviceName& a, std::string_view device_a, const DeviceName& b, std::string_view device_b);

}  // namespace collector::stepstats
