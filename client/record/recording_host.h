// A host whose requests are written down as they go through: any host, in process or remote.
#pragma once

#include <memory>

#include "client/host.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"

namespace eagle::record {

// `host` itself where neither the options nor the environment want a recording; else one in front of it. The
// first session that EAGLE_RECORD names a file for has that file, the others FILE.2, FILE.3, ..., whatever
// process they are of; none that is there is replaced. BAD_VALUE for a file that cannot be made.
StatusOr<std::shared_ptr<Host>> recorded(std::shared_ptr<Host> host, RecordingOptions options);

}  // namespace eagle::record
