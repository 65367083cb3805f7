// How a Status leaves through gRPC. The other end of it is proto/rpc_error.h.
#pragma once

#include "engine/base/status.h"

namespace grpc {
class CallbackServerContext;
class Status;
}  // namespace grpc

namespace eagle::server {
class Daemon;
}

namespace eagle::rpc {

// The status to finish the call with, as `Daemon::told` has it; the reason is put into its trailing metadata,
// and counted. Once a call, before it is finished.
grpc::Status to_grpc(server::Daemon& daemon, const Status& status, grpc::CallbackServerContext& context);

}  // namespace eagle::rpc
