// Emits a kernel as LLVM IR: lanes with masks, k native vectors side by side.
//
// Included by the compile helper alone; nothing else may see LLVM. docs/design/vector_form.md shows the
// form and its measurements.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

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

// The module with one function, `entry_name`, of type KernelFunction (engine/codegen/abi.h). Samples that
// do not fill a block of `shape.lanes()` run one by one through the same ops.
inline constexpr const char* entry_name = "eagle_kernel";
std::unique_ptr<llvm::Module> emit(const kernel::Kernel& kernel, const Shape& shape,
                                   llvm::LLVMContext& context, const llvm::TargetMachine& machine);

}  // namespace eagle::codegen
