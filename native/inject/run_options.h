// The options of `collector run`, as its launcher (collector/launching/run_environment.py) puts them into the
// environment.
#pragma once

#include <cstdint>
#include <string>

#include "capture/capture_ranges.h"
#include "capture/start_options.h"

namespace collector::inject {

// The variables. A set-uid program sees none of them.
//
//   COLLECTOR_RUN_FOLDER        an existing folder, where each process writes its journal
//   COLLECTOR_RUN_KINDS         names of activity kinds, separated by commas
//   COLLECTOR_RUN_NVTX          names of the NVTX domains to record, separated by commas; unset: all
//   COLLECTOR_RUN_SITES         folders that may hold NVIDIA's wheels, separated by colons
//   COLLECTOR_RUN_VARIABLES     names of variables whose values the journal states, separated by commas
//   COLLECTOR_RUN_MAX_BYTES     keep the latest records of each process, in segments of this size together
//   COLLECTOR_RUN_BUDGET        the largest cost of the recording, in millionths of the time of one core
//   COLLECTOR_RUN_RANGE         record only these ranges: cudaProfilerApi, or nvtx:NAME, nvtx:NAME@DOMAIN, nvtx:NAME@*
//   COLLECTOR_RUN_MOST_RANGES   record only this number of ranges, the first ones; unset: all
//   COLLECTOR_RUN_DELAY_MS      begin this long after CUDA's initialisation
//   COLLECTOR_LISTEN            listen for `collector attach`: 1, or the folder of the socket
//   COLLECTOR_RUN_DURATION_MS   end this long after the begin
inline constexpr const char* kFolderVariable = "COLLECTOR_RUN_FOLDER";

struct RunOptions {
  capture::StartOptions start;  // all but the journal's name
  std::string folder;           // empty: no recording was requested
  int64_t delay_ns = 0;
  int64_t duration_ns = 0;  // 0: to the end of the process
  bool listens = false;
  std::string socket_folder;  // empty: the socket has a name outside the file system
};

// Reads the variables. Throws std::invalid_argument for an impossible value.
RunOptions run_options();

// The ranges that COLLECTOR_RUN_RANGE names. Throws std::invalid_argument for an impossible value.
capture::CaptureRangeOptions range_options();

// The name of a journal that does not exist in the folder yet: HOST-PID.journal, or HOST-PID.2.journal if the process
// has run another program before. A host may end in a number behind a dash: only a dot separates that of the journal.
std::string new_journal(const std::string& folder);

}  // namespace collector::inject
