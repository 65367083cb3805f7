// Nodes and Graph.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/graph.h"
#include "engine/graph/schedule.h"
#include "engine/plane/layout.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "nodes.h"

namespace eagle::python {

thread_local HostCalls* HostCalls::current_ = nullptr;

Status HostCalls::run(std::int64_t number) {
  if (current_ == nullptr) return {Reason::internal, "a host node ran outside of a launch"};
  HostCalls& frame = *current_;
  frame.interrupts_.pause();
  const Released::Interval gil(frame.released_);
  nb::borrow<nb::dict>(frame.calls_)[nb::int_(number)]();
  frame.interrupts_.resume();
  InterruptWatch::check();
  return {};
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

Node host_node(std::int64_t number, const nb::dict& reads, const nb::dict& writes, std::string_view tier) {
  const HostTier run_as = tier == "stream"  ? HostTier::stream
                          : tier == "eager" ? HostTier::eager
                                            : HostTier::captured;
  return {opaque([number] { return HostCalls::run(number); },
                 {named_arrays(reads, "opaque: read"), named_arrays(writes, "opaque: write")}, run_as)};
}

std::vector<std::pair<std::string, NodeKind>> kinds_of(const NamedNodes& nodes) {
  std::vector<std::pair<std::string, NodeKind>> kinds;
  for (const auto& [name, node] : nodes) kinds.emplace_back(name, node.kind);
  return kinds;
}

Node conditional_node(nb::handle count, std::optional<nb::object> baseline, bool negated,
                      const NamedNodes& body, std::optional<std::int64_t> max_iterations) {
  SkipGuard guard{{"guard", view_of(count, "SkipGuard: count")}, std::nullopt, negated};
  if (baseline) guard.baseline.emplace("baseline", view_of(*baseline, "SkipGuard: baseline"));
  if (max_iterations) return {repeat_while(kinds_of(body), std::move(guard), *max_iterations)};
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

// ---- Graph. Every call that may wait for another thread gives up the GIL: that thread may need it.

void add_group(Graph& graph, const std::vector<NamedNodes>& branches) {
  std::vector<BranchSpec> specs;
  for (const NamedNodes& nodes : branches) specs.push_back({kinds_of(nodes)});
  const Released released;
  check(graph.add_group(std::move(specs)));
}

Status stopped_in_last_node(const Session& session) {
  if (session.closed())
    return {Reason::session_closed, "launch: " + session.name() + " is closed; open another session"};
  return {Reason::cancelled, "launch: the launch was cancelled; its last node may have been left part way"};
}

LaunchReport launch(Graph& graph, std::int64_t n, const nb::dict& calls) {
  const RunningCall running(graph.session());
  StatusOr<LaunchReport> report = [&] {
    InterruptWatch interrupts(*running.cancel());
    InterruptWatch::check();
    Released released;
    const HostCalls frame(calls, released, interrupts);
    return graph.launch(n, {std::nullopt, running.cancel()});
  }();
  const bool stopped = running.cancel()->load() || graph.session().closed();
  if (stopped || !report.ok()) running.raise_stop();
  // A kernel that loops leaves when it is stopped, and as the last node it may have left part way.
  if (stopped && report.ok()) throw StatusError(stopped_in_last_node(graph.session()));
  return take(std::move(report));
}

nb::list edge_rows(const Graph& graph) {
  std::vector<Edge> edges;
  {
    const Released released;
    edges = take(graph.edges());
  }
  nb::list rows;
  for (const Edge& edge : edges) {
    const std::string_view kind = name_of(edge.kind);
    rows.append(nb::make_tuple(edge.source, edge.destination, edge.plane, nb::str(kind.data(), kind.size())));
  }
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
  m.def("host_node", host_node);
  m.def("conditional_node", conditional_node, nb::arg("count"), nb::arg("baseline").none(),
        nb::arg("negated"), nb::arg("body"), nb::arg("max_iterations").none());

  nb::class_<LaunchReport>(m, "LaunchReport")
      .def_ro("host", &LaunchReport::host)
      .def_ro("launches", &LaunchReport::launches)
      .def_ro("threads", &LaunchReport::threads)
      .def_ro("wall_s", &LaunchReport::wall_s)
      .def_ro("iterations", &LaunchReport::iterations)
      .def_prop_ro("clamped", [](const LaunchReport& report) { return report.counts.clamped; })
      .def_prop_ro("zero_divisions", [](const LaunchReport& report) { return report.counts.zero_divisions; });

  using NoGil = nb::call_guard<Released>;
  nb::class_<Graph>(m, "Graph")
      .def("__init__", [](Graph* self, const Session& session,
                          std::string name) { new (self) Graph(session, {std::move(name)}); })
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
          "build", [](Graph& self) { check(self.build()); }, NoGil())
      .def("launch", launch)
      .def("edges", edge_rows)
      .def("node_labels", &Graph::node_labels, NoGil())
      .def("schedule", &Graph::schedule, NoGil())
      .def("built", &Graph::built, NoGil())
      .def(
          "show", [](const Graph& self) { return take(self.show()); }, NoGil())
      .def("host_picture", [](const Graph& self) { return take(self.host_picture()); }, NoGil());
}

}  // namespace eagle::python
