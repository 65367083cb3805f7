// The hosts of this machine: the engine in this process, and an eagled beside it.
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/conformance/daemon_process.h"
#include "tests/conformance/host_registry.h"
#include "tests/conformance/hosts.h"
#include "tests/conformance/tcp_host.h"

namespace eagle::conformance {

StatusOr<DaemonProcess*> suite_daemon() {
  // One for all cases of this process; it ends with it.
  static StatusOr<std::unique_ptr<DaemonProcess>> daemon = DaemonProcess::start();
  if (!daemon.ok()) return daemon.status();
  return daemon->get();
}

namespace {

// How launches reach the daemon.
enum class Way { ring, grpc, tcp, gpu };

constexpr const char* gpu = "cuda:0";

StatusOr<Session> connect_to(const DaemonProcess& daemon, Way way) {
  ConnectOptions options;
  if (way == Way::tcp) {
    EAGLE_ASSIGN_OR_RETURN(const Session session, eagle::connect(daemon.tcp_endpoint(), options));
    return mirrored(session);
  }
  options.ring = way == Way::ring || way == Way::gpu;
  EAGLE_ASSIGN_OR_RETURN(const Session session, eagle::connect(daemon.endpoint(), options));
  return way == Way::gpu ? mirrored(session, gpu) : session;
}

StatusOr<Session> of_the_suite(Way way) {
  EAGLE_ASSIGN_OR_RETURN(const DaemonProcess* process, suite_daemon());
  return connect_to(*process, way);
}

// One daemon for each size of team, for all cases of this process.
StatusOr<Session> with_a_team_of(int threads, Way way) {
  static std::map<int, StatusOr<std::unique_ptr<DaemonProcess>>> daemons;
  auto known = daemons.find(threads);
  if (known == daemons.end()) known = daemons.emplace(threads, DaemonProcess::start(threads)).first;
  if (!known->second.ok()) return known->second.status();
  return connect_to(**known->second, way);
}

StatusOr<Session> apart(int threads, std::unique_ptr<DaemonProcess>& daemon, Way way) {
  EAGLE_ASSIGN_OR_RETURN(daemon, DaemonProcess::start(threads));
  return connect_to(*daemon, way);
}

std::set<std::string> tags_of(Way way) {
  if (way == Way::gpu) return {"remote", "copied", "gpu"};
  return way == Way::tcp ? std::set<std::string>{"remote", "copied"} : std::set<std::string>{"remote"};
}

HostUnderTest daemon_by(const char* name, Way way) {
  return {name, [way] { return of_the_suite(way); },
          [way](int threads) { return with_a_team_of(threads, way); },
          [way](int threads, auto& daemon) { return apart(threads, daemon, way); }, tags_of(way)};
}

// As the others, with arrays on a GPU: a real one, or what EAGLE_CUDA_DRIVER stands in with.
StatusOr<Session> local_on_gpu(int threads) {
  EAGLE_ASSIGN_OR_RETURN(const Session session, eagle::local({threads}));
  return mirrored(session, gpu);
}

}  // namespace

void register_hosts() {
  // In a run of their own: where a driver is played by an interpreter they are slow.
  if (std::getenv("EAGLE_CONFORMANCE_GPU") != nullptr) {
    static const HostRegistration local_gpu({"local_gpu",
                                             [] { return local_on_gpu(0); },
                                             [](int threads) { return local_on_gpu(threads); },
                                             [](int threads, auto&) { return local_on_gpu(threads); },
                                             {"copied", "gpu"}});
    static const HostRegistration daemon_gpu(daemon_by("daemon_gpu", Way::gpu));
    return;
  }
  static const HostRegistration local({"local",
                                       [] { return eagle::local(); },
                                       [](int threads) { return eagle::local({threads}); },
                                       [](int threads, auto&) { return eagle::local({threads}); },
                                       {}});
  static const HostRegistration daemon(daemon_by("daemon", Way::ring));
  static const HostRegistration over_grpc(daemon_by("daemon_grpc", Way::grpc));
  static const HostRegistration over_tcp(daemon_by("daemon_tcp", Way::tcp));
}

}  // namespace eagle::conformance
