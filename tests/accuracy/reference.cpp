#include "tests/accuracy/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace eagle::accuracy {
namespace {

using kernel::Opcode;

using One = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using Two = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

struct Reference {
  Opcode code;
  One one = nullptr;
  Two two = nullptr;
};
constexpr std::array references = {Reference{Opcode::exp, mpfr_exp},
                                   Reference{Opcode::exp2, mpfr_exp2},
                                   Reference{Opcode::expm1, mpfr_expm1},
                                   Reference{Opcode::log, mpfr_log},
                                   Reference{Opcode::log2, mpfr_log2},
                                   Reference{Opcode::log10, mpfr_log10},
                                   Reference{Opcode::log1p, mpfr_log1p},
                                   Reference{Opcode::erf, mpfr_erf},
                                   Reference{Opcode::erfc, mpfr_erfc},
                                   Reference{Opcode::sin, mpfr_sin},
                                   Reference{Opcode::cos, mpfr_cos},
                                   Reference{Opcode::tan, mpfr_tan},
                                   Reference{Opcode::asin, mpfr_asin},
                                   Reference{Opcode::acos, mpfr_acos},
                                   Reference{Opcode::atan, mpfr_atan},
                                   Reference{Opcode::sinh, mpfr_sinh},
                                   Reference{Opcode::cosh, mpfr_cosh},
                                   Reference{Opcode::tanh, mpfr_tanh},
                                   Reference{Opcode::asinh, mpfr_asinh},
                                   Reference{Opcode::acosh, mpfr_acosh},
                                   Reference{Opcode::atanh, mpfr_atanh},
                                   Reference{Opcode::cbrt, mpfr_cbrt},
                                   Reference{Opcode::rsqrt, mpfr_rec_sqrt},
                                   Reference{Opcode::pow, nullptr, mpfr_pow},
                                   Reference{Opcode::hypot, nullptr, mpfr_hypot},
                                   Reference{Opcode::atan2, nullptr, mpfr_atan2}};

}  // namespace

std::span<const Opcode> approximations() {
  static const auto codes = [] {
    std::array<Opcode, references.size()> all{};
    std::ranges::transform(references, all.begin(), &Reference::code);
    return all;
  }();
  return codes;
}

void evaluate(Opcode code, const Operands& operands, Big& result) {
  Big a(53), b(53);
  mpfr_set_d(a.get(), operands[0], MPFR_RNDN);
  mpfr_set_d(b.get(), operands[1], MPFR_RNDN);
  const auto* reference = std::ranges::find(references, code, &Reference::code);
  if (reference->one != nullptr) {
    reference->one(result.get(), a.get(), MPFR_RNDN);
    // IEEE 754's rSqrt(-0) is -inf; MPFR's is +inf.
    if (code == Opcode::rsqrt && operands[0] == 0)
      mpfr_set_inf(result.get(), std::signbit(operands[0]) ? -1 : 1);
  } else {
    reference->two(result.get(), a.get(), b.get(), MPFR_RNDN);
  }
}

double ulps(double found, const Big& wanted, const Format& format) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (mpfr_nan_p(wanted.get()) != 0) return std::isnan(found) ? 0 : wrong;
  if (std::isnan(found)) return wrong;
  if (mpfr_zero_p(wanted.get()) != 0) {
    return found == 0 && std::signbit(found) == (mpfr_signbit(wanted.get()) != 0) ? 0 : wrong;
  }
  if (found == 0 && std::signbit(found) != (mpfr_signbit(wanted.get()) != 0)) return wrong;
  // Beyond the largest number the correctly rounded result is infinite, from half an ulp above it on.
  if (mpfr_inf_p(wanted.get()) != 0)
    return std::isinf(found) && mpfr_sgn(wanted.get()) * found > 0 ? 0 : wrong;
  Big difference(200);
  mpfr_set(difference.get(), wanted.get(), MPFR_RNDN);
  if (std::isinf(found)) {  // stands for the first number that there is no room for
    if (mpfr_sgn(wanted.get()) * found < 0) return wrong;
    Big end(53);
    mpfr_set_si_2exp(end.get(), found > 0 ? 1 : -1, format.end, MPFR_RNDN);
    mpfr_sub(difference.get(), difference.get(), end.get(), MPFR_RNDN);
    if (mpfr_cmpabs(wanted.get(), end.get()) >= 0) return 0;
  } else {
    mpfr_sub_d(difference.get(), difference.get(), found, MPFR_RNDN);
  }
  const long top = std::min<long>(mpfr_get_exp(wanted.get()), format.end);  // |wanted| < 2^top
  const long ulp = std::max<long>(top - format.precision, format.least);
  mpfr_mul_2si(difference.get(), difference.get(), -ulp, MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference.get(), MPFR_RNDN));
}

}  // namespace eagle::accuracy
