// Runs of models as gRPC calls. For the .cpp files of this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "eagle/v1/service.grpc.pb.h"
#include "engine/step/result_message.h"
#include "server/rpc/call.h"

namespace eagle::server {

// Enters a run into the session and has it prepared on the pool that builds. `request` lives as long as
// `keep`. What is refused at once is returned; anything later goes to `events.done`.
StatusOr<std::shared_ptr<SimulationJob>> start_run(Daemon& daemon, const std::shared_ptr<Session>& session,
                                                   const grpc::CallbackServerContext& context,
                                                   const v1::SimulateRequest& request,
                                                   std::shared_ptr<const void> keep, SimulationEvents events);

// Progress that a client asked for, told now and then.
class ProgressPace {
public:
  explicit ProgressPace(bool wanted) : wanted_(wanted) {}
  // Whether it is time to say something.
  bool due() {
    const auto now = std::chrono::steady_clock::now();
    if (!wanted_ || (last_ && now - *last_ < interval)) return false;
    last_ = now;
    return true;
  }

private:
  static constexpr std::chrono::milliseconds interval{50};
  bool wanted_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::SimulateEvent>* simulate_with_calls(const Arrival& arrival);

}  // namespace eagle::server
