#include "tests/accuracy/inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include "engine/kernel/typing.h"

namespace eagle::accuracy {
namespace {

using kernel::Opcode;
using kernel::Random;
using kernel::Scalar;

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

// Those of hard.txt, which says how it is written. Each with its opposite, where that is in the format too.
std::vector<Operands> hard_operands(Opcode code, Scalar scalar) {
  std::ifstream file(EAGLE_HARD_OPERANDS);
  if (!file) throw std::runtime_error("cannot read " EAGLE_HARD_OPERANDS);
  const kernel::Rule& rule = kernel::rule_of(code);
  std::vector<Operands> all;
  for (std::string line, name, type; std::getline(file, line);) {
    std::istringstream words(line);
    if (!(words >> name >> type) || name != rule.name || (type == "f32" && scalar != Scalar::f32)) continue;
    std::vector<double> numbers;
    for (std::string word; words >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
    for (std::size_t i = 0; i + static_cast<std::size_t>(rule.operands) <= numbers.size();
         i += static_cast<std::size_t>(rule.operands)) {
      const double a = numbers[i], b = rule.operands == 2 ? numbers[i + 1] : 0;
      all.push_back({a, b, 0});
      all.push_back({-a, b, 0});
    }
  }
  return all;
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

std::vector<Operands> known_operands(Opcode code, Scalar scalar) {
  std::vector<Operands> all = hard_operands(code, scalar);
  if (code != Opcode::sin && code != Opcode::cos && code != Opcode::tan) return all;
  constexpr double right = 1.5707963267948966;
  for (int k = 1; k < 2000; ++k) all.push_back({k * right, 0, 0});
  for (int k = 20; k < 1023; ++k) all.push_back({std::ldexp(right, k), 0, 0});
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

Operands near(const Operands& operands, int reach, const Format& format, Random& random) {
  Operands result = operands;
  const int shift = doubles.precision - format.precision;
  const std::uint64_t most = std::uint64_t{1} << reach;
  for (double& x : result)
    x = from_bits(std::bit_cast<std::uint64_t>(x) + ((random.below(2 * most + 1) - most) << shift));
  return result;
}

}  // namespace eagle::accuracy
