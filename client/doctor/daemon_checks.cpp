#include "client/doctor/daemon_checks.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "engine/run/host.h"

namespace eagle::doctor {
namespace {

using enum Severity;

// "Max open files            1024                 1048576              files"
std::optional<std::uint64_t> open_files_of(const Machine& machine, std::int64_t pid) {
  std::ifstream limits(machine.root / "proc" / std::to_string(pid) / "limits");
  constexpr std::string_view name = "Max open files";
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream rest(line.substr(name.size()));
    std::uint64_t soft = 0;
    if (rest >> soft) return soft;
  }
  return {};
}

Finding planes_of(const SessionInfo& info) {
  const double used = info.plane_budget_bytes == 0 ? 0
                                                   : static_cast<double>(info.plane_bytes) /
                                                         static_cast<double>(info.plane_budget_bytes);
  const std::string what = std::to_string(static_cast<int>(used * 100)) + " % of the plane budget is taken";
  if (used >= 0.9) {
    return {"daemon.planes", warning, what + ": the next arrays may be refused (PLANE_BUDGET)",
            "see who has them: eaglectl planes; end sessions, or raise plane_budget"};
  }
  return {"daemon.planes", fine, what, ""};
}

}  // namespace

Findings check_daemon(const Machine& machine, const StatusOr<SessionInfo>& info) {
  if (!info.ok()) {
    return {{"daemon.reachable", problem, info.status().message(),
             "start one, or name the one that you mean with --endpoint"}};
  }
  Findings found;
  found.push_back({"daemon.reachable", fine,
                   "eagled " + info->version + " answers at " + info->endpoint + ", worker pid " +
                       std::to_string(info->host.pid) + " on " + info->host.host_name,
                   ""});
  if (info->version != EAGLE_VERSION) {
    found.push_back(
        {"daemon.version", warning, "the daemon is " + info->version + ", and this client " EAGLE_VERSION,
         "install the same release of both; a daemon that is older refuses what it does not know"});
  } else {
    found.push_back({"daemon.version", fine, "daemon and client are both " EAGLE_VERSION, ""});
  }
  if (info->transport == "memfd + grpc") {
    found.push_back({"daemon.transport", note, "launches go over gRPC: no ring could be opened",
                     "unset EAGLE_RING; else look at the daemon's descriptors and log"});
  } else {
    found.push_back({"daemon.transport", fine, "arrays and launches travel as " + info->transport, ""});
  }
  found.push_back(planes_of(*info));
  for (const TenantUse& tenant : info->tenants) {
    if (tenant.refused == 0) continue;
    found.push_back(
        {"daemon.tenants", note,
         "tenant " + tenant.name + " was refused " + std::to_string(tenant.refused) + " times for a quota",
         "see what it holds: eaglectl info; raise its quota in [[tenant]], if that is meant"});
  }
  if (info->host.host_name != run::this_host().host_name) return found;
  constexpr std::uint64_t many_files = 65'536;
  if (const auto files = open_files_of(machine, info->host.pid); files && *files < many_files) {
    found.push_back(
        {"daemon.nofile", warning,
         "the daemon may have " + std::to_string(*files) + " files open, one a plane",
         "LimitNOFILE=65536 in its unit, or `ulimit -Hn` where it is started, and start it again"});
  }
  if (info->threads < machine.threads) {
    found.push_back({"daemon.threads", note,
                     "the daemon computes on " + std::to_string(info->threads) +
                         " threads, and this process could on " + std::to_string(machine.threads),
                     "--threads, the daemon's CPU quota or its affinity"});
  }
  return found;
}

}  // namespace eagle::doctor
