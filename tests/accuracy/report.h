// What a test of accuracy found, for people and for the manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/kernel/ir.h"
#include "tests/accuracy/reference.h"

namespace eagle::accuracy {

constexpr std::uint64_t seed = 20'261'129;

struct Largest {
  double error;  // in ulp
  std::string at;
  std::size_t operands;  // that were tried
};

// "pow(0x1p+0, 0x1p+1)"
std::string describe(kernel::Opcode code, const Operands& operands);
// Prints it, and appends "function type error operands" to the file that EAGLE_ACCURACY_OUT names.
void report(kernel::Opcode code, kernel::Scalar scalar, const Largest& largest);

}  // namespace eagle::accuracy
