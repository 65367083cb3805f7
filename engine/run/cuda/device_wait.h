// Waiting for work that may have to be told to stop.
#pragma once

#include <functional>

#include "engine/base/status.h"
#include "engine/run/control.h"
#include "engine/run/cuda/device.h"

namespace eagle::run::cuda {

// Waits until all work of the stream is done. Meanwhile, once the control (may be null) says stop, `tell` is
// called now and then: it stores where loops on the device look. Whether it was; errors as of
// DeviceStream::wait.
StatusOr<bool> wait_or_stop(const DeviceStream& stream, const Control* control,
                            const std::function<Status()>& tell);

}  // namespace eagle::run::cuda
