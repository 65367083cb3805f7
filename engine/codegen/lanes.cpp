#include "engine/codegen/lanes.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <utility>

namespace eagle::codegen {
namespace {

using kernel::Opcode;
using kernel::Scalar;
using llvm::Value;

// Sides of a branch with at most this many ops are cheaper to compute than to jump around.
constexpr std::size_t flat_ops = 12;

std::size_t ops_in(const kernel::Region& region) {
  std::size_t count = region.ops.size();
  for (const kernel::Op& op : region.ops) {
    for (const kernel::Region& nested : op.regions) count += ops_in(nested);
  }
  return count;
}

llvm::CmpInst::Predicate predicate(Opcode code, bool real) {
  using P = llvm::CmpInst;
  switch (code) {
    case Opcode::eq: return real ? P::FCMP_OEQ : P::ICMP_EQ;
    case Opcode::ne: return real ? P::FCMP_UNE : P::ICMP_NE;
    case Opcode::lt: return real ? P::FCMP_OLT : P::ICMP_SLT;
    case Opcode::le: return real ? P::FCMP_OLE : P::ICMP_SLE;
    case Opcode::gt: return real ? P::FCMP_OGT : P::ICMP_SGT;
    default: return real ? P::FCMP_OGE : P::ICMP_SGE;
  }
}

}  // namespace

LaneEmitter::LaneEmitter(const kernel::Kernel& kernel, const Shape& shape, llvm::IRBuilder<>& builder)
    : kernel_(kernel), shape_(shape), b_(builder), values_(kernel.value_types.size()) {}

void LaneEmitter::define(kernel::ValueId id, LaneValue value) { values_[id] = std::move(value); }

llvm::Type* LaneEmitter::scalar_type(Scalar scalar) const {
  switch (scalar) {
    case Scalar::f64: return b_.getDoubleTy();
    case Scalar::f32: return b_.getFloatTy();
    case Scalar::i64: return b_.getInt64Ty();
    case Scalar::i32: return b_.getInt32Ty();
    case Scalar::boolean: return b_.getInt1Ty();
  }
  return nullptr;
}

llvm::Type* LaneEmitter::lane_type(Scalar scalar) const {
  llvm::Type* type = scalar_type(scalar);
  return shape_.width == 1 ? type : llvm::FixedVectorType::get(type, static_cast<unsigned>(shape_.width));
}

LaneValue LaneEmitter::spread(const LaneValue& value) {
  if (!value.uniform) return value;
  LaneValue wide{value.type, false, {}};
  for (Value* scalar : value.parts) {
    Value* vector =
        shape_.width == 1 ? scalar : b_.CreateVectorSplat(static_cast<unsigned>(shape_.width), scalar);
    wide.parts.insert(wide.parts.end(), static_cast<std::size_t>(shape_.copies), vector);
  }
  return wide;
}

LaneValue LaneEmitter::spread(kernel::ValueId id) { return spread(values_[id]); }

Value* LaneEmitter::bits_of(Value* mask) {
  if (shape_.width == 1) return mask;
  return b_.CreateBitCast(mask, b_.getIntNTy(static_cast<unsigned>(shape_.width)));
}

Value* LaneEmitter::any(const std::vector<Value*>& masks) {
  Value* merged = masks.front();
  for (std::size_t j = 1; j < masks.size(); ++j) merged = b_.CreateOr(merged, masks[j]);
  if (shape_.width == 1) return merged;
  Value* bits = bits_of(merged);
  return b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

Value* LaneEmitter::all(const std::vector<Value*>& masks) {
  Value* merged = masks.front();
  for (std::size_t j = 1; j < masks.size(); ++j) merged = b_.CreateAnd(merged, masks[j]);
  if (shape_.width == 1) return merged;
  Value* bits = bits_of(merged);
  return b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

Value* LaneEmitter::count(const std::vector<Value*>& masks) {
  Value* sum = b_.getInt64(0);
  for (Value* mask : masks) {
    Value* bits = b_.CreateZExt(bits_of(mask), b_.getInt64Ty());
    sum = b_.CreateAdd(sum, b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits));
  }
  return sum;
}

LaneValue LaneEmitter::constant(const kernel::Type& type, std::uint64_t bits) {
  llvm::Type* scalar = scalar_type(type.scalar);
  llvm::Constant* value = nullptr;
  if (type.scalar == Scalar::f64) {
    value = llvm::ConstantFP::get(scalar, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  } else if (type.scalar == Scalar::f32) {
    const llvm::APInt narrow(32, bits & 0xffffffffu);
    value = llvm::ConstantFP::get(scalar, llvm::APFloat(llvm::APFloat::IEEEsingle(), narrow));
  } else {
    value = llvm::ConstantInt::get(scalar, bits);
  }
  LaneValue result{type, true, {}};
  result.parts.assign(static_cast<std::size_t>(type.components()), value);
  return result;
}

// min: b < a ? b : isnan(a) ? b : a. The order of the selects is the contract; LLVM's minnum leaves the
// sign of zero open and is never used.
Value* LaneEmitter::smaller_or_larger(bool smaller, Scalar scalar, Value* a, Value* b) {
  const bool real = kernel::is_real(scalar);
  Value* better = b_.CreateCmp(predicate(smaller ? Opcode::lt : Opcode::gt, real), b, a);
  if (!real) return b_.CreateSelect(better, b, a);
  Value* a_is_nan = b_.CreateFCmpUNO(a, a);
  return b_.CreateSelect(better, b, b_.CreateSelect(a_is_nan, b, a));
}

// `from` and `to` are the scalar types; the value may be a vector of them.
Value* LaneEmitter::convert(Value* value, Scalar from, Scalar to) {
  if (from == to) return value;
  llvm::Type* type = scalar_type(to);
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType())) {
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  }
  if (to == Scalar::boolean) {
    llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
    return kernel::is_real(from) ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  if (from == Scalar::boolean) {
    return kernel::is_real(to) ? b_.CreateUIToFP(value, type) : b_.CreateZExt(value, type);
  }
  if (kernel::is_real(from) && kernel::is_real(to)) return b_.CreateFPCast(value, type);
  if (kernel::is_real(to)) return b_.CreateSIToFP(value, type);
  if (kernel::is_real(from)) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, value->getType()}, {value});
  }
  return b_.CreateSExtOrTrunc(value, type);
}

