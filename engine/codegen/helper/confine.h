// What the compile helper gives up before it reads its first byte.
#pragma once

#include "engine/base/status.h"

namespace eagle::codegen {

// Limits on memory, file size and cores, no new privileges, no descriptors beyond `last_descriptor`, and a
// system-call filter that leaves what compiling needs: memory, the socket that is open, memfds, the clock.
// Anything else (a file opened, a process started, a socket made) ends the process, and the engine reports
// which signal did. Call once, after LLVM has initialised its target.
Status confine(int last_descriptor);

}  // namespace eagle::codegen
