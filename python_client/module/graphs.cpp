// Nodes and Graph.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/counters.h"
#include "eagle/client/graph.h"
#include "engine/graph/schedule.h"
#include "engine/plane/layout.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "launching.h"
#include "nodes.h"

namespace eagle::python {

thread_local HostCalls* HostCalls::current_ = nullptr;

Status HostCalls::run(std::int64_t number) {
  if (current_ == nullptr) return {Reason::internal, "a host node ran outside of a launch"};
  in_python([number](nb::handle calls) {
    nb::borrow<nb::dict>(calls)[nb::int_(number)]();
    return true;
  });
  return {};
}

bool HostCalls::ask(std::int64_t number) {
  return in_python([number](nb::handle calls) {
    const nb::object answer = nb::borrow<nb::dict>(calls)[nb::int_(number)]();
    return nb::cast<bool>(nb::bool_(answer));
  });
}

Status HostCalls::capture(std::int64_t number, std::uint64_t stream) {
  if (current_ == nullptr) return {Reason::internal, "a callable was captured outside of a build"};
  std::string refused;
  in_python([&](nb::handle calls) {
    const nb::object said = nb::borrow<nb::dict>(calls)[nb::int_(number)].attr("capture")(stream);
    if (!said.is_none()) refused = nb::cast<std::string>(said);
    return true;
  });
  return refused.empty() ? Status() : Status(Reason::graph_state, refused);
}

std::uint64_t HostCalls::graph(std::int64_t number) {
  if (current_ == nullptr) return 0;
  return in_python([number](nb::handle calls) {
    return nb::cast<std::uint64_t>(nb::borrow<nb::dict>(calls)[nb::int_(number)].attr("graph")());
  });
}

void HostCalls::over(std::int64_t number) {
  if (current_ == nullptr) return;
  in_python([number](nb::handle calls) {
    nb::borrow<nb::dict>(calls)[nb::int_(number)].attr("over")();
    return true;
  });
}

namespace {

using NamedNodes = std::vector<std::pair<std::string, Node>>;

Argument argument_of(nb::handle value, const std::string& where) {
  if (PyLong_Check(value.ptr())) return nb::cast<std::int64_t>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  return view_of(value, where);
}

Node plan_node(const std::shared_ptr<Kernel>& kernel, const nb::dict& arguments) {
  BoundPlan plan{kernel, {}};
  for (const auto& [name, value] : arguments) {
    const auto key = nb::cast<std::string>(name);
    plan.arguments.emplace_back(
        key, argument_of(value, "bind: kernel '" + kernel->name + "': argument '" + key + "'"));
  }
  return {std::move(plan)};
}

NamedArrays named_arrays(const nb::dict& arrays, const std::string& where) {
  NamedArrays named;
  for (const auto& [name, array] : arrays) {
    const auto key = nb::cast<std::string>(name);
    named.emplace_back(key, view_of(array, where + " '" + key + "'"));
  }
  return named;
}

// What it is on a GPU: "capture", "child", the handle of a stream, or nothing.
Node host_node(std::int64_t number, const nb::dict& reads, const nb::dict& writes, std::string_view tier,
               nb::handle on_gpu, const std::string& name) {
  HostTier run_as = HostTier::captured;
  if (tier == "stream") run_as = HostTier::stream;
  if (tier == "eager") run_as = HostTier::eager;
  if (tier == "child") run_as = HostTier::child;
  if (tier == "recorded") run_as = HostTier::recorded;
  Opaque node = opaque([number] { return HostCalls::run(number); },
                       {named_arrays(reads, "opaque: read"), named_arrays(writes, "opaque: write")}, run_as);
  if (on_gpu.is_none()) return {std::move(node)};
  GpuWork work;
  work.name = name;
  if (PyLong_Check(on_gpu.ptr())) {
    work.stream = nb::cast<std::uint64_t>(on_gpu);
    work.over = [number] { HostCalls::over(number); };
  } else if (nb::cast<std::string>(on_gpu) == "child") {
    work.graph = [number] { return HostCalls::graph(number); };
  } else {
    work.enqueue = [number](std::uint64_t stream) { return HostCalls::capture(number, stream); };
  }
  node.on_gpu = std::make_shared<const GpuWork>(std::move(work));
  return {std::move(node)};
}

Node reduce_node(nb::handle x, nb::handle out, std::string_view op, bool compensated) {
  for (const ReduceOp known : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::all, ReduceOp::any}) {
    if (kernel::name_of(known) != op) continue;
    return {reduce(view_of(x, "reduce: x"), view_of(out, "reduce: out"), {known, compensated})};
  }
  throw StatusError({Reason::bad_value, "reduce: op: expected 'sum', 'max', 'min', 'all' or 'any', found '" +
                                            std::string(op) + "'"});
}

std::vector<std::pair<std::string, NodeKind>> kinds_of(const NamedNodes& nodes) {
  std::vector<std::pair<std::string, NodeKind>> kinds;
  for (const auto& [name, node] : nodes) kinds.emplace_back(name, node.kind);
  return kinds;
}

Node conditional_node(nb::handle count, std::optional<nb::object> baseline, bool negated,
                      const NamedNodes& body, std::optional<std::int64_t> max_iterations,
                      std::optional<nb::object> iterations) {
  SkipGuard guard{{"guard", view_of(count, "SkipGuard: count")}, std::nullopt, negated};
  if (baseline) guard.baseline.emplace("baseline", view_of(*baseline, "SkipGuard: baseline"));
  std::optional<ArrayView> counter;
  if (iterations) counter = view_of(*iterations, "repeat_while: iteration_index");
  if (max_iterations) {
    return {repeat_while(kinds_of(body), std::move(guard), *max_iterations, std::move(counter))};
  }
  return {skippable(kinds_of(body), std::move(guard))};
}

// The number of samples that the array holds for an argument of this kernel.
std::int64_t samples_of(const Kernel& kernel, std::string_view name, nb::handle array) {
  const std::string where = "bind: kernel '" + kernel.name + "': argument '" + std::string(name) + "'";
  for (const kernel::Argument& argument : kernel.arguments) {
    if (argument.name != name) continue;
    const ArrayView view = view_of(array, where);
    const auto within_item = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view.data) % 64);
    const plane::View seen{0, within_item, view.dtype, view.item_bytes, view.shape, view.strides};
    return take(plane::layout_of(seen, argument.type, where)).samples;
  }
  throw StatusError({Reason::bad_binding, where + ": there is no such argument"});
}

