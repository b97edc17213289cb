// The arguments of a slice that come from the columns of its activity.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "draw/events.h"
#include "stepstats/typed_activity.h"

namespace collector::draw {

// `texts` stores the texts that the arguments refer to, and must outlive them.
void add_typed_arguments(const stepstats::TypedActivity& activity, std::vector<Argument>& arguments,
                         std::list<std::string>& texts);

}  // namespace collector::draw
