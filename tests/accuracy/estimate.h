// Errors in ulp without MPFR, which would take most of the time: good enough to tell which operands MPFR has
// to look at for the largest error to be exact.
#pragma once

#include <span>

#include "engine/kernel/ir.h"
#include "tests/accuracy/reference.h"

namespace eagle::accuracy {

// By the C library's long double functions. An error in ulp is at most the estimate and the margin; infinite
// as `ulps` has it. The margin allows them 32 units in their own last place, where glibc's manual lists less
// than 10. It is infinite where long double is no longer than double.
double estimate(kernel::Opcode code, const Operands& operands, double found, const Format& format);
double margin_of_estimates(const Format& format);

// Functions of one single by glibc's vectors of double precision (libmvec, by whose documentation an error is
// below 4 units), or by its functions of one double where there are none.
using Wholesale = void (*)(std::span<const double> operands, std::span<double> results);
Wholesale wholesale(kernel::Opcode code);
// f(-x) is f(x) for an even function, -f(x) for an odd one.
enum class Parity { none, even, odd };
Parity parity_of(kernel::Opcode code);
// The estimates for found[i], where results[i] is what `wholesale` gave for it, and the largest of them.
// 2^-29 of a unit of a single is one of a double: the margin allows 16.
constexpr double margin_of_singles = 0x1p-25;
double estimate_singles(std::span<const float> found, std::span<const double> results,
                        std::span<double> errors);

}  // namespace eagle::accuracy
