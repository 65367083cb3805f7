// The math functions on numpy arrays, computed by the code that gives kernels their meaning.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/scalar_ops.h"
#include "engine/kernel/typing.h"
#include "errors.h"

namespace eagle::python {
namespace {

using kernel::Rule;
using kernel::Scalar;
using Numbers = nb::ndarray<nb::numpy, nb::c_contig, nb::device::cpu>;

// Those that eagle.math has beside the math functions: of integers too, which Python leaves to numpy.
bool is_of_numbers(kernel::Opcode code) {
  using kernel::Opcode;
  return code == Opcode::abs || code == Opcode::sqrt || code == Opcode::min || code == Opcode::max;
}

const Rule& function_named(std::string_view name) {
  const Rule* rule = kernel::find_rule(name);
  if (rule == nullptr || !(kernel::is_math(rule->code) || is_of_numbers(rule->code)))
    throw StatusError({Reason::bad_value, "apply_math: there is no function '" + std::string(name) + "'"});
  return *rule;
}

bool is_question(const Rule& rule) { return rule.typing == kernel::Typing::question; }

// (name, operands, whether it gives a condition) of each function.
nb::list math_functions() {
  nb::list rows;
  for (const Rule& rule : kernel::rules()) {
    if (!kernel::is_math(rule.code)) continue;
    rows.append(
        nb::make_tuple(nb::str(rule.name.data(), rule.name.size()), rule.operands, is_question(rule)));
  }
  return rows;
}

// out[i] = f(operands[0][i], ...). All are C-contiguous and of one length; operands are float64 or float32
// alike, and `out` is too, or bool for a question. BAD_VALUE where that is not so.
void apply_math(std::string_view name, const std::vector<Numbers>& operands, const Numbers& out) {
  const Rule& rule = function_named(name);
  const bool single = !operands.empty() && operands[0].dtype() == nb::dtype<float>();
  const auto element = single ? nb::dtype<float>() : nb::dtype<double>();
  bool fits = operands.size() == static_cast<std::size_t>(rule.operands) &&
              out.dtype() == (is_question(rule) ? nb::dtype<bool>() : element);
  for (const Numbers& operand : operands)
    fits = fits && operand.dtype() == element && operand.size() == out.size();
  if (!fits)
    throw StatusError({Reason::bad_value, "apply_math: '" + std::string(name) + "' takes " +
                                              std::to_string(rule.operands) +
                                              " arrays of one length and kind"});

  const nb::gil_scoped_release release;
  const kernel::FloatEnvironment environment;
  const Scalar from = single ? Scalar::f32 : Scalar::f64;
  const Scalar to = is_question(rule) ? Scalar::boolean : from;
  const std::size_t bytes = single ? 4 : 8, out_bytes = is_question(rule) ? 1 : bytes;
  auto* results = static_cast<std::byte*>(out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t bits[3] = {0, 0, 0};
    for (std::size_t k = 0; k < operands.size(); ++k)
      std::memcpy(&bits[k], static_cast<const std::byte*>(operands[k].data()) + i * bytes, bytes);
    const std::uint64_t result = kernel::apply(rule.code, from, to, bits[0], bits[1], bits[2]);
    std::memcpy(results + i * out_bytes, &result, out_bytes);
  }
}

}  // namespace

void bind_functions(nb::module_& m) {
  m.def("math_functions", math_functions);
  m.def("apply_math", apply_math);
}

}  // namespace eagle::python
