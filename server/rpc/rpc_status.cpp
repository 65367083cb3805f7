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

namespace {

template <typename AddTrailing>
grpc::Status told(server::Daemon& daemon, const Status& found, const AddTrailing& add) {
  if (found.ok()) return grpc::Status::OK;
  const Status status = daemon.told(found);
  server::count(daemon.executor().meters().refusals[static_cast<std::size_t>(status.reason())]);
  add(error_reason_key, std::string(info(status.reason()).wire_name));
  if (status.reason() == Reason::shutting_down)
    add(retry_after_key, std::to_string(passes_soon(status) ? next_worker_ms : retry_after_ms));
  return {static_cast<grpc::StatusCode>(status.code()), wire_message(status.message()),
          error_details(status)};
}

}  // namespace

grpc::Status to_grpc(server::Daemon& daemon, const Status& status, grpc::CallbackServerContext& context) {
  return told(daemon, status,
              [&](const char* key, const std::string& value) { context.AddTrailingMetadata(key, value); });
}

grpc::Status to_grpc(server::Daemon& daemon, const Status& status,
                     std::multimap<std::string, std::string>& trailing) {
  return told(daemon, status,
              [&](const char* key, const std::string& value) { trailing.emplace(key, value); });
}

}  // namespace eagle::rpc
