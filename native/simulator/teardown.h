// The end of libcupti in a process: its destructors.
#pragma once

namespace collector::simulator {

// Ends the process by SIGSEGV if libcupti's destructors have run, as libcupti 13.0.85 does on an H100. The first call
// stands for the loading of libcupti: the simulator is one library with the driver, which may be loaded long before.
void crash_after_teardown();

}  // namespace collector::simulator
