// How a Status leaves through gRPC. The other end of it is proto/rpc_error.h.
#pragma once

#include "engine/base/status.h"

namespace grpc {
class CallbackServerContext;
class Status;
}  // namespace grpc

namespace eagle::rpc {

// The status to finish the call with; the reason is put into its trailing metadata. Once a call, before
// it is finished.
grpc::Status to_grpc(const Status& status, grpc::CallbackServerContext& context);

}  // namespace eagle::rpc
