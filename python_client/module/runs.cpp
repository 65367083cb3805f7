// Running models: what a run takes, how its callables are called, and what it reports.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/kept_run.h"
#include "eagle/client/reverse.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "eagle/client/shards.h"
#include "eagle/client/stepping.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "nodes.h"

namespace eagle::python {

std::vector<kernel::PolicyChoice> policy_choices(
    const std::string& where, const std::vector<std::pair<std::string, std::string>>& named) {
  using kernel::DispatchPolicy;
  std::vector<kernel::PolicyChoice> choices;
  for (const auto& [group, name] : named) {
    kernel::PolicyChoice choice{group, DispatchPolicy{}};
    for (const DispatchPolicy policy : {DispatchPolicy::automatic, DispatchPolicy::switch_,
                                        DispatchPolicy::segmented, DispatchPolicy::predicated}) {
      if (kernel::name_of(policy) == name) choice.policy = policy;
    }
    if (choice.policy == DispatchPolicy{}) {
      throw StatusError({Reason::bad_value, where + ": dispatch: there is no policy '" + name +
                                                "'; expected 'auto', 'switch', 'segmented' or 'predicated'"});
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

namespace {

// The arguments of `simulate`, as Python gives them.
struct RunArguments {
  std::int64_t max_steps = 0;
  std::int64_t steps = 0;
  double timeout = 0;  // seconds; 0: none
  std::vector<std::pair<std::string, std::string>> dispatch;
  std::vector<std::pair<std::string, nb::object>> record;
  std::int64_t every = 1;
  bool initial = true;
  std::optional<nb::object> stop_steps;
  std::vector<std::pair<std::int64_t, std::int64_t>> between;  // number of a callable, steps
  std::optional<nb::object> progress;
  std::optional<std::array<std::int64_t, 3>> shard;  // base, count, n
  nb::dict calls;                                    // callables by number
};

SimulateOptions options_of(const RunArguments& given) {
  SimulateOptions options;
  options.max_steps = given.max_steps;
  options.steps = given.steps;
  if (given.timeout > 0)
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(given.timeout * 1000)));
  options.dispatch = policy_choices("simulate", given.dispatch);
  for (const auto& [name, rows] : given.record)
    options.record.planes.emplace_back(name, view_of(rows, "simulate: record '" + name + "'"));
  if (given.shard) options.shard = Shard{(*given.shard)[0], (*given.shard)[1], (*given.shard)[2]};
  options.record.every = given.every;
  options.record.initial = given.initial;
  if (given.stop_steps) options.stop_steps = view_of(*given.stop_steps, "simulate: stop_step");
  for (const auto& [number, every] : given.between)
    options.between.push_back({[n = number] { return step::HostAnswer{{}, HostCalls::ask(n)}; }, every});
  if (given.progress) {
    options.progress = [callback = nb::handle(*given.progress)](const RunProgress& progress) {
      return HostCalls::in_python(
          [&](nb::handle) { return callback(progress.steps, progress.finished).ptr() != Py_False; });
    };
  }
  return options;
}

std::vector<ModelStep> model_of(const std::vector<Node>& nodes) {
  std::vector<ModelStep> model;
  for (const Node& node : nodes) {
    if (const auto* plan = std::get_if<BoundPlan>(&node.kind)) {
      model.emplace_back(*plan);
    } else if (const auto* host = std::get_if<Opaque>(&node.kind)) {
      model.emplace_back(*host);
    } else {
      throw StatusError({Reason::wrong_type,
                         "a step holds kernels and opaque nodes; a conditional cannot be one of "
                         "its parts: write it in the kernel, or in the callable"});
    }
  }
  return model;
}

// What a daemon computes is waited for in the main thread itself, which looks for signals meanwhile.
template <typename Run>
auto waited_for(SimulateOptions& options, const Run& run) {
  std::optional<nb::python_error> raised;
  auto result = [&] {
    Released released;
    options.waiting = [&, begun = false]() mutable {
      if (std::exchange(begun, true)) heed_signals(released, *options.cancel, raised);
    };
    return run(options);
  }();
  if (raised) throw *std::move(raised);
  return result;
}

// `run` is given the options, and calls the callables of the model in this thread.
template <typename Run>
RunResult run_with(const Session& session, const RunArguments& given, const Run& run) {
  SimulateOptions options = options_of(given);
  const RunningCall running(session);
  options.cancel = running.cancel();
  const bool calls_back = given.calls.size() > 0 || given.progress;
  StatusOr<RunResult> result = [&] {
    if (!calls_back && session.remote() && in_main_thread()) return waited_for(options, run);
    if (!calls_back) return interruptible(*options.cancel, [&] { return run(options); });
    InterruptWatch interrupts(*running.cancel());
    interrupts.begin();
    InterruptWatch::check();
    Released released;
    const HostCalls frame(given.calls, released, interrupts);
    return run(options);
  }();
  if (!result.ok() || result->status == RunStatus::cancelled) running.raise_stop();
  return take(std::move(result));
}

RunResult simulate(const Session& session, const std::vector<Node>& nodes, const RunArguments& given) {
  const std::vector<ModelStep> model = model_of(nodes);
  return run_with(session, given,
                  [&](const SimulateOptions& options) { return eagle::simulate(session, model, options); });
}

// A model whose runs are recorded, with its session.
struct RecordedRuns {
  Session session;
  RecordedModel model;

  RunResult run(const RunArguments& given) {
    return run_with(session, given, [&](const SimulateOptions& options) { return model.run(options); });
  }
};

RecordedRuns recorded_model(const Session& session, const std::vector<Node>& nodes,
                            const std::vector<std::string>& labels, std::int64_t max_steps) {
  std::vector<ModelStep> model = model_of(nodes);
  const Released released;
  return {session, take(RecordedModel::make(session, std::move(model), max_steps, labels))};
}

// ---- runs that are kept

NamedArrays arrays_of(const std::vector<std::pair<std::string, nb::object>>& named,
                      const std::string& where) {
  NamedArrays arrays;
  for (const auto& [name, array] : named)
    arrays.emplace_back(name, view_of(array, where + " '" + name + "'"));
  return arrays;
}

std::uint64_t submit_run(const Session& session, const std::vector<Node>& nodes, const RunArguments& given,
                         double lease, const std::string& name,
                         const std::vector<std::pair<std::string, nb::object>>& planes,
                         const std::string& mask) {
  const std::vector<ModelStep> model = model_of(nodes);
  const SimulateOptions options = options_of(given);
  const SubmitOptions kept{lease, name, arrays_of(planes, "submit:"), mask};
  const Released released;
  return take(submit(session, model, options, kept)).id();
}

nb::dict state_dict(const KeptRunState& state) {
  nb::list planes;
  for (const KeptPlane& plane : state.planes) {
    nb::list shape;
    for (const std::int64_t extent : plane.shape) shape.append(extent);
    planes.append(
        nb::make_tuple(plane.name, std::string(plane::name_of(plane.dtype)), nb::tuple(shape), plane.device));
  }
  nb::dict row;
  row["id"] = state.id;
  row["name"] = state.name;
  row["ended"] = state.ended;
  row["steps"] = state.progress.steps;
  row["finished"] = state.progress.finished;
  row["max_steps"] = state.max_steps;
  row["lease"] = state.lease_s;
  row["planes"] = planes;
  row["mask"] = state.mask;
  return row;
}

nb::dict run_state(const Session& session, std::uint64_t id) {
  const KeptRunState state = [&] {
    const Released released;
    return take(KeptRun(session, id).state());
  }();
  return state_dict(state);
}

nb::list run_states(const Session& session) {
  const std::vector<KeptRunState> states = [&] {
    const Released released;
    return take(kept_runs(session));
  }();
  nb::list rows;
  for (const KeptRunState& state : states) rows.append(state_dict(state));
  return rows;
}

RunResult wait_run(const Session& session, std::uint64_t id, double timeout) {
  const RunningCall running(session);
  LaunchOptions options;
  options.cancel = running.cancel();
  if (timeout > 0)
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(timeout * 1000)));
  StatusOr<RunResult> result =
      interruptible(*options.cancel, [&] { return KeptRun(session, id).wait(options); });
  if (!result.ok()) running.raise_stop();
  return take(std::move(result));
}

void fetch_run(const Session& session, std::uint64_t id,
               const std::vector<std::pair<std::string, nb::object>>& into) {
  const NamedArrays arrays = arrays_of(into, "result:");
  const Released released;
  check(KeptRun(session, id).fetch(arrays));
}

void cancel_run(const Session& session, std::uint64_t id) {
  const Released released;
  check(KeptRun(session, id).cancel());
}

nb::list dispatch_of_run(const RunReport& report) {
  nb::list rows;
  for (const step::GroupReport& group : report.dispatch) {
    const std::string_view policy = kernel::name_of(group.policy);
    nb::list counts;
    for (const std::int64_t count : group.counts) counts.append(count);
    rows.append(nb::make_tuple(group.group, nb::str(policy.data(), policy.size()), nb::tuple(counts),
                               group.gain, group.measured_gain));
  }
  return rows;
}

// ---- shards

nb::bytes bytes_of(const RunResult& result) {
  const std::string bytes = to_bytes(result);
  return nb::bytes(bytes.data(), bytes.size());
}

RunResult combined(const std::vector<nb::bytes>& shards) {
  std::vector<RunResult> results;
  for (const nb::bytes& bytes : shards)
    results.push_back(take(result_from_bytes({bytes.c_str(), bytes.size()})));
  return take(combine_shards(results));
}

// What the plane of reduction `index` of a combined result holds, as bytes; none where no step was taken.
nb::object reduced(const RunResult& result, std::size_t index) {
  const ShardReduction& reduction = result.report.reductions.at(index);
  if (reduction.nodes.empty()) return nb::none();
  std::byte value[8] = {};
  reduction.store(value);
  return nb::bytes(value, static_cast<std::size_t>(kernel::bytes_of(reduction.scalar)));
}

nb::list shard_rows(std::int64_t n, std::int64_t parts) {
  nb::list rows;
  for (const Shard& shard : shards_of(n, parts))
    rows.append(nb::make_tuple(shard.base, shard.count, shard.of));
  return rows;
}

nb::list range_rows(const RunReport& report) {
  nb::list rows;
  for (const step::StepRange& range : report.ranges) rows.append(nb::make_tuple(range.end, range.steps));
  return rows;
}

nb::list reduction_rows(const RunReport& report) {
  nb::list rows;
  for (const ShardReduction& reduction : report.reductions)
    rows.append(nb::make_tuple(reduction.launch, reduction.argument));
  return rows;
}

}  // namespace

