#include "client/idle_queues.h"

#include <mutex>
#include <utility>
#include <vector>

namespace eagle {
namespace {

// So many calls at the same time find one; those beyond make theirs.
constexpr std::size_t most_idle = 16;

struct Kept {
  std::mutex mutex;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues;
};

Kept& kept() {
  static Kept& all = *new Kept();
  return all;
}

}  // namespace

// Nobody waits for the lock: in a forked child a thread may have held it that the child does not have.
std::unique_ptr<grpc::CompletionQueue> IdleQueues::take() {
  Kept& all = kept();
  if (const std::unique_lock lock(all.mutex, std::try_to_lock); lock && !all.queues.empty()) {
    auto queue = std::move(all.queues.back());
    all.queues.pop_back();
    return queue;
  }
  return std::make_unique<grpc::CompletionQueue>();
}

void IdleQueues::give_back(std::unique_ptr<grpc::CompletionQueue> queue) {
  Kept& all = kept();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (lock && all.queues.size() < most_idle) return all.queues.push_back(std::move(queue));
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

}  // namespace eagle
