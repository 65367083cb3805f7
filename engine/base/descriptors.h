// Descriptors that travel with the bytes of a unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

#include "engine/base/unique_fd.h"

namespace eagle {

// Sends bytes, and with the first of them the descriptors, which stay the caller's. What sendmsg returns; a
// peer that is gone raises no signal.
ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> descriptors,
                              int flags);

// Takes the descriptors out of a message that recvmsg has filled.
void take_descriptors(msghdr& message, std::vector<UniqueFd>& descriptors);

}  // namespace eagle
