// The functions of this folder by opcode: the one list that the interpreter and the compile helper go by.
#pragma once

#include "engine/kernel/ir.h"
#include "engine/kernel/math/error_function.h"
#include "engine/kernel/math/fused.h"
#include "engine/kernel/math/hyperbolic.h"
#include "engine/kernel/math/inverse_trigonometric.h"
#include "engine/kernel/math/power.h"
#include "engine/kernel/math/remainders.h"
#include "engine/kernel/math/roots.h"
#include "engine/kernel/math/selections.h"
#include "engine/kernel/math/trigonometric.h"

namespace eagle::kernel::math {

// Real to bool: a question about one number.
constexpr bool is_question(Opcode code) {
  return code == Opcode::isnan || code == Opcode::isinf || code == Opcode::isfinite;
}
// A few instructions, in single or double precision alike.
constexpr bool is_selection(Opcode code) {
  switch (code) {
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::trunc:
    case Opcode::round:
    case Opcode::rint:
    case Opcode::sign:
    case Opcode::copysign:
    case Opcode::fdim:
    case Opcode::clip:
      return true;
    default:
      return false;
  }
}
// An algorithm in double precision. Of singles it is computed in double precision and rounded once more,
// which makes at most 0.5 + 2^-28 ulp of them, and keeps what is exact.
constexpr bool is_algorithm(Opcode code) {
  return code >= Opcode::fma && code <= Opcode::isfinite && !is_question(code) && !is_selection(code);
}

template <typename R>
typename R::Truth question(Opcode code, R a) {
  if (code == Opcode::isnan) return a != a;
  return code == Opcode::isinf ? magnitude(a) == infinity : magnitude(a) < infinity;
}

template <typename R>
R selection(Opcode code, R a, R b, R c) {
  switch (code) {
    case Opcode::floor:
      return round_down(a);
    case Opcode::ceil:
      return round_up(a);
    case Opcode::trunc:
      return round_to_zero(a);
    case Opcode::round:
      return round_half_away(a);
    case Opcode::rint:
      return round_to_even(a);
    case Opcode::sign:
      return sign(a);
    case Opcode::copysign:
      return copysign(a, b);
    case Opcode::fdim:
      return fdim(a, b);
    default:
      return clip(a, b, c);
  }
}

template <typename R>
R algorithm(Opcode code, R a, R b, R c) {
  switch (code) {
    case Opcode::fma:
      return fma(a, b, c);
    case Opcode::pow:
      return pow(a, b);
    case Opcode::rsqrt:
      return rsqrt(a);
    case Opcode::cbrt:
      return cbrt(a);
    case Opcode::hypot:
      return hypot(a, b);
    case Opcode::exp:
      return exp(a);
    case Opcode::exp2:
      return exp2(a);
    case Opcode::expm1:
      return expm1(a);
    case Opcode::log:
      return log(a);
    case Opcode::log2:
      return log2(a);
    case Opcode::log10:
      return log10(a);
    case Opcode::log1p:
      return log1p(a);
    case Opcode::sin:
      return sin(a);
    case Opcode::cos:
      return cos(a);
    case Opcode::tan:
      return tan(a);
    case Opcode::asin:
      return asin(a);
    case Opcode::acos:
      return acos(a);
    case Opcode::atan:
      return atan(a);
    case Opcode::atan2:
      return atan2(a, b);
    case Opcode::sinh:
      return sinh(a);
    case Opcode::cosh:
      return cosh(a);
    case Opcode::tanh:
      return tanh(a);
    case Opcode::asinh:
      return asinh(a);
    case Opcode::acosh:
      return acosh(a);
    case Opcode::atanh:
      return atanh(a);
    case Opcode::erf:
      return erf(a);
    case Opcode::erfc:
      return erfc(a);
    case Opcode::fmod:
      return fmod(a, b);
    case Opcode::remainder:
      return remainder(a, b);
    default:
      return floor_quotient(a, b);
  }
}

}  // namespace eagle::kernel::math
