// Numbers of the fields of XLine, XEvent and XStat, the messages in a plane of an XSpace (protos/xplane.proto).
#pragma once

#include <cstdint>

namespace collector::write {

constexpr uint32_t kLineEvents = 4;

constexpr uint32_t kEventMetadata = 1;  // the number of its name
constexpr uint32_t kEventOffset = 2;
constexpr uint32_t kEventDuration = 3;
constexpr uint32_t kEventStats = 4;

constexpr uint32_t kStatMetadata = 1;  // the number of its name
constexpr uint32_t kStatDouble = 2;
constexpr uint32_t kStatUint64 = 3;
constexpr uint32_t kStatInt64 = 4;
constexpr uint32_t kStatText = 5;
constexpr uint32_t kStatBytes = 6;
constexpr uint32_t kStatReference = 7;

}  // namespace collector::write