Node copy_node(nb::handle source, nb::handle destination, std::optional<nb::object> index) {
  std::optional<ArrayView> row;
  if (index) row = view_of(*index, "copy: index");
  return {copy(view_of(source, "copy: src"), view_of(destination, "copy: dst"), std::move(row))};
}

std::vector<BranchSpec> branches_of(const std::vector<NamedNodes>& branches) {
  std::vector<BranchSpec> specs;
  for (const NamedNodes& nodes : branches) specs.push_back({kinds_of(nodes)});
  return specs;
}

// ---- Graph. Every call gives up the GIL: each takes the graph's mutex, and a thread that has that may need
// the GIL.

template <typename Call>
auto without_gil(const Call& call) {
  const Released released;
  return call();
}

void add_group(Graph& graph, const std::vector<NamedNodes>& branches) {
  std::vector<BranchSpec> specs = branches_of(branches);
  const Released released;
  check(graph.add_group(std::move(specs)));
}

// What it reports stays with the graph, for who asks.
void launch(Graph& graph, std::int64_t n, const nb::dict& calls, double timeout, const CancelFlag* cancel) {
  check(with_calls(graph.session(), "launch", calls, timeout, cancel != nullptr ? *cancel : CancelFlag(),
                   graph.computes_long(n),
                   [&](const LaunchOptions& options) { return graph.replay(n, options); }));
}

// Without names and defaults of arguments: nanobind calls such a function in half the time.
void replay(Graph& graph, std::int64_t n, const nb::dict& calls) { launch(graph, n, calls, 0, nullptr); }

void enqueue(Graph& graph, std::int64_t n, const nb::dict& calls) {
  check(with_calls(graph.session(), "enqueue", calls, 0, {}, graph.computes_long(n),
                   [&](const LaunchOptions& options) { return graph.enqueue(n, options); }));
}

