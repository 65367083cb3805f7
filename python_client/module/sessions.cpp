// Session, and running a model in one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/graph.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "errors.h"
#include "interruptible.h"
#include "nodes.h"

namespace eagle::python {
namespace {

using Milliseconds = std::chrono::milliseconds;

Milliseconds milliseconds(double seconds, const char* where) {
  if (!(seconds > 0) || seconds > 1e9) {
    throw StatusError({Reason::bad_value, std::string(where) + ": a timeout of " + std::to_string(seconds) +
                                              " s; give a number of seconds above 0"});
  }
  return Milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

Session connect_to(const std::string& endpoint, double timeout) {
  const ConnectOptions options{milliseconds(timeout, "connect"), {}};
  const nb::gil_scoped_release released;
  return take(connect(endpoint, options));
}

Session open_local(int threads) {
  const nb::gil_scoped_release released;
  return take(local({threads}));
}

SessionInfo info_of(const Session& session) {
  const nb::gil_scoped_release released;
  return take(session.info());
}

void close(const Session& session) {
  const nb::gil_scoped_release released;
  check(session.close());
}

bool owns(const Session& session, nb::handle array) { return session.owns(view_of(array, "array").data); }

// What a user would like to hear of a plan that cannot run; the graph that finds out is thrown away.
void check_plan(const Session& session, const Node& node) {
  const auto& plan = std::get<BoundPlan>(node.kind);
  Status status;
  {
    const nb::gil_scoped_release released;
    Graph probe(session);
    status = probe.add(plan, plan.kernel->name);
  }
  if (status.ok()) return;
  constexpr std::string_view prefix = "add: node 0 ";
  const std::string_view message = status.message();
  const bool known = message.substr(0, prefix.size()) == prefix;
  throw StatusError(
      {status.reason(), "bind: kernel " + std::string(known ? message.substr(prefix.size()) : message)});
}

RunResult simulate(const Session& session, const Node& model, std::int64_t max_steps) {
  SimulateOptions options;
  options.max_steps = max_steps;
  options.cancel = std::make_shared<std::atomic<bool>>(false);
  const auto& plan = std::get<BoundPlan>(model.kind);
  return take(interruptible(*options.cancel, [&] { return session.simulate(plan, options); }));
}

}  // namespace

void bind_sessions(nb::module_& m) {
  nb::class_<run::HostIdentity>(m, "HostIdentity")
      .def_ro("pid", &run::HostIdentity::pid)
      .def_ro("host_name", &run::HostIdentity::host_name);

  nb::class_<SessionInfo>(m, "SessionInfo")
      .def_ro("endpoint", &SessionInfo::endpoint)
      .def_ro("transport", &SessionInfo::transport)
      .def_ro("version", &SessionInfo::version)
      .def_ro("host", &SessionInfo::host)
      .def_ro("threads", &SessionInfo::threads)
      .def_ro("cpu", &SessionInfo::cpu)
      .def_ro("uptime_s", &SessionInfo::uptime_s)
      .def_ro("sessions", &SessionInfo::sessions)
      .def_ro("planes", &SessionInfo::planes)
      .def_ro("plane_bytes", &SessionInfo::plane_bytes)
      .def_ro("plane_budget_bytes", &SessionInfo::plane_budget_bytes)
      .def_ro("graphs", &SessionInfo::graphs)
      .def_ro("launches", &SessionInfo::launches)
      .def_ro("kernels_cached", &SessionInfo::kernels_cached);

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
      .def_ro("kernels", &RunReport::kernels);
  nb::class_<RunResult>(m, "RunResult")
      .def_prop_ro("status",
                   [](const RunResult& result) { return std::string(step::name_of(result.status)); })
      .def_ro("report", &RunResult::report);

  nb::class_<Session>(m, "Session")
      .def("allocate", allocate_array, nb::arg("shape"), nb::arg("dtype"), nb::arg("label"), nb::arg("keep"))
      .def("owns", owns)
      .def("info", info_of)
      .def("close", close)
      .def("check_plan", check_plan)
      .def("simulate", simulate)
      .def_prop_ro("closed", &Session::closed)
      .def_prop_ro("remote", &Session::remote);
  m.def("connect", connect_to);
  m.def("local", open_local);
}

}  // namespace eagle::python
