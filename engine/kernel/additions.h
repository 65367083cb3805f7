// Additions: the accum_adds of a kernel, and how compiled code hands over what they add.
//
// Compiled code never touches an accumulator: it notes which element gets what, and engine/run adds it in the
// order of samples and the program.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel {

struct Addition {
  const Op* op = nullptr;      // in the kernel it was found in
  std::uint32_t argument = 0;  // the accumulator
  bool conditional = false;    // inside a region: some samples may not execute it
};

struct Additions {
  std::vector<Addition> sites;  // in program order
  // Notes that one sample makes at most: each an i64 for the element and the value's components.
  std::int64_t bytes_per_sample = 0;
  // Each op runs at most once a sample, and there is room for a note of every op for every sample of a tile.
  // Else (an op in a loop, or very many) notes come one after the other, as many as there are.
  bool by_sample = true;
};

// The result points into `kernel`.
Additions additions_of(const Kernel& kernel);

}  // namespace eagle::kernel