void synchronize(Graph& graph, const nb::dict& calls, double timeout) {
  check(with_calls(graph.session(), "synchronize", calls, timeout, {}, false,
                   [&](const LaunchOptions& options) { return graph.synchronize(options).status(); }));
}

// ---- changing a built graph: rows of (label, index or None, name, value)

using NumberRow = std::tuple<std::string, std::optional<std::uint32_t>, std::string, nb::object>;

void update(Graph& graph, const std::vector<NumberRow>& rows) {
  std::vector<ParamUpdate> updates;
  for (const auto& [node, leaf, name, value] : rows) {
    const graph::Number number = PyLong_Check(value.ptr()) ? graph::Number(nb::cast<std::int64_t>(value))
                                                           : graph::Number(nb::cast<double>(value));
    updates.push_back({{node, leaf, name}, number});
  }
  const Released released;
  check(graph.update(updates));
}

void rebind(Graph& graph, const std::vector<NumberRow>& rows) {
  std::vector<PlaneUpdate> updates;
  for (const auto& [node, leaf, name, array] : rows) {
    updates.push_back({{node, leaf, name}, view_of(array, "rebind: '" + name + "'")});
  }
  const Released released;
  check(graph.rebind(updates));
}

nb::list scratch_rows(const Graph& graph) {
  const graph::ScratchLayout layout = without_gil([&] { return graph.scratch_layout(); });
  nb::list rows;
  for (const graph::ScratchUse& use : layout.uses) {
    rows.append(nb::make_tuple(use.name, use.bytes, use.in_memory, use.offset));
  }
  return rows;
}

// (fusion, groups, left out, bytes); a group is (functions, samples, block, threads, bytes), a function a
// tuple of (index, label).
nb::tuple execution_rows(const Graph& graph) {
  const Execution execution = without_gil([&] { return graph.execution(); });
  nb::list groups;
  for (const ExecutedGroup& group : execution.groups) {
    nb::list functions;
    for (const std::vector<ExecutedNode>& function : group.functions) {
      nb::list nodes;
      for (const ExecutedNode& node : function) nodes.append(nb::make_tuple(node.index, node.label));
      functions.append(nb::tuple(nodes));
    }
    groups.append(
        nb::make_tuple(nb::tuple(functions), group.samples, group.block, group.threads, group.bytes));
  }
  return nb::make_tuple(std::string(run::name_of(execution.fusion)), groups, execution.left_out,
                        execution.bytes);
}

nb::dict counter_values() {
  const Counters now = counters();
  nb::dict values;
  values["graph_builds"] = now.graph_builds;
  values["captures"] = now.captures;
  values["binds"] = now.binds;
  values["rebinds"] = now.rebinds;
  values["updates"] = now.updates;
  values["launches"] = now.launches;
  values["runs"] = now.runs;
  values["compiles"] = now.compiles;
  return values;
}

nb::list dispatch_of_graph(const Graph& graph) {
  const std::vector<Graph::DispatchRow> found = take(without_gil([&] { return graph.dispatch(); }));
  nb::list rows;
  for (const Graph::DispatchRow& row : found)
    rows.append(nb::make_tuple(row.node, row.group, std::string(kernel::name_of(row.policy))));
  return rows;
}

std::string meaning_named(std::string_view kind) {
  for (const Hazard hazard : {Hazard::raw, Hazard::war, Hazard::waw}) {
    if (name_of(hazard) == kind) return std::string(meaning_of(hazard));
  }
  throw StatusError({Reason::bad_value, "an edge is RAW, WAR or WAW, not '" + std::string(kind) + "'"});
}

}  // namespace

