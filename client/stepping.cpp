#include "eagle/client/stepping.h"

#include <exception>
#include <functional>
#include <string>

#include "client/counters.h"
#include "client/describe.h"
#include "client/host.h"
#include "eagle/v1/run.pb.h"

namespace eagle {

StatusOr<RunResult> simulate(const Session& session, std::span<const ModelStep> model,
                             const SimulateOptions& options) {
  if (options.max_steps < 0) {
    return Status(Reason::bad_value, "simulate: max_steps is " + std::to_string(options.max_steps) +
                                         "; give the largest number of steps to take, at least 0");
  }
  v1::RunDescription description;
  std::vector<std::function<step::HostAnswer()>> calls;
  EAGLE_ASSIGN_OR_RETURN(const Backing backing,
                         describe_run(*session.host(), model, options, description, calls));

  // What the caller's own code had to say comes back as it was, whatever the host made of it on the way.
  Status failure;
  std::exception_ptr thrown;
  const auto host_call = [&](std::uint32_t call) -> step::HostAnswer {
    if (call >= calls.size())
      return {Status(Reason::internal, "there is no host call " + std::to_string(call) + " in this model"),
              false};
    try {
      const step::HostAnswer answer = calls[call]();
      failure = answer.status;
      return answer;
    } catch (...) {
      thrown = std::current_exception();
      return {Status(Reason::host_call_failed, "the callable threw an exception"), false};
    }
  };
  SimulateOptions watched = options;
  if (options.progress) {
    watched.progress = [&](const RunProgress& progress) {
      try {
        return options.progress(progress);
      } catch (...) {
        thrown = std::current_exception();
        return false;
      }
    };
  }
  StatusOr<RunResult> result =
      session.host()->simulate_with(description, backing.private_planes, watched, host_call, backing.works);
  if (thrown) std::rethrow_exception(thrown);
  if (!failure.ok()) return failure;
  if (result.ok()) {
    counting::add(counting::of_process().runs);
    counting::add(counting::of_process().compiles, result->report.compiled ? 1 : 0);
  }
  return result;
}

StatusOr<RunResult> Session::simulate(const BoundPlan& model, const SimulateOptions& options) const {
  const ModelStep one = model;
  return eagle::simulate(*this, {&one, 1}, options);
}

}  // namespace eagle
