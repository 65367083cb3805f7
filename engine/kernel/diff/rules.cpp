#include "engine/kernel/diff/rules.h"

#include <array>

#include "engine/kernel/diff/table.h"

namespace eagle::kernel::diff {
namespace {

constexpr double ln_2 = 0x1.62e42fefa39efp-1;
constexpr double ln_10 = 0x1.26bb1bbb55516p+1;
constexpr double two_over_sqrt_pi = 0x1.20dd750429b6dp+0;

constexpr std::array texts = {
#define EAGLE_TEXT(code, derivative, ties) RuleText{Opcode::code, derivative, ties},
    EAGLE_DERIVATIVES(EAGLE_TEXT)
#undef EAGLE_TEXT
};

// The rules, with short names for what they are made of: a, b, c are the operands, r is the result.
class Rules {
public:
  Rules(Writer& w, const Use& use, std::size_t operand, ValueId v)
      : w_(w), code_(use.code), r_(use.result), i_(operand), v_(v), norm_(use.is_norm) {
    a_ = use.operands[0];
    b_ = use.operands[use.operands.size() > 1 ? 1 : 0];
    c_ = use.operands.back();
  }

  Term term() {
    switch (code_) {
      case Opcode::min:
      case Opcode::max:
      case Opcode::fdim:
      case Opcode::clip:
        return choice();
      default:
        return {is_flat(code_) ? none : value(), none};
    }
  }

private:
  ValueId number(double n) { return w_.real(w_.type(v_), n); }
  ValueId one_plus(ValueId x) { return w_.add(number(1), x); }
  ValueId square(ValueId x) { return w_.mul(x, x); }
  // v where the condition holds, else 0.
  ValueId where(ValueId condition, ValueId v) { return w_.select(condition, v, w_.zero(w_.type(v))); }
  // (1 - x)(1 + x) has no cancellation near -1 and 1.
  ValueId one_minus_square(ValueId x) { return w_.mul(w_.sub(number(1), x), one_plus(x)); }

  ValueId value() {
    switch (code_) {
      case Opcode::add:
        return v_;
      case Opcode::sub:
        return i_ == 0 ? v_ : w_.neg(v_);
      case Opcode::mul:
        return w_.mul(v_, i_ == 0 ? b_ : a_);
      case Opcode::div:
        return i_ == 0 ? w_.div(v_, b_) : w_.neg(w_.div(w_.mul(v_, r_), b_));
      case Opcode::neg:
        return w_.neg(v_);
      case Opcode::abs:
        return w_.select(w_.compare(Opcode::lt, a_, number(0)), w_.neg(v_), v_);
      case Opcode::fma:
        return i_ == 0 ? w_.mul(v_, b_) : i_ == 1 ? w_.mul(v_, a_) : v_;
      case Opcode::fmod:
        // The quotient is whole but for the rounding of this division.
        return i_ == 0 ? v_ : w_.neg(w_.mul(v_, w_.of(Opcode::rint, w_.div(w_.sub(a_, r_), b_))));
      case Opcode::remainder:
        return i_ == 0 ? v_ : w_.neg(w_.mul(v_, w_.of(Opcode::floor_quotient, a_, b_)));
      case Opcode::copysign:
        return i_ == 0 ? copied_sign() : none;
      default:
        return power_or_root();
    }
  }

  ValueId copied_sign() {
    const ValueId signed_v = w_.mul(v_, w_.of(Opcode::copysign, number(1), b_));
    return w_.select(w_.compare(Opcode::lt, a_, number(0)), w_.neg(signed_v), signed_v);
  }

  ValueId power_or_root() {
    switch (code_) {
      case Opcode::sqrt: {
        const ValueId v = w_.div(v_, w_.add(r_, r_));
        return norm_ ? w_.select(w_.compare(Opcode::eq, r_, number(0)), number(0), v) : v;
      }
      case Opcode::pow:
        return i_ == 0 ? power_by_base() : power_by_exponent();
      case Opcode::rsqrt:
        return w_.mul(v_, w_.mul(number(-0.5), w_.mul(r_, square(r_))));
      case Opcode::cbrt:
        return w_.div(v_, w_.mul(number(3), square(r_)));
      case Opcode::hypot:
        return w_.select(w_.compare(Opcode::eq, r_, number(0)), number(0),
                         w_.mul(v_, w_.div(i_ == 0 ? a_ : b_, r_)));
      default:
        return exponential();
    }
  }

  // Where y is 0 the power is 1 for every x.
  ValueId power_by_base() {
    const ValueId slope = w_.mul(b_, w_.of(Opcode::pow, a_, w_.sub(b_, number(1))));
    return w_.select(w_.compare(Opcode::eq, b_, number(0)), number(0), w_.mul(v_, slope));
  }
  ValueId power_by_exponent() {
    const ValueId flat =
        w_.both(w_.compare(Opcode::eq, a_, number(0)), w_.compare(Opcode::gt, b_, number(0)));
    return w_.select(flat, number(0), w_.mul(v_, w_.mul(r_, w_.of(Opcode::log, a_))));
  }

