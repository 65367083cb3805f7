// Summaries: what lists tell of sessions, planes, graphs and the daemon, as messages (admin.proto,
// service.proto).
#pragma once

#include <string_view>

#include "server/daemon.h"
#include "server/surroundings.h"

namespace eagle::v1 {
class GraphSummary;
class InfoReply;
class PlaneSummary;
class SessionSummary;
}  // namespace eagle::v1

namespace eagle::server {

// For a caller of this tenant, who hears of the other tenants if it `sees_all`.
void describe(const Daemon& daemon, const Surroundings& surroundings, std::string_view tenant, bool sees_all,
              v1::InfoReply& reply);
void describe(Daemon& daemon, Session& session, v1::SessionSummary& message);
void describe(const Session& session, const Plane& plane, v1::PlaneSummary& message);
void describe(const Session& session, std::uint64_t id, const LoadedGraph& graph, v1::GraphSummary& message);
// One that another worker built, from its record.
void describe(const Session& session, std::uint64_t id, const v1::GraphDescription& graph,
              std::uint32_t nodes, v1::GraphSummary& message);

}  // namespace eagle::server
