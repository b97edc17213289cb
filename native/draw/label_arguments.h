// What a viewer shows beside a slice, as far as the node's name and label say it.
#pragma once

#include <vector>

#include "draw/events.h"
#include "stepstats/activity.h"

namespace collector::convert {

// Adds the arguments of a slice that all nodes with its name and label have. They view what the activity views.
void add_label_arguments(const Activity& activity, std::vector<Argument>& arguments);

}  // namespace collector::convert
