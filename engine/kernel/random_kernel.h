// Random kernels and numbers, for tests and `eaglectl verify`: every opcode, type and role, nested ifs, loops
// and switches, vectors, tables, a mask. The same seed gives the same kernel on every machine.
#pragma once

#include <cstdint>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// SplitMix64: small, and the same everywhere (the standard's distributions are not).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound);  // 0 <= result < bound, bound >= 1
  bool chance(unsigned percent) { return below(100) < percent; }

private:
  std::uint64_t state_;
};

// A number as bits, zero-extended: everyday values mostly, and often one of those that go wrong (signed
// zeros, infinities, NaN, subnormals, the ends of the range).
std::uint64_t random_bits(Scalar scalar, Random& random);

struct RandomKernelOptions {
  int ops = 40;              // at most, nested ones included (and a few constants beside)
  int depth = 3;             // of nested regions
  int max_trips = 6;         // of a loop, at most
  int cases = 4;             // of a switch, at most
  int arguments = 8;         // at most, before outputs and mask
  int outputs = 3;           // at most
  int extent = 4;            // of vectors, matrices and axes of tables, at most
  unsigned terminated = 40;  // percent of the kernels that have a mask
  unsigned shared = 25;      // percent of the kernels that have accumulators, and of those with reductions
};

// A kernel that verifies.
Kernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options = {});

// The kernel as its text form keeps it.
Kernel without_locations(Kernel kernel);

}  // namespace eagle::kernel
