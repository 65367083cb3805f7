// Shapes: how many samples a kernel's code takes at once. Like emit.h, for the compile helper alone.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// How wide a kernel is emitted. `width` samples fill one native vector of the kernel's widest type;
// `copies` of them run side by side so that latency-bound loops fill the pipes.
inline constexpr int most_copies = 4;
struct Shape {
  int width = 1;
  int copies = 1;
  [[nodiscard]] int lanes() const { return width * copies; }
};

// Chooses the shape from the register width and count of the target and what the kernel keeps live. `copies`
// other than 0 are taken in place of that choice, by kernels that have a choice: large ones
// (large_kernel.h) and those whose samples run one at a time have none.
Shape shape_for(const kernel::Kernel& kernel, const llvm::TargetMachine& machine, int copies = 0);

bool is_device(const llvm::TargetMachine& machine);
// Of the target's native vectors; a thread of a GPU has one lane.
int vector_bytes(const llvm::TargetMachine& machine);

}  // namespace eagle::codegen
