// CapturedGraph: work of this process's own packages as a CUDA graph, to be a node of others or replayed.
//
// Thread-safe, but for `launch` and `replay`, which are for one caller at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "engine/base/status.h"
#include "engine/run/cuda/device.h"

namespace eagle::run::cuda {

class CapturedGraph {
public:
  // What `enqueue` puts on the stream that it is given, and on others that wait for events of it. The
  // device's context is current meanwhile; no other graph of the GPU is made, and memory is freed afterwards.
  // GRAPH_STATE where the driver gave the capture up (something allocated, waited for the device, or was left
  // on a stream that did not come back), where nothing was captured, and for nodes that no graph may have
  // within another; what `enqueue` says or throws, where the capture went well.
  static StatusOr<std::shared_ptr<const CapturedGraph>> capture(
      const std::shared_ptr<const Device>& device, const std::function<Status(api::Stream)>& enqueue);
  // A copy of a graph that a package captured, whose owner may do with it what it likes from then on.
  static StatusOr<std::shared_ptr<const CapturedGraph>> copy_of(const std::shared_ptr<const Device>& device,
                                                                api::Graph original);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  [[nodiscard]] api::Graph graph() const { return graph_; }
  // Whether bodies of conditionals may have it; GRAPH_STATE.
  [[nodiscard]] const Status& fits_in_bodies() const { return fits_in_bodies_; }
  // Of a copy: the original has been destroyed since, whatever lies at its address now.
  [[nodiscard]] bool original_gone() const { return gone_ != nullptr && gone_->load(); }

  // By itself. Returns before it is done.
  Status launch(const DeviceStream& stream) const;
  // The same on a stream of its own, and waited for.
  Status replay() const;

private:
  explicit CapturedGraph(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  Status look(api::Graph graph);
  Status watch(api::Graph original);

  std::shared_ptr<const Device> device_;
  api::Graph graph_ = nullptr;
  Status fits_in_bodies_;
  std::shared_ptr<std::atomic<bool>> gone_;
  mutable api::GraphExec exec_ = nullptr;
  mutable std::optional<DeviceStream> stream_;
};

}  // namespace eagle::run::cuda
