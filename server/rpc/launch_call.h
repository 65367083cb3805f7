// The calls that launch a graph. For the .cpp files of this folder only.
#pragma once

#include "eagle/v1/service.grpc.pb.h"
#include "server/rpc/call.h"

namespace eagle::server {

grpc::ServerUnaryReactor* launch_call(Daemon& daemon, grpc::CallbackServerContext& context,
                                      const v1::LaunchRequest& request, v1::LaunchReport& reply);

// Answers once the launch is queued; its outcome is that of a Launch with the same id.
grpc::ServerUnaryReactor* enqueue_call(Daemon& daemon, grpc::CallbackServerContext& context,
                                       const v1::LaunchRequest& request);

grpc::ServerBidiReactor<v1::LaunchClientMessage, v1::LaunchServerMessage>* launch_with_calls(
    Daemon& daemon, grpc::CallbackServerContext& context);

}  // namespace eagle::server
