#include "eagle/client/kept_run.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "client/describe.h"
#include "client/host.h"
#include "eagle/v1/run.pb.h"
#include "engine/step/result_message.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;

StatusOr<HostRuns*> runs_of(const Session& session) {
  if (HostRuns* runs = session.host()->runs(); runs != nullptr) return runs;
  return Status(Reason::internal, session.name() + " keeps no runs");
}

StatusOr<KeptRunState> state_of(const v1::KeptRun& said) {
  KeptRunState state{said.run(),
                     said.name(),
                     said.ended(),
                     {said.progress().steps(), said.progress().finished()},
                     said.max_steps(),
                     said.lease_s(),
                     {},
                     said.mask(),
                     std::nullopt,
                     {}};
  for (const v1::KeptPlane& plane : said.planes())
    state.planes.push_back({plane.name(),
                            static_cast<DType>(plane.dtype()),
                            {plane.shape().begin(), plane.shape().end()},
                            plane.device()});
  if (!state.ended) return state;
  if (said.has_result()) {
    EAGLE_ASSIGN_OR_RETURN(state.result, step::result_of(said.result()));
  } else {
    state.error = Status(reason_named(said.reason()), said.error());
  }
  return state;
}

}  // namespace

StatusOr<KeptRun> submit(const Session& session, std::span<const ModelStep> model,
                         const SimulateOptions& options, const SubmitOptions& kept) {
  EAGLE_ASSIGN_OR_RETURN(HostRuns * runs, runs_of(session));
  v1::SubmitRequest request;
  std::vector<std::function<step::HostAnswer()>> calls;
  EAGLE_ASSIGN_OR_RETURN(Backing backing,
                         describe_run(*session.host(), model, options, *request.mutable_run(), calls,
                                      kept.planes, request.mutable_planes()));
  if (!calls.empty()) {
    return Status(
        Reason::graph_state,
        "submit: a submitted run outlives its client, who cannot be called then; step it with simulate");
  }
  request.set_name(kept.name);
  request.set_lease_s(kept.lease_s);
  request.set_mask(kept.mask);
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id,
                         runs->submit(request, backing.private_planes, std::move(backing.keep_alive)));
  return KeptRun(session, id);
}

StatusOr<std::vector<KeptRunState>> kept_runs(const Session& session) {
  EAGLE_ASSIGN_OR_RETURN(HostRuns * runs, runs_of(session));
  v1::ListRunsReply reply;
  EAGLE_RETURN_IF_ERROR(runs->list(reply));
  std::vector<KeptRunState> states;
  for (const v1::KeptRun& run : reply.runs()) {
    EAGLE_ASSIGN_OR_RETURN(KeptRunState state, state_of(run));
    states.push_back(std::move(state));
  }
  return states;
}

StatusOr<KeptRunState> KeptRun::state() const {
  EAGLE_ASSIGN_OR_RETURN(HostRuns * runs, runs_of(session_));
  v1::KeptRun reply;
  EAGLE_RETURN_IF_ERROR(runs->get(id_, reply));
  return state_of(reply);
}

StatusOr<RunResult> KeptRun::wait(const LaunchOptions& options) const {
  // The time between two looks grows with the wait: a short run is not waited for long, nor a long one asked
  // often.
  std::chrono::milliseconds pause{1};
  const Clock::time_point start = Clock::now();
  while (true) {
    EAGLE_ASSIGN_OR_RETURN(const KeptRunState now, state());
    if (now.ended && now.result) return *now.result;
    if (now.ended) return now.error;
    if (options.cancel && options.cancel->load())
      return Status(Reason::cancelled, "result: the wait was given up; the run goes on");
    if (options.timeout && Clock::now() - start >= *options.timeout)
      return Status(Reason::deadline, "result: the run has not ended within the timeout; it goes on");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

Status KeptRun::fetch(const NamedArrays& into) const {
  EAGLE_ASSIGN_OR_RETURN(HostRuns * runs, runs_of(session_));
  v1::FetchRunRequest request;
  EAGLE_ASSIGN_OR_RETURN(const Backing backing, describe_arrays(*session_.host(), into, request));
  request.set_run(id_);
  return runs->fetch(request, backing.private_planes);
}

Status KeptRun::cancel() const {
  EAGLE_ASSIGN_OR_RETURN(HostRuns * runs, runs_of(session_));
  return runs->cancel(id_);
}

}  // namespace eagle
