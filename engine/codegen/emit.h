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
struct Shape {
  int width = 1;
  int copies = 1;
  [[nodiscard]] int lanes() const { return width * copies; }
};

// Chooses the shape from the register width and count of the target and what the kernel keeps live.
Shape shape_for(const kernel::Kernel& kernel, const llvm::TargetMachine& machine);

// The module with one function, `entry_name`, of type KernelFunction (engine/codegen/abi.h). Samples that
// do not fill a block of `shape.lanes()` run one by one through the same ops.
inline constexpr const char* entry_name = "eagle_kernel";
std::unique_ptr<llvm::Module> emit(const kernel::Kernel& kernel, const Shape& shape,
                                   llvm::LLVMContext& context, const llvm::TargetMachine& machine);

}  // namespace eagle::codegen
