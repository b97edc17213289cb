// The tool that the driver loads into a program without the program's knowledge: the library that CUDA_INJECTION64_PATH
// names.
#pragma once

namespace collector::simulator {

// Loads the tool and calls its InitializeInjection, as libcuda does: once in a process, in the first cuInit. A process
// that was forked later has the tool of its parent.
void load_injected_tool();

// Whether this thread is in InitializeInjection.
bool is_loading_tool();

}  // namespace collector::simulator
