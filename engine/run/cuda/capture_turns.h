// CaptureTurns: what one GPU of this process may not do at the same time.
//
// Graphs are made, and streams captured, one at a time, whichever session asks. Memory is freed when nothing
// is being captured: a free waits for the device, which no driver does meanwhile. Thread-safe; one object for
// each GPU, however many `Device`s there are of it, since all of them use one context.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace eagle::run::cuda {

class CaptureTurns {
public:
  static std::shared_ptr<CaptureTurns> of(std::string_view uuid);
  CaptureTurns() = default;
  CaptureTurns(const CaptureTurns&) = delete;
  CaptureTurns& operator=(const CaptureTurns&) = delete;

  // To make a graph or capture one. Waits; GRAPH_STATE from within what is being captured, also on another
  // GPU: it would wait for itself, or for somebody there who waits for it.
  StatusOr<std::unique_lock<std::mutex>> enter();

  // Something is captured while it lives, by this thread, which has entered. What was put off is freed then.
  class Capture {
  public:
    explicit Capture(CaptureTurns& turns);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

  private:
    CaptureTurns& turns_;
    const CaptureTurns* const before_;  // what this thread captured
  };

  // Now, or at the end of the capture that is under way.
  void free(std::function<void()> memory);

private:
  std::mutex making_;
  std::mutex mutex_;
  bool capturing_ = false;
  std::vector<std::function<void()>> later_;
};

}  // namespace eagle::run::cuda
