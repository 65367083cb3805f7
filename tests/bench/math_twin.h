// What a C++ programmer has for functions of whole arrays: glibc's libmvec (right to 4 ulp), and SLEEF (1
// ulp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace eagle::bench {

// sin(x) exp(-x x) + log1p(|x|) tanh(x) + |x|^0.3 of n numbers.
void mixed_libmvec(const double* x, double* y, std::int64_t n);
// False where this build has no SLEEF for the CPU's vectors: nothing was done.
bool mixed_sleef(const double* x, double* y, std::int64_t n);

// One function by its own name, of a and (where it has two operands) b. A null `sleef` is missing there.
struct ArrayFunction {
  std::string_view name;
  void (*libmvec)(const double* a, const double* b, double* y, std::int64_t n);
  void (*sleef)(const double* a, const double* b, double* y, std::int64_t n);
};
std::span<const ArrayFunction> array_functions();

}  // namespace eagle::bench