Value* LaneEmitter::plain(Opcode code, Scalar scalar, const std::vector<Value*>& operands) {
  const bool real = kernel::is_real(scalar);
  Value* a = operands[0];
  Value* b = operands.size() > 1 ? operands[1] : nullptr;
  switch (code) {
    case Opcode::add: return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Opcode::sub: return real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Opcode::mul: return real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Opcode::div: return b_.CreateFDiv(a, b);
    case Opcode::neg: return real ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case Opcode::abs:
      if (real) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      return b_.CreateSelect(b_.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())), b_.CreateNeg(a), a);
    case Opcode::min: return smaller_or_larger(true, scalar, a, b);
    case Opcode::max: return smaller_or_larger(false, scalar, a, b);
    case Opcode::sqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge: return b_.CreateCmp(predicate(code, real), a, b);
    case Opcode::logical_and: return b_.CreateAnd(a, b);
    case Opcode::logical_or: return b_.CreateOr(a, b);
    case Opcode::logical_xor: return b_.CreateXor(a, b);
    case Opcode::logical_not: return b_.CreateNot(a);
    case Opcode::constant:
    case Opcode::select:
    case Opcode::convert:
    case Opcode::if_: break;  // handled by `op`
  }
  llvm_unreachable("an opcode that the verifier does not know");
}

void LaneEmitter::op(const kernel::Op& op, const std::vector<Value*>& live) {
  if (op.code == Opcode::if_) return branch(op, live);
  const kernel::Type type = kernel_.value_types[op.results[0]];
  if (op.code == Opcode::constant) return define(op.results[0], constant(type, op.bits));

  std::vector<LaneValue> operands;
  bool uniform = true;
  for (const kernel::ValueId id : op.operands) {
    operands.push_back(values_[id]);
    uniform = uniform && values_[id].uniform;
  }
  if (!uniform) {
    for (LaneValue& operand : operands) operand = spread(operand);
  }
  const Scalar scalar = operands[0].type.scalar;
  LaneValue result{type, uniform, {}};
  const std::size_t copies = uniform ? 1 : static_cast<std::size_t>(shape_.copies);
  for (std::size_t c = 0; c < static_cast<std::size_t>(type.components()); ++c) {
    for (std::size_t j = 0; j < copies; ++j) {
      const std::size_t part = c * copies + j;
      if (op.code == Opcode::select) {  // one condition for all components
        result.parts.push_back(
            b_.CreateSelect(operands[0].parts[j], operands[1].parts[part], operands[2].parts[part]));
      } else if (op.code == Opcode::convert) {
        result.parts.push_back(convert(operands[0].parts[part], scalar, type.scalar));
      } else {
        std::vector<Value*> inputs;
        for (const LaneValue& operand : operands) inputs.push_back(operand.parts[part]);
        result.parts.push_back(plain(op.code, scalar, inputs));
      }
    }
  }
  define(op.results[0], std::move(result));
}

void LaneEmitter::region(const kernel::Region& region, const std::vector<Value*>& live) {
  for (const kernel::Op& nested : region.ops) op(nested, live);
}

std::vector<LaneValue> LaneEmitter::yields_of(const kernel::Region& region, bool spread_all) {
  std::vector<LaneValue> yields;
  for (const kernel::ValueId id : region.yields) {
    yields.push_back(spread_all ? spread(values_[id]) : values_[id]);
  }
  return yields;
}

