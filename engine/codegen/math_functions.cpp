#include "engine/codegen/math_functions.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "engine/kernel/math/functions.h"
#include "engine/kernel/typing.h"

namespace eagle::codegen {

using kernel::Opcode;
using kernel::Scalar;
using llvm::Value;

namespace math = kernel::math;

class MathFunctions::Scope final : public LaneScope {
public:
  Scope(llvm::IRBuilder<>& builder, MathFunctions& functions)
      : LaneScope(builder, functions.traits_), functions_(functions) {}
  Value* soft_fma(Value* a, Value* b_operand, Value* c) override {
    return functions_.called(b, functions_.function(Opcode::fma, false), {a, b_operand, c});
  }

private:
  MathFunctions& functions_;
};

MathFunctions::MathFunctions(llvm::Module& module, const llvm::TargetMachine& machine, int width)
    : module_(module), width_(width) {
  const llvm::MCSubtargetInfo& target = *machine.getMCSubtargetInfo();
  const bool x86 = machine.getTargetTriple().isX86();
  traits_.fused = !x86 || target.checkFeatures("+fma");
  traits_.rounds = !x86 || target.checkFeatures("+sse4.1");
  traits_.permutes = x86 && target.checkFeatures("+avx512f");
}

Value* MathFunctions::emit(llvm::IRBuilder<>& b, Opcode code, Scalar scalar,
                           const std::vector<Value*>& operands) {
  Scope scope(b, *this);
  const auto lane = [&](std::size_t i) { return Lane(&scope, operands[std::min(i, operands.size() - 1)]); };
  if (math::is_question(code)) return math::question(code, lane(0)).value;
  if (math::is_selection(code)) return math::selection(code, lane(0), lane(1), lane(2)).value;
  if (code == Opcode::fma && traits_.fused) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {operands[0]->getType()}, operands);
  }
  if (scalar == Scalar::f64) return called(b, function(code, false), operands);
  return called_in_doubles(b, function(code, code == Opcode::fma), operands);
}

llvm::Function* MathFunctions::function(Opcode code, bool singles) {
  const kernel::Rule& rule = kernel::rule_of(code);
  const std::string name = "eagle_" + std::string(rule.name) + (singles ? "_of_singles" : "");
  llvm::Function*& made = functions_[name];
  if (made != nullptr) return made;

  llvm::IRBuilder<> b(module_.getContext());
  llvm::Type* type = b.getDoubleTy();
  if (width_ > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(width_));
  const std::vector<llvm::Type*> parameters(static_cast<std::size_t>(rule.operands), type);
  made = llvm::Function::Create(llvm::FunctionType::get(type, parameters, false),
                                llvm::Function::InternalLinkage, name, module_);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->addFnAttr("no-builtins");
  if (width_ > 1) {
    made->addFnAttr("prefer-vector-width", "512");
    made->addFnAttr("min-legal-vector-width", "512");
  }
  // A frame pointer lets LLVM align the stack for vectors it spills: unaligned ones cost up to twice the
  // time.
  made->addFnAttr("frame-pointer", "all");
  b.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", made));
  Scope scope(b, *this);
  const auto argument = [&](unsigned i) {
    return Lane(&scope, made->getArg(std::min<unsigned>(i, made->arg_size() - 1)));
  };
  const Lane x = argument(0), y = argument(1), z = argument(2);
  const Lane value = code != Opcode::fma ? math::algorithm(code, x, y, z)
                     : singles           ? math::fma_of_singles(x, y, z)
                                         : math::soft_fma(x, y, z);
  b.CreateRet(value.value);
  return made;
}

// In native vectors: a single value fills one with itself, so that no lane holds anything else.
Value* MathFunctions::called(llvm::IRBuilder<>& b, llvm::Function* function,
                             const std::vector<Value*>& operands) {
  std::vector<Value*> arguments = operands;
  const bool one = width_ > 1 && !operands[0]->getType()->isVectorTy();
  if (one) {
    for (Value*& argument : arguments)
      argument = b.CreateVectorSplat(static_cast<unsigned>(width_), argument);
  }
  Value* result = b.CreateCall(function, arguments);
  return one ? b.CreateExtractElement(result, std::uint64_t{0}) : result;
}

// Vectors of singles may have as many lanes as two of doubles: they are computed in halves.
Value* MathFunctions::called_in_doubles(llvm::IRBuilder<>& b, llvm::Function* function,
                                        const std::vector<Value*>& operands) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  const unsigned lanes = type == nullptr ? 1 : type->getNumElements();
  const unsigned step = std::min(lanes, static_cast<unsigned>(width_));
  std::vector<Value*> pieces;
  for (unsigned first = 0; first < lanes; first += step) {
    std::vector<int> chosen;
    for (unsigned i = 0; i < step; ++i) chosen.push_back(static_cast<int>(first + i));
    llvm::Type* wide = type == nullptr ? b.getDoubleTy() : llvm::FixedVectorType::get(b.getDoubleTy(), step);
    llvm::Type* narrow = type == nullptr ? b.getFloatTy() : llvm::FixedVectorType::get(b.getFloatTy(), step);
    std::vector<Value*> arguments;
    for (Value* operand : operands) {
      Value* piece = step == lanes ? operand : b.CreateShuffleVector(operand, chosen);
      arguments.push_back(b.CreateFPExt(piece, wide));
    }
    pieces.push_back(b.CreateFPTrunc(called(b, function, arguments), narrow));
  }
  if (pieces.size() == 1) return pieces[0];
  std::vector<int> all;
  for (unsigned i = 0; i < lanes; ++i) all.push_back(static_cast<int>(i));
  return b.CreateShuffleVector(pieces[0], pieces[1], all);
}

}  // namespace eagle::codegen
