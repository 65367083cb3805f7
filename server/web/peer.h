// Peer: which user of this machine is at the other end of a TCP connection over loopback.
#pragma once

#include <sys/types.h>

#include <optional>

namespace eagle::server {

// Of a connected socket. What the kernel lists of the other end's socket (/proc/self/net/tcp and tcp6:
// proc(5)), while it is open; nothing for a peer on another machine or in another network namespace, for one
// that has hung up, and for a user who has no number here.
std::optional<uid_t> loopback_peer(int socket);

}  // namespace eagle::server
