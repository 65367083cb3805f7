// verify() that also tells which part of the message it refused. For callers that know where in a text each
// part came from.
#pragma once

#include "engine/kernel/verify.h"

namespace google::protobuf {
class Message;
}

namespace eagle::kernel {

// After an error `refused` is the innermost argument or op that the error is about, or null where it is about
// the kernel as a whole.
StatusOr<Kernel> verify_at(const v1::Kernel& message, const Limits& limits,
                           const google::protobuf::Message*& refused);

}  // namespace eagle::kernel
