#include "tests/accuracy/inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Random;

double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }
double uniform(double low, double high, Random& random) {
  return low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
}

struct Interval {
  double low, high;
};
// Where each operand is drawn from; one of these at a time.
const std::map<Opcode, std::vector<std::array<Interval, 2>>> ranges = {
    {Opcode::exp, {{{{-1, 1}}}, {{{-708, 710}}}, {{{-746, -707}}}}},
    {Opcode::exp2, {{{{-1, 1}}}, {{{-1022, 1024}}}, {{{-1076, -1021}}}}},
    {Opcode::expm1, {{{{-0.1, 0.1}}}, {{{-1, 1}}}, {{{-40, 710}}}}},
    {Opcode::log, {{{{0.97, 1.04}}}, {{{0, 4}}}, {{{0, 1e300}}}, {{{0, 4e-308}}}}},
    {Opcode::log2, {{{{0.97, 1.04}}}, {{{0, 4}}}, {{{0, 1e300}}}, {{{0, 4e-308}}}}},
    {Opcode::log10, {{{{0.97, 1.04}}}, {{{0, 4}}}, {{{0, 1e300}}}, {{{0, 4e-308}}}}},
    {Opcode::log1p, {{{{-0.04, 0.04}}}, {{{-1, 4}}}, {{{0, 1e300}}}}},
    {Opcode::erf, {{{{-1, 1}}}, {{{-6.5, 6.5}}}}},
    {Opcode::erfc, {{{{-1, 1}}}, {{{-6.5, 10}}}, {{{10, 28}}}}},
    {Opcode::sin, {{{{-0.8, 0.8}}}, {{{-20, 20}}}, {{{-1e6, 1e6}}}, {{{-1e300, 1e300}}}}},
    {Opcode::cos, {{{{-0.8, 0.8}}}, {{{-20, 20}}}, {{{-1e6, 1e6}}}, {{{-1e300, 1e300}}}}},
    {Opcode::tan, {{{{-0.8, 0.8}}}, {{{-20, 20}}}, {{{-1e6, 1e6}}}, {{{-1e300, 1e300}}}}},
    {Opcode::asin, {{{{-1, 1}}}, {{{-0.51, 0.51}}}, {{{0.99, 1}}}}},
    {Opcode::acos, {{{{-1, 1}}}, {{{-0.51, 0.51}}}, {{{0.99, 1}}}, {{{-1, -0.99}}}}},
    {Opcode::atan, {{{{-0.2, 0.2}}}, {{{-2, 2}}}, {{{-20, 20}}}, {{{0, 1e20}}}}},
    {Opcode::sinh, {{{{-0.1, 0.1}}}, {{{-2, 2}}}, {{{-711, 711}}}}},
    {Opcode::cosh, {{{{-0.1, 0.1}}}, {{{-2, 2}}}, {{{-711, 711}}}}},
    {Opcode::tanh, {{{{-0.1, 0.1}}}, {{{-2, 2}}}, {{{-21, 21}}}}},
    {Opcode::asinh, {{{{-0.1, 0.1}}}, {{{-2, 2}}}, {{{-1e3, 1e3}}}, {{{0, 1e300}}}}},
    {Opcode::acosh, {{{{1, 1.1}}}, {{{1, 4}}}, {{{1, 1e3}}}, {{{1, 1e300}}}}},
    {Opcode::atanh, {{{{-0.1, 0.1}}}, {{{-1, 1}}}, {{{0.99, 1}}}}},
    {Opcode::cbrt, {{{{-8, 8}}}, {{{0, 1e300}}}, {{{0, 4e-308}}}}},
    {Opcode::rsqrt, {{{{0, 4}}}, {{{0, 1e300}}}, {{{0, 4e-308}}}}},
    {Opcode::pow,
     {{{{0, 10}, {-10, 10}}},
      {{{0.9, 1.1}, {-7000, 7000}}},
      {{{0.9999, 1.0001}, {-7e6, 7e6}}},
      {{{0, 1e300}, {-1.05, 1.05}}},
      {{{0, 4e-308}, {-1.05, 1.05}}}}},
    {Opcode::hypot,
     {{{{-1, 1}, {-1, 1}}},
      {{{-100, 100}, {-1, 1}}},
      {{{0, 1e308}, {0, 1e308}}},
      {{{0, 4e-308}, {0, 4e-308}}}}},
    {Opcode::atan2,
     {{{{-1, 1}, {-1, 1}}},
      {{{-20, 20}, {-1, 1}}},
      {{{-0.1, 0.1}, {-1, 1}}},
      {{{0, 4e-308}, {-4e-308, 1e-300}}}}},
};

// x so near to 1 that its logarithm is small beside what the algorithm's tables add, and y so large that the
// power is near an end of the range: the error of ln x counts most there.
Operands power_near_one(Random& random) {
  const double off = std::copysign(std::exp2(uniform(-12, -6, random)), random.chance(50) ? 1.0 : -1.0);
  const double log = std::copysign(uniform(300, 709, random), random.chance(50) ? 1.0 : -1.0);
  return {1 + off, log / std::log1p(off), 0};
}

void add_neighbours(std::vector<double>& numbers, double x) {
  for (const double sign : {1.0, -1.0}) {
    for (const double towards :
         {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}) {
      double y = sign * x;
      for (int i = 0; i < 3; ++i) {
        numbers.push_back(y);
        y = std::nextafter(y, towards);
      }
    }
  }
}

}  // namespace

