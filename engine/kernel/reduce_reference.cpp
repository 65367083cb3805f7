#include "engine/kernel/reduce_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace eagle::kernel {
namespace {

template <typename T>
T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Leaves of 256, halved; then leaves as adjacent pairs, an odd last one carried up.
template <typename T>
T sum_reals(std::span<const std::uint64_t> values) {
  constexpr std::size_t leaf_samples = 256;
  std::vector<T> level;
  for (std::size_t first = 0; first < values.size(); first += leaf_samples) {
    std::vector<T> b(leaf_samples, T(-0.0));
    for (std::size_t i = first; i < std::min(first + leaf_samples, values.size()); ++i)
      b[i - first] = value_of<T>(values[i]);
    for (std::size_t s = leaf_samples / 2; s >= 1; s /= 2) {
      for (std::size_t i = 0; i < s; ++i) b[i] += b[i + s];
    }
    level.push_back(b[0]);
  }
  while (level.size() > 1) {
    std::vector<T> above;
    for (std::size_t i = 0; i < level.size(); i += 2)
      above.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
    level = std::move(above);
  }
  return level[0];
}

template <typename T>
T sum_integers(std::span<const std::uint64_t> values) {
  std::uint64_t sum = 0;
  for (const std::uint64_t bits : values) sum += bits;
  return value_of<T>(sum);
}

template <typename T>
T extreme(bool largest, std::span<const std::uint64_t> values) {
  T best = value_of<T>(values[0]);
  for (const std::uint64_t bits : values) {
    const T x = value_of<T>(bits);
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x)) return std::numeric_limits<T>::quiet_NaN();
      const bool other_zero = x == best && std::signbit(x) != std::signbit(best);
      if (other_zero && std::signbit(best) == largest) best = x;  // +0 is greater than -0
    }
    if (largest ? x > best : x < best) best = x;
  }
  return best;
}

template <typename T>
std::uint64_t reduce_numbers(ReduceOp op, std::span<const std::uint64_t> values) {
  if (op != ReduceOp::sum) return bits_of(extreme<T>(op == ReduceOp::max, values));
  if constexpr (std::is_floating_point_v<T>) return bits_of(sum_reals<T>(values));
  return bits_of(sum_integers<T>(values));
}

}  // namespace

std::uint64_t reduce(ReduceOp op, Scalar scalar, std::span<const std::uint64_t> values) {
  switch (scalar) {
    case Scalar::f64:
      return reduce_numbers<double>(op, values);
    case Scalar::f32:
      return reduce_numbers<float>(op, values);
    case Scalar::i64:
      return reduce_numbers<std::int64_t>(op, values);
    case Scalar::i32:
      return reduce_numbers<std::int32_t>(op, values);
    case Scalar::boolean: {
      const auto set = [](std::uint64_t bits) { return bits != 0; };
      const bool all = op == ReduceOp::all;
      return all ? std::all_of(values.begin(), values.end(), set)
                 : std::any_of(values.begin(), values.end(), set);
    }
  }
  return 0;
}

}  // namespace eagle::kernel
