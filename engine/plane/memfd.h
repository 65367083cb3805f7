// Makes memfds. Apart from `memory.h` so that the way of older kernels can be tested on newer ones.
#pragma once

#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::plane {

// Whether to ask for a memfd that can never be made executable (MFD_NOEXEC_SEAL, Linux 6.3).
enum class NoExec { where_known, unasked };

// An empty memfd, closed on exec, sealable, of mode 0600. The label shows in /proc and is cut to what the
// kernel takes. SYSTEM.
StatusOr<UniqueFd> make_memfd(std::string_view label, NoExec no_exec = NoExec::where_known);

}  // namespace eagle::plane
