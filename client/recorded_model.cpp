// Runs of a model that a reverse pass can go back over. For that pass a run is a graph: one loop, whose body
// is the model and whose trips are the steps.
#include <algorithm>
#include <cstring>
#include <utility>

#include "client/describe.h"
#include "client/graph_state.h"
#include "client/recording.h"
#include "eagle/client/reverse.h"
#include "eagle/v1/graph.pb.h"
#include "engine/diff/step_cell.h"
#include "engine/kernel/names.h"
#include "engine/kernel/transform.h"

namespace eagle {
namespace {

using kernel::quote_name;

const ArrayView* array_of(const BoundPlan& plan, std::string_view argument) {
  for (const auto& [name, value] : plan.arguments) {
    if (name == argument) return std::get_if<ArrayView>(&value);
  }
  return nullptr;
}

// The GPU that an array of the model lies on; empty: none does.
std::string device_of(const Session& session, const std::vector<ModelStep>& model) {
  for (const ModelStep& step : model) {
    const auto* const plan = std::get_if<BoundPlan>(&step);
    if (plan == nullptr) continue;
    for (const auto& [name, value] : plan->arguments) {
      const auto* const array = std::get_if<ArrayView>(&value);
      if (std::string device = array == nullptr ? "" : session.device_of(array->data); !device.empty())
        return device;
    }
  }
  return {};
}

// The mask of the model, if a kernel of it has one.
const ArrayView* mask_of(const std::vector<ModelStep>& model) {
  for (const ModelStep& step : model) {
    const auto* const plan = std::get_if<BoundPlan>(&step);
    if (plan == nullptr || !plan->kernel) continue;
    const int mask = plan->kernel->terminated_argument();
    if (mask >= 0) return array_of(*plan, plan->kernel->arguments[static_cast<std::size_t>(mask)].name);
  }
  return nullptr;
}

// The kernel as a step runs it: samples that others finished are skipped, and the step's number is that of
// the trip.
BoundPlan as_trip(const BoundPlan& plan, const ArrayView* mask, const ArrayView& trip) {
  BoundPlan made = plan;
  if (mask != nullptr && made.kernel->terminated_argument() < 0) {
    const std::string name = kernel::free_name(*made.kernel, "finished");
    made.kernel = std::make_shared<const Kernel>(kernel::with_mask(*made.kernel, name));
    made.arguments.emplace_back(name, *mask);
  }
  if (diff::asks_for_step(*made.kernel)) {
    const std::string name = kernel::free_name(*made.kernel, "step");
    made.kernel = std::make_shared<const Kernel>(diff::with_step_cell(*made.kernel, name));
    made.arguments.emplace_back(name, trip);
  }
  return made;
}

}  // namespace

struct RecordedModel::State {
  State(const Session& its_session, std::vector<ModelStep> its_model, std::int64_t its_max_steps)
      : session(its_session), model(std::move(its_model)), max_steps(its_max_steps) {}

  Session session;
  std::vector<ModelStep> model;  // callables are those that record
  std::int64_t max_steps;
  std::optional<Array<std::int64_t>> steps;  // that the run took
  std::optional<Array<std::int64_t>> trip;
  std::shared_ptr<Recording> recording;
  std::unique_ptr<HostGraph> copies;  // into the record; null: there are none
  Backing backing;

  Status make(const std::vector<std::string>& labels);
};

Status RecordedModel::State::make(const std::vector<std::string>& labels) {
  const ArrayView* const mask = mask_of(model);
  const std::string device = device_of(session, model);
  EAGLE_ASSIGN_OR_RETURN(steps, session.zeros<std::int64_t>({1}, device));
  EAGLE_ASSIGN_OR_RETURN(trip, session.zeros<std::int64_t>({1}, device));
  std::vector<std::pair<std::string, NodeKind>> body;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const ModelStep& part = model[i];
    const std::string label = i < labels.size() ? labels[i] : std::string();
    if (const auto* const plan = std::get_if<BoundPlan>(&part)) {
      if (!plan->kernel) return {Reason::bad_value, "a part of the model has no kernel (null)"};
      body.emplace_back(label, as_trip(*plan, mask, *trip));
    } else {
      body.emplace_back(label, std::get<Opaque>(part));
    }
  }
  // As long as the number of trips differs from that of steps.
  SkipGuard guard{{"steps", *steps}, std::pair<std::string, ArrayView>("trip", *trip), false};
  StageSpec spec;
  spec.branches.push_back({{{"run", repeat_while(std::move(body), std::move(guard),
                                                 std::max<std::int64_t>(max_steps, 1), *trip)}}});
  const StagePtr stage = std::make_shared<const StageSpec>(std::move(spec));
  v1::GraphDescription description;
  EAGLE_ASSIGN_OR_RETURN(backing, describe_graph(*session.host(), "run", {&stage, 1}, description));
  v1::GraphDescription into_record;
  EAGLE_ASSIGN_OR_RETURN(recording, Recording::of(session, {&stage, 1}, description, backing, into_record));
  if (into_record.stages_size() > 0) {
    EAGLE_ASSIGN_OR_RETURN(copies, session.host()->build(into_record, backing.private_planes));
  }
  std::size_t call = 0;
  for (ModelStep& part : model) {
    auto* const opaque = std::get_if<Opaque>(&part);
    if (opaque == nullptr) continue;
    opaque->call = backing.calls.at(call++);
    opaque->on_gpu = nullptr;  // what it reads and writes is kept around each call
  }
  return {};
}

StatusOr<RecordedModel> RecordedModel::make(const Session& session, std::vector<ModelStep> model,
                                            std::int64_t max_steps, const std::vector<std::string>& labels) {
  if (max_steps < 0) {
    return Status(Reason::bad_value, "max_steps is " + std::to_string(max_steps) +
                                         "; give the largest number of steps to take, at least 0");
  }
  auto state = std::make_shared<State>(session, std::move(model), max_steps);
  EAGLE_RETURN_IF_ERROR(state->make(labels));
  return RecordedModel(std::move(state));
}

StatusOr<RunResult> RecordedModel::run(const SimulateOptions& options) {
  State& state = *state_;
  const util::Busy::Guard guard(state.recording->in_use);
  if (!guard.entered()) return busy("run");
  state.recording->begin(1);
  if (state.copies) {
    LaunchOptions copying;
    copying.timeout = options.timeout;
    copying.cancel = options.cancel ? options.cancel : std::make_shared<std::atomic<bool>>(false);
    const auto no_calls = [](std::uint32_t) { return Status(Reason::internal, "a record calls nobody"); };
    EAGLE_RETURN_IF_ERROR(state.copies->launch(1, copying, no_calls).status());
  }
  SimulateOptions bounded = options;
  bounded.max_steps = std::min(options.max_steps, state.max_steps);
  EAGLE_ASSIGN_OR_RETURN(RunResult result, simulate(state.session, state.model, bounded));
  const bool whole = result.status == RunStatus::finished || result.status == RunStatus::max_steps ||
                     result.report.ranges.size() <= 1;
  if (whole) {
    (*state.steps)[0] = result.report.steps;
    EAGLE_RETURN_IF_ERROR(state.session.send(*state.steps));
    state.recording->finish({result.report.steps});
  }
  return result;
}

Record RecordedModel::record() const { return Record(state_->recording); }

}  // namespace eagle
