// Waits for the work of a program on its GPUs.
#pragma once

#include "cupti/library.h"

namespace collector::cupti {

// Waits for the current context of this thread and for the primary contexts that the program has created. Whether all
// their work is done: no wait has failed.
bool synchronize_contexts(const DriverFunctions& driver);

}  // namespace collector::cupti
