// The numbers of files of ours in a program.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace collector::capture {

// Moves a file that was just opened away from the numbers of standard input, output and error; returns its new number,
// or -1 and errno. A program may run without these files, and the kernel gives each new file the lowest free number:
// the program would print into our file. A negative number is returned as it is.
inline int beyond_standard_files(int file) {
  if (file < 0 || file > STDERR_FILENO) return file;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  static_cast<void>(::syscall(SYS_close, file));  // close() is a point of cancellation
  errno = error;
  return moved;
}

}  // namespace collector::capture
