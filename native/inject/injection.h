// The entry point of this library in programs that neither import nor link it.
//
// libcuda loads the library that CUDA_INJECTION64_PATH names in cuInit, and calls its InitializeInjection. Here it
// opens a session with the options of run_options.h, whose records go into a journal of the process. An exit handler
// ends the session. It runs before the handlers of CUDA, which are registered earlier; `_exit` and signals leave the
// records that have reached the journal. Nothing is printed but one line on standard error if the process cannot be
// traced.
#pragma once

// Called by libcuda, once in a process. Returns 1 also if nothing is traced, because the program is to run on.
// NOLINTNEXTLINE(readability-identifier-naming): libcuda looks for this name
extern "C" int InitializeInjection();

namespace collector::inject {

// Begins the recording of `collector run` before a session of a program that has not initialised CUDA yet, so that the
// session is a part of the recording as any later one is. Does nothing where the environment asks for no recording.
void begin_before_session();

}  // namespace collector::inject