void bind_graphs(nb::module_& m) {
  m.attr("BRANCH_TASKS_MAX_SAMPLES") = graph::branch_tasks_max_samples;
  m.def("meaning_of", meaning_named);
  m.def("samples_of", samples_of, nb::arg("kernel"), nb::arg("name"), nb::arg("array").none());

  nb::class_<Node>(m, "Node");
  m.def("plan_node", plan_node);
  m.def("host_node", host_node, nb::arg("number"), nb::arg("reads"), nb::arg("writes"), nb::arg("tier"),
        nb::arg("on_gpu").none() = nb::none(), nb::arg("name") = "");
  m.def("reduce_node", reduce_node);
  m.def("copy_node", copy_node, nb::arg("src").none(), nb::arg("dst").none(),
        nb::arg("index").none() = nb::none());
  m.def("group_node",
        [](const std::vector<NamedNodes>& branches) { return Node{Group{branches_of(branches)}}; });
  nb::class_<ScratchPlane>(m, "ScratchPlane").def_ro("name", &ScratchPlane::name);
  m.def("scratch_plane", [](std::string name, std::uint64_t bytes) {
    auto plane = std::make_shared<ScratchPlane>();
    plane->name = std::move(name);
    plane->bytes = bytes;
    return plane;
  });
  m.def("counters", counter_values);
  m.def("conditional_node", conditional_node, nb::arg("count"), nb::arg("baseline").none(),
        nb::arg("negated"), nb::arg("body"), nb::arg("max_iterations").none(),
        nb::arg("iterations").none() = nb::none());

  nb::class_<LaunchReport>(m, "LaunchReport")
      .def_ro("host", &LaunchReport::host)
      .def_ro("launches", &LaunchReport::launches)
      .def_ro("threads", &LaunchReport::threads)
      .def_ro("wall_s", &LaunchReport::wall_s)
      .def_ro("iterations", &LaunchReport::iterations)
      .def_prop_ro("clamped", [](const LaunchReport& report) { return report.counts.clamped; })
      .def_prop_ro("zero_divisions", [](const LaunchReport& report) { return report.counts.zero_divisions; })
      .def_prop_ro("dropped", [](const LaunchReport& report) { return report.counts.dropped; });

  nb::class_<CancelFlag>(m, "CancelFlag").def(nb::init<>()).def("set", [](const CancelFlag& self) {
    self.flag->store(true);
  });

  using NoGil = nb::call_guard<Released>;
  nb::class_<Graph>(m, "Graph")
      .def(
          "__init__",
          [](Graph* self, const Session& session, std::string name, bool derivatives) {
            new (self) Graph(session, {std::move(name), false, derivatives});
          },
          nb::arg("session"), nb::arg("name"), nb::arg("derivatives") = false)
      .def(
          "add",
          [](Graph& self, const Node& node, const std::string& name) {
            check(self.add(std::get<BoundPlan>(node.kind), name));
          },
          NoGil())
      .def(
          "add_node",
          [](Graph& self, const Node& node, const std::string& name) {
            check(self.add_node(node.kind, name));
          },
          NoGil())
      .def("add_group", add_group)
      .def(
          "build",
          [](Graph& self, const std::vector<std::pair<std::string, std::string>>& dispatch) {
            check(self.build(policy_choices("build", dispatch)));
          },
          nb::arg("dispatch") = std::vector<std::pair<std::string, std::string>>(), NoGil())
      .def("build_with",
           [](Graph& self, const std::vector<std::pair<std::string, std::string>>& dispatch,
              const nb::dict& calls) {
             const auto build = [&](const LaunchOptions& /*options*/) {
               return self.build(policy_choices("build", dispatch));
             };
             check(with_calls(self.session(), "build", calls, 0, {}, true, build));
           })
      .def("dispatch", dispatch_of_graph)
      .def("launch", launch, nb::arg("n"), nb::arg("calls"), nb::arg("timeout") = 0.0,
           nb::arg("cancel") = nb::none())
      .def("replay", replay)
      .def("report", &Graph::report, NoGil())
      .def("enqueue", enqueue)
      .def("synchronize", synchronize, nb::arg("calls"), nb::arg("timeout") = 0.0)
      .def("cancel", &Graph::cancel, NoGil())
      .def("set_recorded", &Graph::set_recorded, NoGil())
      .def("update", update)
      .def("rebind", rebind)
      .def("scratch", scratch_rows)
      .def("execution", execution_rows)
      .def("node_labels", &Graph::node_labels, NoGil())
      .def("schedule", &Graph::schedule, NoGil())
      .def("backend", &Graph::backend)
      .def("built", &Graph::built, NoGil());
}

}  // namespace eagle::python
