#include "engine/run/cuda/capture_turns.h"

#include <map>
#include <string>
#include <utility>

namespace eagle::run::cuda {
namespace {

// What this thread captures.
const CaptureTurns*& captured_here() {
  thread_local const CaptureTurns* turns = nullptr;
  return turns;
}

}  // namespace

std::shared_ptr<CaptureTurns> CaptureTurns::of(std::string_view uuid) {
  static std::mutex& mutex = *new std::mutex;  // memory may be freed after the end of main
  static auto& all = *new std::map<std::string, std::shared_ptr<CaptureTurns>, std::less<>>;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<CaptureTurns>& turns = all[std::string(uuid)];
  if (turns == nullptr) turns = std::make_shared<CaptureTurns>();
  return turns;
}

StatusOr<std::unique_lock<std::mutex>> CaptureTurns::enter() {
  if (captured_here() != nullptr) {
    return Status(Reason::graph_state, std::string("a callable that is being captured builds a graph on ") +
                                           (captured_here() == this ? "the same GPU" : "another GPU") +
                                           "; build it before, or give the callable eager=True");
  }
  return std::unique_lock(making_);
}

CaptureTurns::Capture::Capture(CaptureTurns& turns)
    : turns_(turns), before_(std::exchange(captured_here(), &turns)) {
  const std::scoped_lock lock(turns_.mutex_);
  turns_.capturing_ = true;
}

CaptureTurns::Capture::~Capture() {
  captured_here() = before_;
  std::vector<std::function<void()>> later;
  {
    const std::scoped_lock lock(turns_.mutex_);
    turns_.capturing_ = false;
    later.swap(turns_.later_);
  }
  for (const std::function<void()>& memory : later) turns_.free(memory);
}

// With the mutex, so that no capture begins meanwhile.
void CaptureTurns::free(std::function<void()> memory) {
  const std::scoped_lock lock(mutex_);
  if (capturing_) {
    later_.push_back(std::move(memory));
  } else {
    memory();
  }
}

}  // namespace eagle::run::cuda
