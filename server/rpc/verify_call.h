// The call that computes a graph on the CPU and on a GPU and compares. For the .cpp files of this folder
// only.
#pragma once

#include "server/rpc/call.h"

namespace eagle::v1 {
class VerifyReply;
class VerifyRequest;
}  // namespace eagle::v1

namespace eagle::server {

void verify_call(PendingCall& call, const v1::VerifyRequest& request, v1::VerifyReply& reply);

}  // namespace eagle::server
