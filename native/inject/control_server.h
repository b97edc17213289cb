// Control of the recording from outside: a thread that sleeps on a unix socket until `collector attach` connects.
//
// A request is one message of fields that each end in a zero byte, up to the end of the sender's side; the answer is
// the same: "ok" or "error", and then names and values, or the cause and the remedy.
//
//   status                        state, journal, process
//   start TOTAL_NS TOTAL_BYTES    records into a new journal in the folder; 0: without a limit
//   stop                          ends the recording that `start` or `collector run` began
//   cut                           closes the segment that is being written, so that all finished work is in closed ones
//
// Only processes of the same user are answered. Only journals are written, in the folder of the process; the other
// process makes its output file from the journals.
#pragma once

#include <optional>
#include <string>

#include "capture/start_options.h"
#include "cupti/failure.h"

namespace collector::inject {

struct ControlOptions {
  capture::StartOptions start;  // of recordings; without the journal and the holder
  std::string folder;           // of the journals; empty: a new one among temporary files
  std::string socket_folder;    // empty: the socket has a name outside the file system
};

// Begins to listen in this process; does nothing if it does already.
std::optional<cupti::Failure> listen(const ControlOptions& options);

// The name of the socket, with a zero byte before it if it is outside the file system; empty: this process does not
// listen.
std::string listening_at();

// Ends the listening and a recording that `start` began, as the end of the process does.
void stop_listening();

}  // namespace collector::inject
