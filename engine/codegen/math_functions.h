// The math functions of a module being emitted: each one it uses becomes one function of native vectors
// (of scalars where they have one lane), which its kernel calls. Included by the compile helper alone.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <string>
#include <vector>

#include "engine/codegen/lane_number.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

class MathFunctions {
public:
  // `width`: doubles in one native vector. The references are kept.
  MathFunctions(llvm::Module& module, const llvm::TargetMachine& machine, int width);

  // The value of the math function `code` (engine/kernel/math/functions.h) of operands of one type: f64 or
  // f32, scalars or vectors of any number of lanes. Emitted at the builder's insert point, as few
  // instructions or as calls.
  llvm::Value* emit(llvm::IRBuilder<>& b, kernel::Opcode code, kernel::Scalar scalar,
                    const std::vector<llvm::Value*>& operands);

private:
  // By name: what is computed in doubles, `fma` apart in its two soft forms.
  llvm::Function* function(kernel::Opcode code, bool singles);
  llvm::Value* called(llvm::IRBuilder<>& b, llvm::Function* function,
                      const std::vector<llvm::Value*>& operands);
  llvm::Value* called_in_doubles(llvm::IRBuilder<>& b, llvm::Function* function,
                                 const std::vector<llvm::Value*>& operands);
  class Scope;

  llvm::Module& module_;
  TargetTraits traits_;
  int width_;
  std::map<std::string, llvm::Function*> functions_;
};

}  // namespace eagle::codegen
