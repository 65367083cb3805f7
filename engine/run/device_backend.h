// DeviceBackend: a graph as a GPU runs it, for BuiltGraph and Replay to drive. run/cuda/graph_backend.h has
// the one that there is.
//
// For one caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/address.h"
#include "engine/graph/schedule.h"
#include "engine/run/control.h"
#include "engine/run/kernel_counts.h"

namespace eagle::run {

class DeviceBackend {
public:
  enum class Next { done, host_call, again };

  virtual ~DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;

  [[nodiscard]] virtual const std::string& device() const = 0;                          // "cuda:0"
  [[nodiscard]] virtual const std::vector<graph::StageSchedule>& schedule() const = 0;  // by stage

  // Of the device's memory, that the graph made for itself: scratch planes, notes.
  [[nodiscard]] virtual std::uint64_t own_bytes() const = 0;

  // Begins so many replays.
  virtual Status launch(std::int64_t count, std::shared_ptr<const Control> control) = 0;
  // A launch needs nobody until it is done.
  [[nodiscard]] virtual bool is_whole() const = 0;
  // Whether `advance` would wait for nothing.
  [[nodiscard]] virtual bool ready() const = 0;
  // Goes on until they are done, the host is to act, or some have ended and others may have the thread. A
  // fault of the GPU is what its driver says, and stays.
  virtual StatusOr<Next> advance() = 0;
  // What is left of the launch does not run; what is under way is waited for.
  virtual void give_up() = 0;
  [[nodiscard]] virtual std::uint32_t call() const = 0;
  [[nodiscard]] virtual std::int64_t launches() const = 0;  // whole replays
  [[nodiscard]] virtual bool part_way() const = 0;          // something has run that is not whole
  [[nodiscard]] virtual const std::vector<std::int64_t>& iterations() const = 0;
  // Of the launch, once it is done.
  virtual StatusOr<KernelCounts> take_counts() = 0;

  virtual Status update(const std::vector<graph::ParamUpdate>& updates) = 0;
  // The numbers of the Params of the same graph over other planes.
  virtual Status keep_params_of(const DeviceBackend& other) = 0;
  // After it was put over other planes (run/cuda/graph_backend.h), before the next launch: it stays so, or
  // has what it had before.
  virtual void keep_rebind() = 0;
  virtual void undo_rebind() = 0;

protected:
  DeviceBackend() = default;
};

}  // namespace eagle::run
