// The arguments of a slice that come from its node's name and label.
#pragma once

#include <string_view>
#include <vector>

#include "draw/events.h"
#include "stepstats/activity.h"

namespace collector::draw {

// Adds the arguments of a slice that depend only on name and label. They refer to the texts that the activity refers
// to.
void add_label_arguments(const stepstats::Activity& activity, std::vector<Argument>& arguments);

// An argument whose value is written as a number, as numbers that commas separate, or as any other text.
Argument written_argument(std::string_view key, std::string_view value);

}  // namespace collector::draw
