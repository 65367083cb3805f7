// LocalHost: the engine in this process. Kernels run on the thread that calls, with that thread's team;
// host nodes run in place; planes are ordinary memory, and kernels may run over the caller's own arrays.
#pragma once

#include <memory>

#include "client/host.h"

namespace eagle {

StatusOr<std::shared_ptr<Host>> open_local(const LocalOptions& options);

}  // namespace eagle
