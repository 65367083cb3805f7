// Principal: who is at the other end of a unix socket, as the kernel vouches for it.
#pragma once

#include <sys/types.h>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

struct Principal {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;  // of the process that connected; 0: in a pid namespace that cannot be seen from here
};

// UNAUTHENTICATED for a peer whose uid has no meaning here: the overflow uid stands for everybody in other
// user namespaces at once.
StatusOr<Principal> principal_of(int socket);

// A descriptor that becomes readable when the process that connected ends. Not valid where it cannot be
// had (pid 0); the end of the connection must do then.
UniqueFd process_of(int socket, const Principal& principal);

// Whether a process behind such a descriptor still runs.
bool runs(int process);

}  // namespace eagle::server
