// Records and reverse passes.
#include "eagle/client/reverse.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "launching.h"

namespace eagle::python {
namespace {

nb::dict dict_of(const NamedArrays& arrays) {
  nb::dict named;
  for (const auto& [name, array] : arrays) named[name.c_str()] = array_over(array);
  return named;
}

// `vjps`: (label, number of the callable), which is called with three dicts of arrays.
Reverse make_reverse(const Record& record, const std::vector<std::string>& seeds,
                     const std::optional<std::vector<std::string>>& wrt,
                     const std::vector<std::pair<std::string, std::int64_t>>& vjps, std::int64_t checkpoint) {
  ReverseOptions options;
  options.wrt = wrt;
  options.checkpoint = checkpoint;
  for (const auto& [label, number] : vjps) {
    options.vjps.emplace_back(label, [n = number](const VjpArguments& arguments) {
      HostCalls::in_python([&](nb::handle calls) {
        nb::borrow<nb::dict>(calls)[nb::int_(n)](dict_of(arguments.primals), dict_of(arguments.cotangents),
                                                 dict_of(arguments.gradients));
        return true;
      });
      return Status();
    });
  }
  const Released released;
  return take(reverse(record, seeds, options));
}

nb::list rows_of(const std::vector<Reverse::Plane>& planes) {
  nb::list rows;
  for (const Reverse::Plane& plane : planes) {
    nb::list shape;
    for (const std::int64_t extent : plane.shape) shape.append(extent);
    rows.append(nb::make_tuple(plane.name, std::string(plane::name_of(plane.dtype)), nb::tuple(shape)));
  }
  return rows;
}

nb::list reverse_loop_rows(const Reverse& reverse) {
  nb::list rows;
  for (const diff::LoopPlan& loop : reverse.loops())
    rows.append(nb::make_tuple(loop.label, loop.trips, loop.interval));
  return rows;
}

LaunchReport launch_reverse(Reverse& reverse, const nb::dict& calls, double timeout) {
  return take(with_calls(reverse.graph().session(), "reverse", calls, timeout, {},
                         reverse.graph().computes_long(),
                         [&](const LaunchOptions& options) { return reverse.launch(options); }));
}

}  // namespace

void bind_reverse(nb::module_& m) {
  nb::class_<Record>(m, "Record")
      .def_prop_ro("bytes", &Record::bytes)
      .def_prop_ro("structure", &Record::structure)
      .def_prop_ro("launches", &Record::launches)
      .def_prop_ro("carried", &Record::carried);
  m.def("record_of", [](const Graph& graph) {
    const Released released;
    return take(graph.record());
  });
  nb::class_<Reverse>(m, "Reverse")
      .def_prop_ro("seeds", [](const Reverse& self) { return rows_of(self.seeds()); })
      .def_prop_ro("gradients", [](const Reverse& self) { return rows_of(self.gradients()); })
      .def("set_seed",
           [](Reverse& self, std::size_t index, nb::handle values) {
             const ArrayView view = view_of(values, "reverse: seed");
             const Released released;
             check(self.set_seed(index, view));
           })
      .def("get_gradient",
           [](const Reverse& self, std::size_t index, nb::handle into) {
             const ArrayView view = view_of(into, "reverse: gradient");
             const Released released;
             check(self.get_gradient(index, view));
           })
      .def("fits", &Reverse::fits)
      .def("launch", launch_reverse, nb::arg("calls"), nb::arg("timeout") = 0.0)
      .def_prop_ro("bytes", &Reverse::bytes)
      .def_prop_ro("loops", reverse_loop_rows)
      .def("graph", &Reverse::graph, nb::rv_policy::reference_internal);
  m.def("reverse", make_reverse, nb::arg("record"), nb::arg("seeds"), nb::arg("wrt").none(), nb::arg("vjps"),
        nb::arg("checkpoint"));
}

}  // namespace eagle::python
