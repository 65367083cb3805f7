// Emits a kernel as LLVM IR: lanes with masks, k native vectors side by side.
//
// Included by the compile helper alone; nothing else may see LLVM. docs/design/vector_form.md shows the
// form and its measurements.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "engine/codegen/shape.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

// The module with one function, `entry_name`, of type KernelFunction (engine/codegen/abi.h). Samples that
// do not fill a block of `shape.lanes()` run one by one through the same ops.
inline constexpr const char* entry_name = "eagle_kernel";
std::unique_ptr<llvm::Module> emit(const kernel::Kernel& kernel, const Shape& shape,
                                   llvm::LLVMContext& context, const llvm::TargetMachine& machine);

}  // namespace eagle::codegen
