#include "engine/kernel/random.h"

#include <array>
#include <cstdint>
#include <string>

namespace eagle::kernel::random {
namespace {

// Words and reals of one number.
class Words {
public:
  Words(KernelBuilder& builder, Value seed, Value counter)
      : b_(builder), words_(builder.op(Opcode::random_words, {seed, counter})) {}

  Value word(std::uint32_t i) { return b_.extract(words_, i); }

private:
  KernelBuilder& b_;
  Value words_;
};

Value converted(KernelBuilder& b, Value value, Scalar to) {
  return value.type.scalar == to ? value : b.convert(value, to);
}
// A constant of f64, whatever the kernel's reals are.
Value wide(KernelBuilder& b, double value) { return converted(b, b.real(value), Scalar::f64); }
// pi in f64, which a constant of an f32 kernel would round: from two that it keeps.
Value pi_of(KernelBuilder& b) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  constexpr double high = 0x1.921fb4p+1, middle = 0x1.4442dp-23, low = pi - high - middle;
  if (b.real_type() == Scalar::f64) return b.real(pi);
  return b.add(b.add(wide(b, high), wide(b, middle)), wide(b, low));
}
// (w + 1) 2^-32 in f64, exactly.
Value wide_uniform(KernelBuilder& b, Value seed, Value counter) {
  const Value above = b.add(Words(b, seed, counter).word(0), b.integer(1));
  return b.mul(b.convert(above, Scalar::f64), wide(b, 0x1p-32));
}
// A number of f64 as the kernel's real.
Value narrow(KernelBuilder& b, Value value) { return converted(b, value, b.real_type()); }

}  // namespace

Value uniform(KernelBuilder& b, Value seed, Value counter) {
  return narrow(b, wide_uniform(b, seed, counter));
}

Value uniform_between(KernelBuilder& b, Value seed, Value counter, Value low, Value high) {
  const Value inside = b.add(low, b.mul(b.sub(high, low), uniform(b, seed, counter)));
  return b.select(b.le(low, high), b.op(Opcode::min, {inside, high}), b.op(Opcode::max, {inside, high}));
}

// w n / 2^32 in integers: the product has up to 96 bits, so its halves are shifted apart.
Value uniform_int(KernelBuilder& b, Value seed, Value counter, Value low, Value high) {
  const Value word = Words(b, seed, counter).word(0);
  const Value half = b.integer(32);
  const Value mask = b.integer(0xffffffff);
  const Value n = b.op(Opcode::max, {b.sub(high, low), b.integer(0)});
  const Value upper = b.mul(word, b.op(Opcode::shift_right, {n, half}));
  const Value lower = b.mul(word, b.op(Opcode::bit_and, {n, mask}));
  const Value carried = b.op(Opcode::bit_and, {b.op(Opcode::shift_right, {lower, half}), mask});
  return b.add(low, b.add(upper, carried));
}

Value normal(KernelBuilder& b, Value seed, Value counter) {
  Words words(b, seed, counter);
  const auto real = [&](std::uint32_t low, std::uint32_t high) {
    const Value shifted = b.op(Opcode::shift_left, {words.word(high), b.integer(21)});
    return b.convert(b.op(Opcode::bit_xor, {words.word(low), shifted}), Scalar::f64);
  };
  const Value u = b.add(b.mul(real(0, 1), wide(b, 0x1p-53)), wide(b, 0x1p-54));
  const Value v = b.add(b.mul(real(2, 3), wide(b, 0x1p-52)), wide(b, 0x1p-53));
  const Value radius = b.op(Opcode::sqrt, {b.mul(wide(b, -2.0), b.op(Opcode::log, {u}))});
  return narrow(b, b.mul(radius, b.op(Opcode::sin, {b.mul(pi_of(b), v)})));
}

Value normal_of(KernelBuilder& b, Value seed, Value counter, Value mean, Value sd) {
  return b.add(mean, b.mul(sd, normal(b, seed, counter)));
}

Value lognormal(KernelBuilder& b, Value seed, Value counter, Value mean, Value sd) {
  return b.op(Opcode::exp, {normal_of(b, seed, counter, mean, sd)});
}

Value exponential(KernelBuilder& b, Value seed, Value counter) {
  return narrow(b, b.sub(wide(b, 0.0), b.op(Opcode::log, {wide_uniform(b, seed, counter)})));
}

Value exponential_of(KernelBuilder& b, Value seed, Value counter, Value scale) {
  return b.mul(scale, exponential(b, seed, counter));
}

Value multivariate_normal(KernelBuilder& b, Value seed, Value counter, Value mean, Value factor) {
  const int n = mean.type.components();
  const bool square = factor.type.rank == 2 && factor.type.extents[0] == n && factor.type.extents[1] == n;
  if (mean.type.rank != 1 || !square) {
    return b.refuse("multivariate_normal: expected a vector of n and a matrix of n by n, found " +
                    to_string(mean.type) + " and " + to_string(factor.type));
  }
  std::vector<Value> z, x;
  for (int i = 0; i < n; ++i) {
    z.push_back(normal(b, seed, b.add(counter, b.integer(4 * i))));
    Value sum;
    for (int j = 0; j <= i; ++j) {
      const Value product =
          b.mul(b.extract(factor, static_cast<std::uint32_t>(i * n + j)), z[static_cast<std::size_t>(j)]);
      sum = j == 0 ? product : b.add(sum, product);
    }
    x.push_back(b.add(b.extract(mean, static_cast<std::uint32_t>(i)), sum));
  }
  return b.compose(x, mean.type);
}

Value bernoulli(KernelBuilder& b, Value seed, Value counter, Value p) {
  return b.le(wide_uniform(b, seed, counter), converted(b, p, Scalar::f64));
}

Value call(KernelBuilder& b, std::string_view name, const std::vector<Value>& v) {
  if (name == "normal" && v.size() == 2) return normal(b, v[0], v[1]);
  if (name == "normal" && v.size() == 4) return normal_of(b, v[0], v[1], v[2], v[3]);
  if (name == "lognormal" && v.size() == 2) return b.op(Opcode::exp, {normal(b, v[0], v[1])});
  if (name == "lognormal" && v.size() == 4) return lognormal(b, v[0], v[1], v[2], v[3]);
  if (name == "exponential" && v.size() == 2) return exponential(b, v[0], v[1]);
  if (name == "exponential" && v.size() == 3) return exponential_of(b, v[0], v[1], v[2]);
  if (name == "multivariate_normal" && v.size() == 4) return multivariate_normal(b, v[0], v[1], v[2], v[3]);
  if (name == "uniform" && v.size() == 2) return uniform(b, v[0], v[1]);
  if (name == "uniform" && v.size() == 4) return uniform_between(b, v[0], v[1], v[2], v[3]);
  if (name == "uniform_int" && v.size() == 4) return uniform_int(b, v[0], v[1], v[2], v[3]);
  if (name == "bernoulli" && v.size() == 3) return bernoulli(b, v[0], v[1], v[2]);
  return b.refuse("random: no function '" + std::string(name) + "' of " + std::to_string(v.size()) +
                  " operands");
}

}  // namespace eagle::kernel::random