  ValueId exponential() {
    switch (code_) {
      case Opcode::exp:
        return w_.mul(v_, r_);
      case Opcode::exp2:
        return w_.mul(v_, w_.mul(r_, number(ln_2)));
      case Opcode::expm1:
        return w_.mul(v_, w_.of(Opcode::exp, a_));
      case Opcode::log:
        return w_.div(v_, a_);
      case Opcode::log2:
        return w_.div(v_, w_.mul(a_, number(ln_2)));
      case Opcode::log10:
        return w_.div(v_, w_.mul(a_, number(ln_10)));
      case Opcode::log1p:
        return w_.div(v_, one_plus(a_));
      case Opcode::erf:
      case Opcode::erfc: {
        const ValueId bell = w_.of(Opcode::exp, w_.neg(square(a_)));
        return w_.mul(v_, w_.mul(number(code_ == Opcode::erf ? two_over_sqrt_pi : -two_over_sqrt_pi), bell));
      }
      default:
        return trigonometric();
    }
  }

  ValueId trigonometric() {
    switch (code_) {
      case Opcode::sin:
        return w_.mul(v_, w_.of(Opcode::cos, a_));
      case Opcode::cos:
        return w_.neg(w_.mul(v_, w_.of(Opcode::sin, a_)));
      case Opcode::tan:
        return w_.mul(v_, one_plus(square(r_)));
      case Opcode::asin:
        return w_.div(v_, w_.of(Opcode::sqrt, one_minus_square(a_)));
      case Opcode::acos:
        return w_.neg(w_.div(v_, w_.of(Opcode::sqrt, one_minus_square(a_))));
      case Opcode::atan:
        return w_.div(v_, one_plus(square(a_)));
      case Opcode::atan2: {  // (y, x); through the hypotenuse, whose square may be out of range
        const ValueId h = w_.of(Opcode::hypot, a_, b_);
        const ValueId slope = w_.div(w_.div(i_ == 0 ? b_ : w_.neg(a_), h), h);
        return w_.select(w_.compare(Opcode::eq, h, number(0)), number(0), w_.mul(v_, slope));
      }
      default:
        return hyperbolic();
    }
  }

  ValueId hyperbolic() {
    switch (code_) {
      case Opcode::sinh:
        return w_.mul(v_, w_.of(Opcode::cosh, a_));
      case Opcode::cosh:
        return w_.mul(v_, w_.of(Opcode::sinh, a_));
      case Opcode::tanh:
        return w_.mul(v_, one_minus_square(r_));
      case Opcode::asinh:
        return w_.div(v_, w_.of(Opcode::hypot, a_, number(1)));
      case Opcode::acosh:
        return w_.div(v_,
                      w_.mul(w_.of(Opcode::sqrt, w_.sub(a_, number(1))), w_.of(Opcode::sqrt, one_plus(a_))));
      case Opcode::atanh:
        return w_.div(v_, one_minus_square(a_));
      default:
        return none;
    }
  }

  // v where this operand is what the operation gave.
  Term choice() {
    if (code_ == Opcode::fdim) {
      const ValueId positive = w_.compare(Opcode::gt, a_, b_);
      return {where(positive, i_ == 0 ? v_ : w_.neg(v_)), positive};
    }
    if (code_ == Opcode::clip) return clipped();
    const ValueId better = w_.compare(code_ == Opcode::min ? Opcode::lt : Opcode::gt, b_, a_);
    const ValueId second = w_.either(better, w_.op(Opcode::isnan, {a_}, boolean_type));
    const ValueId given = i_ == 1 ? second : w_.inverse(second);
    return {where(given, v_), given};
  }

  // (x, lo, hi): first up to lo, then down to hi.
  Term clipped() {
    const ValueId low = w_.compare(Opcode::lt, a_, b_);
    const ValueId high = w_.compare(Opcode::gt, w_.select(low, b_, a_), c_);
    const ValueId given = i_ == 2   ? high
                          : i_ == 1 ? w_.both(low, w_.inverse(high))
                                    : w_.inverse(w_.either(low, high));
    return {where(given, v_), given};
  }

  Writer& w_;
  Opcode code_;
  ValueId a_ = none, b_ = none, c_ = none, r_;
  std::size_t i_;
  ValueId v_;
  bool norm_;
};

}  // namespace

std::span<const RuleText> rule_texts() { return texts; }

Term term(Writer& w, const Use& use, std::size_t operand, ValueId v) {
  return Rules(w, use, operand, v).term();
}

bool has_factor(Opcode code) {
  return (code >= Opcode::add && code <= Opcode::sqrt) || (code >= Opcode::fma && code <= Opcode::clip);
}

bool is_flat(Opcode code) {
  return (code >= Opcode::floor && code <= Opcode::rint) || code == Opcode::floor_quotient ||
         code == Opcode::sign;
}

bool keeps_zero(Opcode code) {
  switch (code) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::copysign:
      return true;
    default:
      return chooses(code);
  }
}

bool chooses(Opcode code) {
  return code == Opcode::min || code == Opcode::max || code == Opcode::fdim || code == Opcode::clip;
}

}  // namespace eagle::kernel::diff
