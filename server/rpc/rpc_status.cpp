#include "server/rpc/rpc_status.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "proto/rpc_error.h"

namespace eagle::rpc {

grpc::Status to_grpc(const Status& status, grpc::CallbackServerContext& context) {
  if (status.ok()) return grpc::Status::OK;
  context.AddTrailingMetadata(error_reason_key, std::string(info(status.reason()).wire_name));
  return {static_cast<grpc::StatusCode>(status.code()), wire_message(status.message())};
}

}  // namespace eagle::rpc
