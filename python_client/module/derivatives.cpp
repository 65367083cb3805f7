// Derivatives of kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "engine/kernel/diff/derivative.h"
#include "errors.h"

namespace eagle::python {
namespace {

using kernel::Kernel;
namespace diff = kernel::diff;

// (kernel, rows); a row is (part, name of the differentiated kernel's argument, whether it is looked at).
nb::tuple derivative_of(const Kernel& of, std::string_view direction, const std::vector<std::string>& wrt,
                        bool sum_params, const std::vector<std::string>& accumulate, bool step_param) {
  diff::Options options;
  options.wrt = wrt;
  options.sum_params = sum_params;
  options.accumulate = accumulate;
  options.step_param = step_param;
  diff::Derivative made = take(direction == "jvp" ? diff::jvp(of, options) : diff::vjp(of, options));
  nb::list rows;
  for (const diff::Plane& plane : made.planes) {
    const std::string_view part = diff::name_of(plane.part);
    const bool none = plane.part == diff::Part::step;
    rows.append(nb::make_tuple(nb::str(part.data(), part.size()),
                               none ? std::string() : of.arguments[plane.argument].name, plane.needed));
  }
  return nb::make_tuple(std::make_shared<Kernel>(std::move(made.kernel)), rows);
}

}  // namespace

void bind_derivatives(nb::module_& m) {
  m.def("derivative_of", derivative_of, nb::arg("kernel"), nb::arg("direction"), nb::arg("wrt"),
        nb::arg("sum_params") = false, nb::arg("accumulate") = std::vector<std::string>(),
        nb::arg("step_param") = false);
}

}  // namespace eagle::python
