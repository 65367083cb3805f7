// Graphs.Verify: a graph computed on the CPU and on a GPU, and compared.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "engine/base/status.h"
#include "server/verification.h"

namespace eagle::v1 {
class VerifyReply;
class VerifyRequest;
}  // namespace eagle::v1

namespace eagle::server {

// What is asked for, of the caller's session or of one that it may look into; still to `begin`. `reply` is
// complete when `done` is called, as of Verification::begin. SHUTTING_DOWN, UNKNOWN_GRAPH.
StatusOr<std::shared_ptr<Verification>> verification_of(
    Daemon& daemon, const std::shared_ptr<Session>& caller, const v1::VerifyRequest& request,
    v1::VerifyReply& reply, std::optional<std::chrono::steady_clock::time_point> deadline,
    std::function<void(const Status&)> done);

}  // namespace eagle::server
