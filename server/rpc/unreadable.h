// What a client hears whose request is no message of its method: garbage, cut short, or nested too deeply.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace eagle::server {

class Daemon;

// Messages in each other that protocol buffers read.
constexpr int message_depth = 100;

// gRPC gives such a request to nobody and says UNIMPLEMENTED, without a word. Every method of ours is
// implemented: what is said so of one is said as BAD_MESSAGE instead. (Of streams in which clients speak more
// than once gRPC tells nothing apart from a client that says no more; their services word it.)
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> refuse_unreadable(Daemon& daemon);

// BAD_MESSAGE. `what`: "a request of Graphs.Build".
Status unreadable(const std::string& what);

}  // namespace eagle::server
