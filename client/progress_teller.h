// ProgressTeller: tells a caller who asked for it how far a run is, not too often.
#pragma once

#include <chrono>

#include "eagle/client/run.h"

namespace eagle {

// Of one call, in its thread.
class ProgressTeller {
public:
  explicit ProgressTeller(const SimulateOptions& options) : options_(options) {}

  [[nodiscard]] bool due() const {
    return options_.progress && std::chrono::steady_clock::now() - last_ >= interval;
  }
  // Tells it where that is due. False: the caller wants the run to end.
  bool tell(const RunProgress& progress) {
    if (!due()) return true;
    last_ = std::chrono::steady_clock::now();
    return options_.progress(progress);
  }

private:
  static constexpr std::chrono::milliseconds interval{50};
  const SimulateOptions& options_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace eagle
