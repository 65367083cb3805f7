#include "server/gpu_watch.h"

#include "engine/base/detached.h"

namespace eagle::server {

void GpuWatch::look(std::vector<Question> questions, std::chrono::milliseconds period,
                    std::chrono::milliseconds patience, Clock::time_point now) {
  for (Question& question : questions) {
    const auto known = asked_.find(question.gpu.uuid);
    if (known != asked_.end()) {
      Asked& before = known->second;
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - before.since);
      const bool silent = !*before.answered && waited >= patience;
      if (silent != before.silent && (silent || *before.answered)) {
        before.silent = silent;
        silent_(question.gpu, silent, waited);
      }
      if (!*before.answered || waited < period) continue;
    }
    const auto answered = std::make_shared<std::atomic<bool>>(false);
    const auto begun = start_detached([answered, ask = std::move(question.ask)] {
      ask();
      *answered = true;
    });
    if (begun.ok()) asked_[question.gpu.uuid] = {now, answered, false};  // else the next time
  }
}

}  // namespace eagle::server