void bind_runs(nb::module_& m) {
  nb::class_<RunReport>(m, "RunReport")
      .def_ro("host", &RunReport::host)
      .def_ro("samples", &RunReport::samples)
      .def_ro("finished", &RunReport::finished)
      .def_ro("launches", &RunReport::launches)
      .def_ro("steps", &RunReport::steps)
      .def_ro("threads", &RunReport::threads)
      .def_ro("build_s", &RunReport::build_s)
      .def_ro("wall_s", &RunReport::wall_s)
      .def_ro("compiled", &RunReport::compiled)
      .def_ro("kernels", &RunReport::kernels)
      .def_ro("mode", &RunReport::mode)
      .def_ro("fused_steps", &RunReport::fused_steps)
      .def_ro("records", &RunReport::records)
      .def_ro("compactions", &RunReport::compactions)
      .def_ro("backend", &RunReport::backend)
      .def_ro("schedule", &RunReport::schedule)
      .def_prop_ro("dispatch", dispatch_of_run)
      .def_prop_ro("ranges", range_rows)
      .def_prop_ro("reductions", reduction_rows)
      .def_prop_ro("clamped", [](const RunReport& report) { return report.counts.clamped; })
      .def_prop_ro("zero_divisions", [](const RunReport& report) { return report.counts.zero_divisions; })
      .def_prop_ro("dropped", [](const RunReport& report) { return report.counts.dropped; });
  nb::class_<RunResult>(m, "RunResult")
      .def_prop_ro("status",
                   [](const RunResult& result) { return std::string(step::name_of(result.status)); })
      .def_ro("report", &RunResult::report)
      .def("to_bytes", bytes_of)
      .def("reduced", reduced);

  nb::class_<RunArguments>(m, "RunArguments")
      .def(nb::init<>())
      .def_rw("max_steps", &RunArguments::max_steps)
      .def_rw("steps", &RunArguments::steps)
      .def_rw("timeout", &RunArguments::timeout)
      .def_rw("dispatch", &RunArguments::dispatch)
      .def_rw("record", &RunArguments::record)
      .def_rw("every", &RunArguments::every)
      .def_rw("initial", &RunArguments::initial)
      .def_rw("stop_steps", &RunArguments::stop_steps)
      .def_rw("between", &RunArguments::between)
      .def_rw("progress", &RunArguments::progress)
      .def_rw("shard", &RunArguments::shard)
      .def_rw("calls", &RunArguments::calls);
  m.def("simulate", simulate);
  nb::class_<RecordedRuns>(m, "RecordedModel")
      .def("run", &RecordedRuns::run)
      .def("record", [](const RecordedRuns& self) { return self.model.record(); });
  m.def("recorded_model", recorded_model);
  m.def("submit_run", submit_run);
  m.def("run_state", run_state);
  m.def("run_states", run_states);
  m.def("wait_run", wait_run);
  m.def("fetch_run", fetch_run);
  m.def("cancel_run", cancel_run);
  m.def("combine_shards", combined);
  m.def("shards", shard_rows);
}

}  // namespace eagle::python