void LaneEmitter::branch(const kernel::Op& op, const std::vector<Value*>& live) {
  const LaneValue condition = values_[op.operands[0]];
  if (condition.uniform) return uniform_branch(op, condition.parts[0], live);
  const std::size_t ops = ops_in(op.regions[0]) + ops_in(op.regions[1]);
  return ops <= flat_ops ? flat_branch(op, condition, live) : divergent_branch(op, condition, live);
}

void LaneEmitter::flat_branch(const kernel::Op& op, const LaneValue& condition, const std::vector<Value*>& live) {
  region(op.regions[0], live);
  region(op.regions[1], live);
  const std::vector<LaneValue> then_values = yields_of(op.regions[0], true);
  const std::vector<LaneValue> else_values = yields_of(op.regions[1], true);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    LaneValue result{then_values[r].type, false, {}};
    for (std::size_t part = 0; part < then_values[r].parts.size(); ++part) {
      Value* mask = condition.parts[part % static_cast<std::size_t>(shape_.copies)];
      result.parts.push_back(b_.CreateSelect(mask, then_values[r].parts[part], else_values[r].parts[part]));
    }
    define(op.results[r], std::move(result));
  }
}

void LaneEmitter::uniform_branch(const kernel::Op& op, Value* condition, const std::vector<Value*>& live) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = b_.getContext();
  auto* then_block = llvm::BasicBlock::Create(context, "then", function);
  auto* else_block = llvm::BasicBlock::Create(context, "else", function);
  auto* join = llvm::BasicBlock::Create(context, "join", function);
  b_.CreateCondBr(condition, then_block, else_block);

  // A result is uniform when both sides yield it so; whether they do is known once both are emitted.
  b_.SetInsertPoint(then_block);
  region(op.regions[0], live);
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  b_.SetInsertPoint(else_block);
  region(op.regions[1], live);
  llvm::BasicBlock* else_end = b_.GetInsertBlock();

  std::vector<std::pair<LaneValue, LaneValue>> merged;
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    LaneValue a = values_[op.regions[0].yields[r]];
    LaneValue b = values_[op.regions[1].yields[r]];
    if (!a.uniform || !b.uniform) {
      b_.SetInsertPoint(then_end);
      a = spread(a);
      b_.SetInsertPoint(else_end);
      b = spread(b);
    }
    merged.emplace_back(std::move(a), std::move(b));
  }
  b_.SetInsertPoint(then_end);
  b_.CreateBr(join);
  b_.SetInsertPoint(else_end);
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    const auto& [a, b] = merged[r];
    LaneValue result{a.type, a.uniform, {}};
    for (std::size_t part = 0; part < a.parts.size(); ++part) {
      llvm::PHINode* phi = b_.CreatePHI(a.parts[part]->getType(), 2);
      phi->addIncoming(a.parts[part], then_end);
      phi->addIncoming(b.parts[part], else_end);
      result.parts.push_back(phi);
    }
    define(op.results[r], std::move(result));
  }
}

void LaneEmitter::divergent_branch(const kernel::Op& op, const LaneValue& condition,
                                   const std::vector<Value*>& live) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = b_.getContext();
  std::vector<std::vector<LaneValue>> sides;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    std::vector<Value*> taken;
    for (std::size_t j = 0; j < condition.parts.size(); ++j) {
      Value* mask = side == 0 ? condition.parts[j] : b_.CreateNot(condition.parts[j]);
      taken.push_back(live.empty() ? mask : b_.CreateAnd(mask, live[j]));
    }
    auto* body = llvm::BasicBlock::Create(context, "side", function);
    auto* after = llvm::BasicBlock::Create(context, "after", function);
    Value* entered = any(taken);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateCondBr(entered, body, after);
    b_.SetInsertPoint(body);
    region(op.regions[side], taken);
    std::vector<LaneValue> yields = yields_of(op.regions[side], true);
    llvm::BasicBlock* body_end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (LaneValue& value : yields) {
      for (Value*& part : value.parts) {
        llvm::PHINode* phi = b_.CreatePHI(part->getType(), 2);
        phi->addIncoming(part, body_end);
        // No lane takes this side, so the select below never takes this value.
        phi->addIncoming(llvm::Constant::getNullValue(part->getType()), before);
        part = phi;
      }
    }
    sides.push_back(std::move(yields));
  }
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    LaneValue result{sides[0][r].type, false, {}};
    for (std::size_t part = 0; part < sides[0][r].parts.size(); ++part) {
      Value* mask = condition.parts[part % static_cast<std::size_t>(shape_.copies)];
      result.parts.push_back(b_.CreateSelect(mask, sides[0][r].parts[part], sides[1][r].parts[part]));
    }
    define(op.results[r], std::move(result));
  }
}

}  // namespace eagle::codegen
