// Principal: who is at the other end of a connection. On a unix socket the kernel vouches for it; over TCP a
// client certificate or a bearer token does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

enum class Identity : std::uint8_t {
  user,         // a uid of this machine
  certificate,  // the name in a client certificate
  token,        // the subject of a bearer token
  anonymous,    // nobody in particular: each session is a principal of its own
};

struct Principal {
  uid_t uid = 0;  // of a user, else -1
  gid_t gid = 0;
  pid_t pid = 0;  // of the process that connected; 0: in a pid namespace that cannot be seen from here
  Identity identity = Identity::user;
  std::string subject = {};  // of the others

  // "uid:1000", "certificate:NAME", "token:NAME", "anonymous:NUMBER". Equal texts are the same principal.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool same_as(const Principal& other) const;
};
// One that is not a user of this machine.
Principal remote_principal(Identity identity, std::string subject);

// UNAUTHENTICATED for a peer whose uid has no meaning here: the overflow uid stands for everybody in other
// user namespaces at once.
StatusOr<Principal> principal_of(int socket);

// A descriptor that becomes readable when the process that connected ends. Not valid where it cannot be
// had (pid 0); the end of the connection must do then.
UniqueFd process_of(int socket, const Principal& principal);

// Whether a process behind such a descriptor still runs.
bool runs(int process);

// Whether two such descriptors are certainly of one process: false where the kernel does not tell
// (before 6.9).
bool same_process(int one, int other);

// A client's process, for whoever wants to know whether it still runs.
struct ClientProcess {
  pid_t pid = 0;  // 0: cannot be seen
  UniqueFd fd;
  [[nodiscard]] bool runs() const { return server::runs(fd.get()); }
};
using ProcessRef = std::shared_ptr<const ClientProcess>;

}  // namespace eagle::server
