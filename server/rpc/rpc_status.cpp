#include "server/rpc/rpc_status.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "proto/rpc_error.h"
#include "server/daemon.h"

namespace eagle::rpc {

// Whoever takes this daemon's place is there soon after it has gone, and a client asks again until then. The
// next worker is there sooner.
constexpr int retry_after_ms = 1000;
constexpr int next_worker_ms = 50;

grpc::Status to_grpc(server::Daemon& daemon, const Status& found, grpc::CallbackServerContext& context) {
  if (found.ok()) return grpc::Status::OK;
  const Status status = daemon.told(found);
  server::count(daemon.executor().meters().refusals[static_cast<std::size_t>(status.reason())]);
  context.AddTrailingMetadata(error_reason_key, std::string(info(status.reason()).wire_name));
  if (status.reason() == Reason::shutting_down) {
    context.AddTrailingMetadata(retry_after_key,
                                std::to_string(passes_soon(status) ? next_worker_ms : retry_after_ms));
  }
  return {static_cast<grpc::StatusCode>(status.code()), wire_message(status.message()),
          error_details(status)};
}

}  // namespace eagle::rpc
