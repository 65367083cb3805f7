// The hosts of this machine: the engine in this process, and an eagled beside it.
#include <memory>

#include "tests/conformance/daemon_process.h"
#include "tests/conformance/host_registry.h"
#include "tests/conformance/hosts.h"

namespace eagle::conformance {

StatusOr<DaemonProcess*> suite_daemon() {
  // One for all cases of this process; it ends with it.
  static StatusOr<std::unique_ptr<DaemonProcess>> daemon = DaemonProcess::start();
  if (!daemon.ok()) return daemon.status();
  return daemon->get();
}

void register_hosts() {
  static const HostRegistration local({"local", [] { return eagle::local(); }, {}});
  static const HostRegistration daemon({"daemon",
                                        []() -> StatusOr<Session> {
                                          EAGLE_ASSIGN_OR_RETURN(const DaemonProcess* process,
                                                                 suite_daemon());
                                          return eagle::connect(process->endpoint());
                                        },
                                        {"remote"}});
}

}  // namespace eagle::conformance
