// A libcupti that may crash this process is tried in another process first.
#pragma once

#include <string>

namespace collector::cupti {

// Calls a libcupti as a session does, in a child process: its version, a step over records, a subscription, kernels on
// and off, a flush. Returns "" if it survived, else what happened, as the end of a sentence: "was killed by signal 11".
// The answer for a pair of files is kept for the life of this process.
//
// The child is a program of its own beside this library, because neither CUDA nor CUPTI survives a fork. It inherits
// no tool that the driver would load, and leaves no core file.
std::string try_in_child(const std::string& libcuda, const std::string& libcupti);

}  // namespace collector::cupti
