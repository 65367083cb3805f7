// HostAdmin: what operators ask the daemon behind a session, and tell it. `eaglectl` is its user.
//
// Whose sessions, planes and graphs are seen, and who may do what, the daemon decides (proto/eagle/v1): a
// caller sees its own, the daemon's admins see everybody's. Thread-safe; errors as of any call of a session.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace eagle::v1 {
class DescribeGraphReply;
class DrainReply;
class ExplainReply;
class ExplainRequest;
class InfoReply;
class InspectReply;
class ListAllPlanesReply;
class ListQuarantineReply;
class PardonRequest;
class ListGraphsReply;
class ListKernelReply;
class ListKernelRequest;
class ListSessionsReply;
class TimelineReply;
class VerifyReply;
class VerifyRequest;
}  // namespace eagle::v1

namespace eagle {

// A graph by the session that has it and its number there.
struct GraphAddress {
  std::uint64_t session = 0;
  std::uint64_t graph = 0;
};

class HostAdmin {
public:
  virtual ~HostAdmin() = default;

  virtual Status info(v1::InfoReply& reply) = 0;
  virtual Status sessions(v1::ListSessionsReply& reply) = 0;
  virtual Status planes(v1::ListAllPlanesReply& reply) = 0;
  virtual Status graphs(v1::ListGraphsReply& reply) = 0;
  virtual Status describe(GraphAddress graph, v1::DescribeGraphReply& reply) = 0;
  virtual Status inspect(GraphAddress graph, v1::InspectReply& reply) = 0;
  virtual Status kernel(const v1::ListKernelRequest& request, v1::ListKernelReply& reply) = 0;
  virtual Status explain(const v1::ExplainRequest& request, v1::ExplainReply& reply) = 0;
  // Computes a graph on both backends and compares; for as long as that takes.
  virtual Status verify(const v1::VerifyRequest& request, v1::VerifyReply& reply) = 0;
  // Of one graph, or of all that happened lately.
  virtual Status timeline(std::optional<GraphAddress> graph, v1::TimelineReply& reply) = 0;

  virtual StatusOr<std::string> metrics() = 0;
  virtual StatusOr<std::vector<std::string>> recent_log(std::uint32_t lines) = 0;
  // The level that held before.
  virtual StatusOr<std::string> set_log_level(std::string_view level) = 0;
  // Graphs that were computing when workers died; and to forget that, of how many.
  virtual Status quarantine(v1::ListQuarantineReply& reply) = 0;
  virtual StatusOr<std::uint64_t> pardon(const v1::PardonRequest& request) = 0;
  // The daemon takes no new work, finishes what it has and ends. `timeout_s`: what running work gets.
  virtual Status drain(std::optional<std::uint32_t> timeout_s, v1::DrainReply& reply) = 0;
  // The chunks of the archive, in order. An error of `sink` ends it.
  virtual Status support_bundle(const std::function<Status(std::string_view chunk)>& sink) = 0;
  // Whether this service of the daemon takes work, as grpc.health.v1 tells it: "" (the daemon),
  // "eagled.ready", "eagled.device.NAME". UNKNOWN_NAME.
  virtual StatusOr<bool> serving(const std::string& service) = 0;
};

}  // namespace eagle
