// The hosts that the suite runs on. A host registers a name, a way to open a session and tags; every case
// then runs once on each.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "eagle/client/session.h"
#include "tests/conformance/daemon_process.h"

namespace eagle::conformance {

struct HostUnderTest {
  std::string name;  // a word: it becomes part of the names of tests
  // A session of its own. UNAVAILABLE skips the case and says why; any other error fails it.
  std::function<StatusOr<Session>()> open;
  // The same with a team of so many threads.
  std::function<StatusOr<Session>(int threads)> open_with;
  // The same in an engine that is started for it, with the environment as it is now. `daemon` is what it runs
  // in, or stays empty; it has to outlive the session.
  std::function<StatusOr<Session>(int threads, std::unique_ptr<DaemonProcess>& daemon)> open_apart;
  // "remote": kernels run in another process and need arrays of the session.
  // "copied": the arrays here are copies, made before and after each launch: nothing is seen while it runs.
  std::set<std::string> tags;

  [[nodiscard]] bool has(const std::string& tag) const { return tags.contains(tag); }
};
inline void PrintTo(const HostUnderTest& host, std::ostream* out) { *out << host.name; }

// In a fixed order, whatever the order of registration.
std::vector<HostUnderTest> registered_hosts();

// Registers at start-up: `const HostRegistration local({...});`
class HostRegistration {
public:
  explicit HostRegistration(HostUnderTest host);
};

}  // namespace eagle::conformance
