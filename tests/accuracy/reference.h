// What a function of reals is, by MPFR, and how far a number is from it.
#pragma once

#include <mpfr.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "engine/kernel/ir.h"

namespace eagle::accuracy {

// An MPFR number of its own precision.
class Big {
public:
  explicit Big(int bits) { mpfr_init2(value_, bits); }
  ~Big() { mpfr_clear(value_); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
  mpfr_ptr get() { return value_; }
  [[nodiscard]] mpfr_srcptr get() const { return value_; }

private:
  mpfr_t value_;
};

using Operands = std::array<double, 3>;

struct Format {
  int precision;  // bits
  int least;      // exponent of the smallest subnormal number
  int end;        // numbers are below 2^end
};
constexpr Format doubles{53, -1074, 1024}, singles{24, -149, 128};

// The functions that approximate: all of engine/kernel/math but those that are exact.
std::span<const kernel::Opcode> approximations();
// Of the operands, to 160 bits.
void evaluate(kernel::Opcode code, const Operands& operands, Big& result);
// |found - wanted| in units in the last place of the correctly rounded result. Infinite where one is NaN,
// infinite or of another zero's sign and the other is not.
double ulps(double found, const Big& wanted, const Format& format);

}  // namespace eagle::accuracy
