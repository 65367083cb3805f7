// LocalEnqueued: launches of graphs of this process on its GPUs that nobody waits for yet. Whoever touches
// memory that one of them touches waits for it first (`settle`), whichever session it is of. For the
// local_*.cpp files.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "eagle/client/run.h"
#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/run/control.h"
#include "engine/run/cuda/device.h"

namespace eagle {

// Bytes of a GPU.
struct GpuBytes {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  bool written = false;
};
using GpuTouches = std::vector<GpuBytes>;

// Of a graph whose planes are there; null: elsewhere.
GpuTouches touches_of(const graph::Graph& graph,
                      const std::vector<std::shared_ptr<const run::cuda::DeviceMemory>>& planes);
// All of it, written.
GpuTouches touches_of(const std::vector<std::shared_ptr<const run::cuda::DeviceMemory>>& planes);

// Of a launch in this process that has ended.
LaunchReport report_of(const run::BuiltGraph& graph, const run::Replay& replay,
                       std::chrono::steady_clock::time_point began);

// Thread-safe.
class LocalEnqueued : public std::enable_shared_from_this<LocalEnqueued> {
public:
  // Enqueues so many replays, or the first of them, behind whatever is under way that they are in conflict
  // with; the others follow as somebody waits. `graph` is whole on a GPU, and launched by nobody else before
  // this has ended. `control` stops it; `session` tells whose it is.
  static StatusOr<std::shared_ptr<LocalEnqueued>> begin(std::shared_ptr<run::BuiltGraph> graph,
                                                        std::int64_t count, GpuTouches touches,
                                                        std::shared_ptr<run::Control> control,
                                                        std::shared_ptr<const void> session);
  // Whoever begins one calls `stop_and_wait` before, if it has not collected it: others may hold it as well.
  ~LocalEnqueued();
  LocalEnqueued(const LocalEnqueued&) = delete;
  LocalEnqueued& operator=(const LocalEnqueued&) = delete;

  // Waits for its end; a caller's flag and deadline stop it from now on.
  StatusOr<LaunchReport> collect(std::shared_ptr<const std::atomic<bool>> caller,
                                 std::optional<std::chrono::steady_clock::time_point> deadline);
  // From any thread; does not wait. It stops when somebody looks.
  void stop() const { control_->cancel = true; }
  // Until the GPU has done what it was given.
  void stop_and_wait();

  // Returns once nothing is under way that these bytes are in conflict with: that writes some of them, or
  // touches some that are written. CANCELLED and DEADLINE where `control` says so before, with nothing done.
  static Status settle(const GpuTouches& touches, const run::Control* control = nullptr);
  static Status settle(const run::cuda::DeviceMemory& memory, bool written) {
    return settle({{memory.address(), memory.bytes(), written}});
  }
  // Waits for what a session that was closed has stopped.
  static void settle_all_of(const void* session);

private:
  LocalEnqueued(std::shared_ptr<run::BuiltGraph> graph, std::int64_t count, GpuTouches touches,
                std::shared_ptr<run::Control> control, std::shared_ptr<const void> session);
  bool enter();  // is under way from now on; false: something is that it conflicts with
  void end(StatusOr<LaunchReport> outcome);  // with `mutex_` held
  bool advance();
  void drive();
  template <typename GiveUp>
  bool drive(const GiveUp& give_up);
  [[nodiscard]] bool conflicts_with(const GpuTouches& touches) const;
  using Launches = std::vector<std::shared_ptr<LocalEnqueued>>;
  template <typename Which>
  static Launches find(const Which& which);

  const std::shared_ptr<const void> session_;  // goes after the graph, which its engine made
  const std::shared_ptr<run::BuiltGraph> graph_;
  const GpuTouches touches_;
  const std::shared_ptr<run::Control> control_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;                   // of what follows, and of the control's caller and deadline
  std::optional<run::Replay> replay_;  // until it has ended
  std::optional<StatusOr<LaunchReport>> outcome_;
};

}  // namespace eagle
