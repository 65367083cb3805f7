// DeviceStepper: a model as a device steps it, for Simulation to drive. step/device_run.h has the one that
// there is.
//
// For one caller at a time.
#pragma once

#include <cstdint>

#include "engine/base/status.h"
#include "engine/step/simulation.h"

namespace eagle::step {

class DeviceStepper {
public:
  virtual ~DeviceStepper() = default;
  DeviceStepper(const DeviceStepper&) = delete;
  DeviceStepper& operator=(const DeviceStepper&) = delete;

  // As Simulation's. A fault of the device is what its driver says, and ends the run.
  virtual StatusOr<Simulation::Next> advance() = 0;
  [[nodiscard]] virtual bool part_way() const = 0;
  [[nodiscard]] virtual bool ended() const = 0;
  [[nodiscard]] virtual std::uint32_t call() const = 0;
  virtual void answer(bool stop) = 0;
  [[nodiscard]] virtual const RunResult& result() const = 0;

protected:
  DeviceStepper() = default;
};

}  // namespace eagle::step
