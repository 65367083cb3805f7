// Simulation: a model stepped until its samples have finished, a pass at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/control.h"
#include "engine/run/host.h"
#include "engine/run/kernel_counts.h"

namespace eagle {
class Engine;
}

namespace eagle::step {

enum class RunStatus : std::uint8_t { finished = 1, max_steps = 2, cancelled = 3, deadline = 4 };
std::string_view name_of(RunStatus status);  // "finished"

struct RunReport {
  run::HostIdentity host;
  std::int64_t samples = 0;
  std::int64_t finished = 0;  // samples that this run finished
  std::int64_t launches = 0;  // passes over the samples
  std::int64_t steps = 0;     // the number of the last step that any sample took
  std::int64_t threads = 1;
  run::KernelCounts counts;
  double build_s = 0;
  double wall_s = 0;
  bool compiled = false;
  std::vector<std::string> kernels;  // content hashes
};

struct RunResult {
  RunStatus status = RunStatus::finished;
  RunReport report;
};

// A model being stepped until its samples have finished or max_steps is reached (docs/manual/stepping.md).
class Simulation {
public:
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Runs one pass (many steps; a few tens of milliseconds) and says whether the run has ended. Every
  // sample is at a whole step in between.
  bool advance();
  [[nodiscard]] bool ended() const;
  // Complete once `ended()`.
  [[nodiscard]] const RunResult& result() const;

private:
  friend class eagle::Engine;
  struct State;
  explicit Simulation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle::step
