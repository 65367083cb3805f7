#include "engine/kernel/scalar_ops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/kernel/scalar_math.h"

namespace eagle::kernel {
namespace {

// ---- bits and numbers ----

template <typename T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(bits);
  } else {
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  }
}

template <typename T>
std::uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return std::bit_cast<std::uint32_t>(value);
  }
}

// Calls `use` with a zero of the C++ type of a scalar.
template <typename Use>
std::uint64_t with_number(Scalar scalar, Use use) {
  switch (scalar) {
    case Scalar::f64:
      return use(double{});
    case Scalar::f32:
      return use(float{});
    case Scalar::i64:
      return use(std::int64_t{});
    case Scalar::i32:
      return use(std::int32_t{});
    case Scalar::boolean:
      return use(bool{});
  }
  return 0;
}

// ---- operations ----

// Integers wrap: they are computed unsigned, where C++ defines that.
template <typename T, typename Compute>
T wrapping(T a, T b, Compute compute) {
  if constexpr (std::is_floating_point_v<T>) {
    return compute(a, b);
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(compute(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T absolute(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
  return a < 0 ? wrapping<T>(0, a, [](auto zero, auto x) { return zero - x; }) : a;
}

template <typename T>
T negated(T a) {
  if constexpr (std::is_floating_point_v<T>) return -a;  // not 0 - a: that would lose the sign of zero
  return wrapping<T>(0, a, [](auto zero, auto x) { return zero - x; });
}

// Divides as Python does: the quotient is rounded down and the remainder has the divisor's sign.
template <typename Integer>
Integer floor_division(Opcode code, Integer a, Integer b) {
  const bool quotient = code == Opcode::floor_div;
  if (b == 0) return 0;
  if (b == -1) return quotient ? negated(a) : Integer{0};  // the hardware's division traps for MIN / -1
  const bool inexact_below_zero = a % b != 0 && (a < 0) != (b < 0);
  if (quotient) return static_cast<Integer>(a / b - (inexact_below_zero ? 1 : 0));
  return static_cast<Integer>(a % b + (inexact_below_zero ? b : 0));
}

template <typename Integer>
Integer shifted(Opcode code, Integer a, Integer count) {
  constexpr int bits = std::numeric_limits<Integer>::digits + 1;
  const bool inside = count >= 0 && count < bits;
  if (code == Opcode::shift_right) return static_cast<Integer>(a >> (inside ? count : bits - 1));
  return inside ? wrapping(a, count, [](auto x, auto n) { return x << n; }) : Integer{0};
}

template <typename Integer>
Integer integer_operation(Opcode code, Integer a, Integer b) {
  switch (code) {
    case Opcode::floor_div:
    case Opcode::modulo:
      return floor_division(code, a, b);
    case Opcode::shift_left:
    case Opcode::shift_right:
      return shifted(code, a, b);
    case Opcode::bit_and:
      return a & b;
    case Opcode::bit_or:
      return a | b;
    case Opcode::bit_xor:
      return a ^ b;
    case Opcode::bit_not:
      return ~a;
    default:
      return a;
  }
}

// `a` for opcodes that are none of this type's: they do not verify.
template <typename T>
T arithmetic(Opcode code, T a, T b) {
  switch (code) {
    case Opcode::add:
      return wrapping(a, b, [](auto x, auto y) { return x + y; });
    case Opcode::sub:
      return wrapping(a, b, [](auto x, auto y) { return x - y; });
    case Opcode::mul:
      return wrapping(a, b, [](auto x, auto y) { return x * y; });
    case Opcode::neg:
      return negated(a);
    case Opcode::abs:
      return absolute(a);
    case Opcode::min:
      return b < a ? b : is_nan(a) ? b : a;
    case Opcode::max:
      return b > a ? b : is_nan(a) ? b : a;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (code == Opcode::div) return a / b;
    if (code == Opcode::sqrt) return std::sqrt(a);
    return a;
  } else {
    return integer_operation(code, a, b);
  }
}

template <typename T>
bool comparison(Opcode code, T a, T b) {
  switch (code) {
    case Opcode::eq:
      return a == b;
    case Opcode::ne:
      return a != b;
    case Opcode::lt:
      return a < b;
    case Opcode::le:
      return a <= b;
    case Opcode::gt:
      return a > b;
    case Opcode::ge:
      return a >= b;
    default:
      return false;
  }
}

bool logic(Opcode code, bool a, bool b) {
  switch (code) {
    case Opcode::logical_and:
      return a && b;
    case Opcode::logical_or:
      return a || b;
    case Opcode::logical_xor:
      return a != b;
    case Opcode::logical_not:
      return !a;
    default:
      return false;
  }
}

// Truncates; what is out of range becomes the nearest end of it, NaN becomes 0.
template <typename Integer>
Integer saturated(double value) {
  using Range = std::numeric_limits<Integer>;
  const double end = -static_cast<double>(Range::min());  // one above the greatest, exact as a double
  if (std::isnan(value)) return 0;
  if (value >= end) return Range::max();
  if (value <= -end) return Range::min();
  return static_cast<Integer>(value);
}

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};  // true for NaN
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturated<To>(value);
  } else {
    return static_cast<To>(value);  // rounds to nearest, or keeps the low bits of an integer
  }
}

}  // namespace

std::uint64_t apply(Opcode code, Scalar from, Scalar to, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if (is_math(code)) return apply_math(code, from, a, b, c);
  switch (code) {
    case Opcode::convert:
      return with_number(from, [&](auto from_zero) {
        return with_number(to, [&](auto to_zero) {
          return to_bits(converted<decltype(to_zero)>(from_bits<decltype(from_zero)>(a)));
        });
      });
    case Opcode::logical_and:
    case Opcode::logical_or:
    case Opcode::logical_xor:
    case Opcode::logical_not:
      return to_bits(logic(code, from_bits<bool>(a), from_bits<bool>(b)));
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge:
      return with_number(from, [&](auto zero) {
        using T = decltype(zero);
        return to_bits(comparison(code, from_bits<T>(a), from_bits<T>(b)));
      });
    default:
      return with_number(from, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_same_v<T, bool>)
          return std::uint64_t{0};  // no arithmetic on bool verifies
        else
          return to_bits(arithmetic(code, from_bits<T>(a), from_bits<T>(b)));
      });
  }
}

}  // namespace eagle::kernel
