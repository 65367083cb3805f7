// Owners of memory that another process still has open: each is kept until that process has let go.
#pragma once

#include <memory>

#include "engine/base/unique_fd.h"

namespace eagle {

// Keeps `owner` until the other end of `descriptor` (of a pipe) is closed, by whoever has it or by the end of
// its process. Never waits; the owner goes on a thread of its own. Where the system has no thread for that,
// it is kept until the next one comes.
void keep_until_closed(UniqueFd descriptor, std::shared_ptr<const void> owner);

}  // namespace eagle
