// The calls that launch a graph. For the .cpp files of this folder only.
#pragma once

#include "eagle/v1/service.grpc.pb.h"
#include "server/rpc/call.h"

namespace eagle::server {

void launch_call(PendingCall& call, const v1::LaunchRequest& request, v1::LaunchReport& reply);

// Answers once the launch is queued; its outcome is that of a Launch with the same id.
void enqueue_call(PendingCall& call, const v1::LaunchRequest& request);

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::LaunchServerMessage>* launch_with_calls(const Arrival& arrival);

}  // namespace eagle::server
