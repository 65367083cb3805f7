#include "tests/accuracy/estimate.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <map>

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using Long = long double;

constexpr double wrong = std::numeric_limits<double>::infinity();

using One = Long (*)(Long);
const std::map<Opcode, One> ones = {{Opcode::exp, std::exp},
                                    {Opcode::exp2, std::exp2},
                                    {Opcode::expm1, std::expm1},
                                    {Opcode::log, std::log},
                                    {Opcode::log2, std::log2},
                                    {Opcode::log10, std::log10},
                                    {Opcode::log1p, std::log1p},
                                    {Opcode::erf, std::erf},
                                    {Opcode::erfc, std::erfc},
                                    {Opcode::sin, std::sin},
                                    {Opcode::cos, std::cos},
                                    {Opcode::tan, std::tan},
                                    {Opcode::asin, std::asin},
                                    {Opcode::acos, std::acos},
                                    {Opcode::atan, std::atan},
                                    {Opcode::sinh, std::sinh},
                                    {Opcode::cosh, std::cosh},
                                    {Opcode::tanh, std::tanh},
                                    {Opcode::asinh, std::asinh},
                                    {Opcode::acosh, std::acosh},
                                    {Opcode::atanh, std::atanh},
                                    {Opcode::cbrt, std::cbrt},
                                    {Opcode::rsqrt, [](Long x) { return 1 / std::sqrt(x); }}};

Long wanted_of(Opcode code, const Operands& operands) {
  const Long a = operands[0], b = operands[1];
  switch (code) {
    case Opcode::pow:
      return std::pow(a, b);
    case Opcode::hypot:
      return std::hypot(a, b);
    case Opcode::atan2:
      return std::atan2(a, b);
    default:
      return ones.at(code)(a);
  }
}

}  // namespace

double margin_of_estimates(const Format& format) {
  return LDBL_MANT_DIG < 64 ? wrong : std::ldexp(32.0, format.precision - LDBL_MANT_DIG);
}

double estimate(Opcode code, const Operands& operands, double found, const Format& format) {
  const Long wanted = wanted_of(code, operands);
  if (std::isnan(wanted) || std::isnan(found)) return std::isnan(wanted) && std::isnan(found) ? 0 : wrong;
  if (std::signbit(wanted) != std::signbit(found)) return wrong;
  if (std::isinf(wanted) || wanted == 0) return static_cast<Long>(found) == wanted ? 0 : wrong;
  const Long size = std::fabs(wanted);
  Long place = std::fabs(static_cast<Long>(found));
  if (std::isinf(found)) {  // stands for the first number that there is no room for
    place = std::ldexp(Long{1}, format.end);
    if (size >= place) return 0;
  }
  // A little below, since just under a power of two units are half of what they are above.
  int top = 0;
  std::frexp(size * (1 - 64 * LDBL_EPSILON), &top);
  const int unit = std::max(std::min(top, format.end) - format.precision, format.least);
  return static_cast<double>(std::ldexp(std::fabs(place - size), -unit));
}

}  // namespace eagle::accuracy
