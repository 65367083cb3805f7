// IdleQueues: gRPC's completion queues, used by one call after another. To make one takes an epoll and its
// descriptors, a fifth of what a small call takes. For the .cpp files of this folder only.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>

namespace eagle {

// Of this process. Thread-safe; never destroyed, since calls may outlive every other static object.
class IdleQueues {
public:
  // One on which nothing is under way; made where none is there.
  static std::unique_ptr<grpc::CompletionQueue> take();
  // Once everything that was started on it has been waited for. A few are kept.
  static void give_back(std::unique_ptr<grpc::CompletionQueue> queue);
};

}  // namespace eagle
