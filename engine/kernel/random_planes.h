// Planes full of random numbers for a kernel, and their comparison: what it takes to run one launch in
// two ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/kernel/interpret.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/random_kernel.h"

namespace eagle::kernel {

// One launch's planes, all by argument index. Each component has one guard element before its first and one
// after its last, which no launch may touch. Copies are planes of their own.
struct Planes {
  std::vector<std::vector<std::byte>> bytes;  // guards included; empty for a param
  std::vector<std::int64_t> strides;          // bytes from one component to the next
  std::vector<std::int64_t> lengths;          // elements: samples, or of the table; 1 for a param
  std::vector<std::uint64_t> params;          // bits, zero-extended
  std::vector<int> element_bytes;

  // The first sample or element of the first component; null for a param.
  std::vector<std::byte*> addresses();
  // Points into this object.
  std::vector<InterpreterPlane> interpreter_planes();
};

// Random bits everywhere, a fifth of the mask set, and 1 to 9 elements in a table without axes.
Planes random_planes(const Kernel& kernel, std::int64_t samples, Random& random);

// Where two launches of a kernel on equal planes differ, guards included, in words; empty: nowhere. A NaN
// equals any other, everything else is compared by bits.
std::string first_difference(const Kernel& kernel, const Planes& found, const Planes& expected);

}  // namespace eagle::kernel
