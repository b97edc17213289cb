// The arguments of a slice that come from the columns of its activity.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "draw/events.h"
#include "stepstats/kernel_names.h"
#include "stepstats/typed_activity.h"

namespace collector::draw {

// `recorded` are the texts of the recording. `texts` stores further texts that the arguments refer to. Both must
// outlive the arguments.
void add_typed_arguments(const stepstats::TypedActivity& activity, const stepstats::KernelNames& recorded,
                         std::vector<Argument>& arguments, std::list<std::string>& texts);

}  // namespace collector::draw
