// Running models: what a run takes, how its callables are called, and what it reports.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
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
  nb::dict calls;  // callables by number
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

RunResult simulate(const Session& session, const std::vector<Node>& nodes, const RunArguments& given) {
  const std::vector<ModelStep> model = model_of(nodes);
  SimulateOptions options = options_of(given);
  const RunningCall running(session);
  options.cancel = running.cancel();
  const bool calls_back = given.calls.size() > 0 || given.progress;
  StatusOr<RunResult> result = [&] {
    if (!calls_back)
      return interruptible(*options.cancel, [&] { return eagle::simulate(session, model, options); });
    InterruptWatch interrupts(*running.cancel());
    InterruptWatch::check();
    Released released;
    const HostCalls frame(given.calls, released, interrupts);
    return eagle::simulate(session, model, options);
  }();
  if (!result.ok() || result->status == RunStatus::cancelled) running.raise_stop();
  return take(std::move(result));
}

nb::list dispatch_rows(const RunReport& report) {
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
      .def_prop_ro("dispatch", dispatch_rows)
      .def_prop_ro("clamped", [](const RunReport& report) { return report.counts.clamped; })
      .def_prop_ro("zero_divisions", [](const RunReport& report) { return report.counts.zero_divisions; })
      .def_prop_ro("dropped", [](const RunReport& report) { return report.counts.dropped; });
  nb::class_<RunResult>(m, "RunResult")
      .def_prop_ro("status",
                   [](const RunResult& result) { return std::string(step::name_of(result.status)); })
      .def_ro("report", &RunResult::report);

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
      .def_rw("calls", &RunArguments::calls);
  m.def("simulate", simulate);
}

}  // namespace eagle::python
