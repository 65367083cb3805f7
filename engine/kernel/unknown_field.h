// Fields of messages that this version does not know, which could change what a message means.
#pragma once

namespace google::protobuf {
class Message;
}

namespace eagle::kernel {

// The number of such a field of `message` itself, not of messages within it; 0: there is none.
int unknown_field(const google::protobuf::Message& message);

}  // namespace eagle::kernel