std::vector<Operands> special_operands(int count) {
  std::vector<double> numbers = {std::numeric_limits<double>::quiet_NaN()};
  for (const double x : {0.0, 0x1p-1022, 1.0, std::numeric_limits<double>::infinity(), 0.5, 2.0, 3.0, 0x1p53})
    add_neighbours(numbers, x);
  if (count == 1) {
    for (const double x : {0.25,
                           0.375,
                           0.703125,
                           1.5,
                           5.625,
                           6.0,
                           10.0,
                           20.0,
                           26.5,
                           27.3,
                           28.0,
                           38.0,
                           100.0,
                           707.0,
                           709.78,
                           710.475,
                           745.13,
                           1000.0,
                           1021.0,
                           1024.0,
                           1074.5,
                           0x1p19,
                           0x1p52,
                           0x1p60,
                           0x1p500,
                           0x1p1000,
                           0x1p-28,
                           0x1p-54,
                           0x1p-400,
                           0x1p-900,
                           0.785398163397448,
                           1.5707963267948966,
                           3.141592653589793})
      add_neighbours(numbers, x);
    for (int k = 1; k <= 64; ++k) numbers.push_back(k * 0.1875);
    for (int k = -1074; k < 1024; k += 7) numbers.push_back(std::ldexp(1.0, k));
    for (int k = 0; k <= 22; ++k) numbers.push_back(std::pow(10.0, k));
    for (int k = 1; k <= 40; ++k) numbers.push_back(static_cast<double>(k) * k * k);
  }
  std::vector<Operands> all;
  for (const double a : numbers) {
    if (count == 1) {
      all.push_back({a, 0, 0});
      continue;
    }
    for (const double b : numbers) {
      if (count == 2) {
        all.push_back({a, b, 0});
        continue;
      }
      for (std::size_t i = 0; i < numbers.size(); i += 3) all.push_back({a, b, numbers[i]});
    }
  }
  return all;
}

std::vector<Operands> known_operands(Opcode code) {
  // Just outside of where the finer table of `precise_log` is 1; an error of r^2 r_lo there made 1.7 ulp.
  if (code == Opcode::pow) return {{0x1.fed68e9a37563p-1, -0x1.265ecffbf39ebp+18, 0}};
  std::vector<double> numbers;
  if (code == Opcode::sin || code == Opcode::cos || code == Opcode::tan) {
    // 6381956970095103 2^797 is the double nearest to a multiple of pi/2; 22 and 355 are near multiples of
    // pi; the others are listed as hard cases of these functions by the CORE-MATH project.
    numbers = {0x1.6ac5b262ca1ffp+849,
               0x1.6ac5b262ca1ffp+851,
               0x1.61a3db8c8d129p+1023,
               0x1.e0000000001c2p-20,
               22,
               355,
               1e22,
               0x1.921fb54442d18p+0,
               0x1.921fb54442d18p+1,
               0x1.fffffffffffffp+1023,
               0x1p1023};
    for (int k = 1; k < 2000; ++k) numbers.push_back(k * 1.5707963267948966);
    for (int k = 20; k < 1023; ++k) numbers.push_back(std::ldexp(1.5707963267948966, k));
  } else if (code == Opcode::exp) {  // hard to round, by the CORE-MATH project
    numbers = {0x1.0122ef37212ebp-1, 0x1.00d48a707b93ep-1, 0x1.1192c566b2f9ep-1, 0x1.55a5eeda10aa8p-1,
               0x1.a0196e29eac72p-1, 0x1.fc97b3f78b512p-1, 0x1.0f67c115ce1dep+0, 0x1.5d381153c7735p+0};
  }
  std::vector<Operands> all;
  for (const double x : numbers) {
    all.push_back({x, 0, 0});
    all.push_back({-x, 0, 0});
  }
  return all;
}

std::vector<Operands> random_operands(Opcode code, std::size_t count, Random& random) {
  const auto found = ranges.find(code);
  std::vector<Operands> all(count);
  for (Operands& each : all) {
    const bool anything = found == ranges.end() || random.chance(15);
    if (anything) {
      for (double& x : each) x = from_bits(random.next());
      if (random.chance(50)) each[1] = each[0] * uniform(-4, 4, random);  // of one size
      continue;
    }
    if (code == Opcode::pow && random.chance(25)) {
      each = power_near_one(random);
      continue;
    }
    const auto& choice = found->second[random.below(found->second.size())];
    for (std::size_t k = 0; k < choice.size(); ++k) each[k] = uniform(choice[k].low, choice[k].high, random);
    if (random.chance(20)) each[0] = std::ldexp(each[0], -static_cast<int>(random.below(60)));
  }
  return all;
}

void round_to_singles(std::vector<Operands>& operands) {
  for (Operands& each : operands) {
    for (double& x : each) {
      volatile const float single = static_cast<float>(x);
      x = static_cast<double>(single);
    }
  }
}

Operands near(const Operands& operands, Random& random) {
  Operands result = operands;
  for (double& x : result)
    x = from_bits(std::bit_cast<std::uint64_t>(x) + random.below(1u << 21) - (1u << 20));
  return result;
}

}  // namespace eagle::accuracy
