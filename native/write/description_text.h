// A tensor's description in protobuf's text format.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "stepstats/step_stats.h"

namespace collector::write {

// The same text as protobuf prints, without double quotes, which TensorFlow removes. Types are shown by their name in
// `data_type_names`, or by their number if they have none.
std::string description_text(const stepstats::TensorDescription& description,
                             const std::unordered_map<int32_t, std::string>& data_type_names);

}  // namespace collector::write
