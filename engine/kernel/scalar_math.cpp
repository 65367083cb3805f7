#include "engine/kernel/scalar_math.h"

#include <bit>

#include "engine/kernel/math/functions.h"

namespace eagle::kernel {
namespace {

using math::Real;

Real real_from(Scalar scalar, std::uint64_t bits) {
  if (scalar == Scalar::f64) return std::bit_cast<double>(bits);
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

std::uint64_t bits_from(Scalar scalar, Real value) {
  if (scalar == Scalar::f64) return std::bit_cast<std::uint64_t>(value.value);
  return std::bit_cast<std::uint32_t>(static_cast<float>(value.value));
}

Real value_of(Opcode code, bool single, Real a, Real b, Real c) {
  if (math::is_selection(code)) return math::selection(code, a, b, c);
  if (single && code == Opcode::fma) return math::fma_of_singles(a, b, c);
  return math::algorithm(code, a, b, c);
}

}  // namespace

bool is_math(Opcode code) {
  return math::is_question(code) || math::is_selection(code) || math::is_algorithm(code);
}

std::uint64_t apply_math(Opcode code, Scalar scalar, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const Real x = real_from(scalar, a), y = real_from(scalar, b), z = real_from(scalar, c);
  if (math::is_question(code)) return math::question(code, x).value ? 1 : 0;
  return bits_from(scalar, value_of(code, scalar == Scalar::f32, x, y, z));
}

}  // namespace eagle::kernel
