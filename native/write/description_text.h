// A tensor's description in protobuf's text format.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "stepstats/step_stats.h"

namespace collector::convert {

// As protobuf prints it, but without the double quotes, which TensorFlow takes away. Types are shown by their name in
// `data_type_names`, those that are not there by their number.
std::string description_text(const TensorDescription& description,
                             const std::unordered_map<int32_t, std::string>& data_type_names);

}  // namespace collector::convert
