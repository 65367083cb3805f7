// This process's number, asked for on every launch: without a system call.
#pragma once

#include <sys/types.h>

namespace eagle {

// As ::getpid(), in the child of a fork too. A process made by a bare clone system call, past the C library,
// has its parent's number here until it executes a program.
pid_t this_process();

}  // namespace eagle
