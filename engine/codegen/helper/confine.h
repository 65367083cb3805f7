// What the compile helper gives up before it reads its first byte.
#pragma once

#include "engine/base/status.h"

namespace eagle::codegen {

// Limits on memory, file size and cores, no new privileges, no descriptors beyond `last_descriptor`, and a
// system-call filter that leaves what compiling needs: memory, the socket that is open, memfds, the clock.
// Anything else (a file opened, a process started, a socket made) ends the process, and the engine reports
// which signal did. Call once, after LLVM has initialised its target.
Status confine(int last_descriptor);

// From now on the process may use so much processor time until the next call: call before each request. The
// engine stops a compile long before; this ends one whose engine has gone, by SIGXCPU. (PR_SET_PDEATHSIG
// would follow the thread that started us, which may end while its process goes on.)
void renew_processor_time();

}  // namespace eagle::codegen
