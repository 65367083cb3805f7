#include "engine/codegen/lanes.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <utility>

#include "engine/kernel/scalar_math.h"

namespace eagle::codegen {
namespace {

using kernel::Opcode;
using kernel::Scalar;
using llvm::Value;

llvm::CmpInst::Predicate predicate(Opcode code, bool real) {
  using P = llvm::CmpInst;
  switch (code) {
    case Opcode::eq:
      return real ? P::FCMP_OEQ : P::ICMP_EQ;
    case Opcode::ne:
      return real ? P::FCMP_UNE : P::ICMP_NE;
    case Opcode::lt:
      return real ? P::FCMP_OLT : P::ICMP_SLT;
    case Opcode::le:
      return real ? P::FCMP_OLE : P::ICMP_SLE;
    case Opcode::gt:
      return real ? P::FCMP_OGT : P::ICMP_SGT;
    default:
      return real ? P::FCMP_OGE : P::ICMP_SGE;
  }
}

}  // namespace

LaneEmitter::LaneEmitter(const kernel::Kernel& kernel, const std::vector<bool>& uniform,
                         const LaunchValues& launch, MathFunctions& math, const Shape& shape,
                         llvm::IRBuilder<>& builder)
    : kernel_(kernel),
      uniform_(uniform),
      launch_(launch),
      math_(math),
      shape_(shape),
      b_(builder),
      values_(kernel.value_types.size()) {}

void LaneEmitter::at(Value* sample, Value* step) {
  sample_ = sample;
  step_ = step;
}

void LaneEmitter::define(kernel::ValueId id, LaneValue value) { values_[id] = as_decided(value, id); }

// ---- lanes and masks

llvm::Type* LaneEmitter::scalar_type(Scalar scalar) const {
  switch (scalar) {
    case Scalar::f64:
      return b_.getDoubleTy();
    case Scalar::f32:
      return b_.getFloatTy();
    case Scalar::i64:
      return b_.getInt64Ty();
    case Scalar::i32:
      return b_.getInt32Ty();
    case Scalar::boolean:
      return b_.getInt1Ty();
  }
  return nullptr;
}

llvm::Type* LaneEmitter::lane_type(Scalar scalar) const {
  llvm::Type* type = scalar_type(scalar);
  return shape_.width == 1 ? type : llvm::FixedVectorType::get(type, static_cast<unsigned>(shape_.width));
}

llvm::Type* LaneEmitter::memory_type(Scalar scalar) const {
  llvm::Type* type = scalar == Scalar::boolean ? b_.getInt8Ty() : scalar_type(scalar);
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

LaneValue LaneEmitter::as_decided(const LaneValue& value, kernel::ValueId id) {
  return uniform_[id] ? value : spread(value);
}

Value* LaneEmitter::bits_of(Value* mask) {
  if (shape_.width == 1) return mask;
  return b_.CreateBitCast(mask, b_.getIntNTy(static_cast<unsigned>(shape_.width)));
}

Value* LaneEmitter::any(const Masks& masks) {
  Value* merged = masks.front();
  for (std::size_t j = 1; j < masks.size(); ++j) merged = b_.CreateOr(merged, masks[j]);
  if (shape_.width == 1) return merged;
  Value* bits = bits_of(merged);
  return b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

Value* LaneEmitter::all(const Masks& masks) {
  Value* merged = masks.front();
  for (std::size_t j = 1; j < masks.size(); ++j) merged = b_.CreateAnd(merged, masks[j]);
  if (shape_.width == 1) return merged;
  Value* bits = bits_of(merged);
  return b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

Value* LaneEmitter::count(const Masks& masks) {
  Value* sum = b_.getInt64(0);
  for (Value* mask : masks) {
    Value* bits = b_.CreateZExt(bits_of(mask), b_.getInt64Ty());
    sum = b_.CreateAdd(sum, b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits));
  }
  return sum;
}

Value* LaneEmitter::bits(const Masks& masks) {
  Value* all = nullptr;
  for (std::size_t j = 0; j < masks.size(); ++j) {
    Value* some = b_.CreateZExt(bits_of(masks[j]), b_.getInt64Ty());
    if (j > 0) some = b_.CreateShl(some, j * static_cast<std::size_t>(shape_.width));
    all = all == nullptr ? some : b_.CreateOr(all, some);
  }
  return all;
}

Masks LaneEmitter::masks(Value* bits) {
  Masks masks;
  llvm::Type* type = b_.getIntNTy(static_cast<unsigned>(shape_.width));
  for (std::size_t j = 0; j < static_cast<std::size_t>(shape_.copies); ++j) {
    Value* some = b_.CreateTrunc(b_.CreateLShr(bits, j * static_cast<std::size_t>(shape_.width)), type);
    masks.push_back(b_.CreateBitCast(some, lane_type(kernel::Scalar::boolean)));
  }
  return masks;
}

void LaneEmitter::tally(Value* slot, Value* set, const Masks& live, std::size_t part) {
  const bool uniform = set->getType()->isIntegerTy(1) && shape_.lanes() > 1;
  Value* counted = nullptr;
  if (uniform) {
    Value* lanes = live.empty() ? b_.getInt64(static_cast<std::uint64_t>(shape_.lanes())) : count(live);
    counted = b_.CreateSelect(set, lanes, b_.getInt64(0));
  } else {
    counted = count({live.empty() ? set : b_.CreateAnd(set, live[part])});
  }
  b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), slot), counted), slot);
}

llvm::BasicBlock* LaneEmitter::block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, b_.GetInsertBlock()->getParent());
}

Value* LaneEmitter::slot(llvm::Type* type, const llvm::Twine& name) {
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type, nullptr, name);
}

// ---- ops

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

// Planes that were reordered come with a list of what their samples are called.
LaneValue LaneEmitter::sample_index() {
  llvm::BasicBlock* in_order = block("numbers_in_order");
  llvm::BasicBlock* listed = block("numbers_listed");
  llvm::BasicBlock* after = block("numbered");
  b_.CreateCondBr(b_.CreateIsNull(launch_.sample_numbers), in_order, listed);
  b_.SetInsertPoint(in_order);
  const LaneValue one = consecutive_numbers();
  b_.CreateBr(after);
  b_.SetInsertPoint(listed);
  const LaneValue other = listed_numbers();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  LaneValue result{one.type, false, {}};
  for (std::size_t part = 0; part < one.parts.size(); ++part) {
    llvm::PHINode* phi = b_.CreatePHI(one.parts[part]->getType(), 2);
    phi->addIncoming(one.parts[part], in_order);
    phi->addIncoming(other.parts[part], listed);
    result.parts.push_back(phi);
  }
  return result;
}

LaneValue LaneEmitter::listed_numbers() {
  LaneValue result{kernel::Type{Scalar::i64}, false, {}};
  for (int copy = 0; copy < shape_.copies; ++copy) {
    Value* first = b_.CreateAdd(
        sample_, b_.getInt64(static_cast<std::uint64_t>(copy) * static_cast<std::uint64_t>(shape_.width)));
    Value* address = b_.CreateGEP(b_.getInt64Ty(), launch_.sample_numbers, first);
    result.parts.push_back(b_.CreateAlignedLoad(lane_type(Scalar::i64), address, launch_.alignment(8)));
  }
  return result;
}

LaneValue LaneEmitter::consecutive_numbers() {
  Value* first = b_.CreateAdd(launch_.first_sample, sample_);
  LaneValue result{kernel::Type{Scalar::i64}, false, {}};
  for (int copy = 0; copy < shape_.copies; ++copy) {
    const auto offset = static_cast<std::uint64_t>(copy * shape_.width);
    if (shape_.width == 1) {
      result.parts.push_back(b_.CreateAdd(first, b_.getInt64(offset)));
      continue;
    }
    std::vector<llvm::Constant*> lanes;
    for (int lane = 0; lane < shape_.width; ++lane)
      lanes.push_back(b_.getInt64(offset + static_cast<std::uint64_t>(lane)));
    Value* base = b_.CreateVectorSplat(static_cast<unsigned>(shape_.width), first);
    result.parts.push_back(b_.CreateAdd(base, llvm::ConstantVector::get(lanes)));
  }
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

// Division that floors, as Python's. The divisor is replaced by 1 where the machine's would trap: at zero
// (the result is 0) and at MIN / -1 (the quotient is MIN, the remainder 0: what dividing by 1 gives).
Value* LaneEmitter::floored(bool quotient, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  const unsigned bits = type->getScalarSizeInBits();
  Value* by_zero = b_.CreateICmpEQ(b, zero);
  Value* overflows =
      b_.CreateAnd(b_.CreateICmpEQ(a, llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(bits))),
                   b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)));
  Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, overflows), llvm::ConstantInt::get(type, 1), b);
  Value* truncated = b_.CreateSDiv(a, divisor);
  Value* remainder = b_.CreateSub(a, b_.CreateMul(truncated, divisor));
  Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(remainder, divisor), zero);
  Value* below = b_.CreateAnd(b_.CreateICmpNE(remainder, zero), signs_differ);
  Value* result = nullptr;
  if (quotient) {
    result = b_.CreateSelect(below, b_.CreateSub(truncated, llvm::ConstantInt::get(type, 1)), truncated);
  } else {
    result = b_.CreateSelect(below, b_.CreateAdd(remainder, divisor), remainder);
  }
  return b_.CreateSelect(by_zero, zero, result);
}

// Counts outside the type's bits give 0 to the left and the sign to the right; LLVM's give poison.
Value* LaneEmitter::shift(bool left, Value* a, Value* count) {
  llvm::Type* type = a->getType();
  llvm::Constant* last = llvm::ConstantInt::get(type, type->getScalarSizeInBits() - 1);
  Value* inside = b_.CreateICmpULE(count, last);
  Value* safe = b_.CreateSelect(inside, count, last);
  if (!left) return b_.CreateAShr(a, safe);
  return b_.CreateSelect(inside, b_.CreateShl(a, safe), llvm::Constant::getNullValue(type));
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

Value* LaneEmitter::plain(Opcode code, Scalar scalar, const Values& operands) {
  if (kernel::is_math(code)) return math_.emit(b_, code, scalar, operands);
  const bool real = kernel::is_real(scalar);
  Value* a = operands[0];
  Value* b = operands.size() > 1 ? operands[1] : nullptr;
  switch (code) {
    case Opcode::add:
      return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Opcode::sub:
      return real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Opcode::mul:
      return real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Opcode::div:
      return b_.CreateFDiv(a, b);
    case Opcode::neg:
      return real ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case Opcode::abs:
      if (real) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      return b_.CreateSelect(b_.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())), b_.CreateNeg(a),
                             a);
    case Opcode::min:
      return smaller_or_larger(true, scalar, a, b);
    case Opcode::max:
      return smaller_or_larger(false, scalar, a, b);
    case Opcode::sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge:
      return b_.CreateCmp(predicate(code, real), a, b);
    case Opcode::logical_and:
    case Opcode::bit_and:
      return b_.CreateAnd(a, b);
    case Opcode::logical_or:
    case Opcode::bit_or:
      return b_.CreateOr(a, b);
    case Opcode::logical_xor:
    case Opcode::bit_xor:
      return b_.CreateXor(a, b);
    case Opcode::logical_not:
    case Opcode::bit_not:
      return b_.CreateNot(a);
    case Opcode::floor_div:
      return floored(true, a, b);
    case Opcode::modulo:
      return floored(false, a, b);
    case Opcode::shift_left:
      return shift(true, a, b);
    case Opcode::shift_right:
      return shift(false, a, b);
    default:
      break;  // handled by `op`
  }
  llvm_unreachable("an opcode that the verifier does not know");
}

LaneValue LaneEmitter::elementwise(const kernel::Op& op, const std::vector<LaneValue>& operands,
                                   const Masks& live) {
  const kernel::Type type = kernel_.value_types[op.results[0]];
  const Scalar scalar = operands[0].type.scalar;
  LaneValue result{type, operands[0].uniform, {}};
  for (std::size_t part = 0; part < operands[0].parts.size(); ++part) {
    if (op.code == Opcode::convert) {
      result.parts.push_back(convert(operands[0].parts[part], scalar, type.scalar));
      continue;
    }
    Values inputs;
    for (const LaneValue& operand : operands) inputs.push_back(operand.parts[part]);
    result.parts.push_back(plain(op.code, scalar, inputs));
    if (op.code == Opcode::floor_div || op.code == Opcode::modulo) {
      Value* by_zero = b_.CreateICmpEQ(inputs[1], llvm::Constant::getNullValue(inputs[1]->getType()));
      tally(launch_.zero_divisions, by_zero, live, part % copies(false));
    }
  }
  return result;
}

// One condition for all components.
LaneValue LaneEmitter::select(const std::vector<LaneValue>& operands) {
  LaneValue result{operands[1].type, operands[1].uniform, {}};
  for (std::size_t part = 0; part < operands[1].parts.size(); ++part) {
    Value* condition = operands[0].parts[part % operands[0].parts.size()];
    result.parts.push_back(b_.CreateSelect(condition, operands[1].parts[part], operands[2].parts[part]));
  }
  return result;
}

void LaneEmitter::op(const kernel::Op& op, const Masks& live) {
  if (op.code == Opcode::if_ || op.code == Opcode::switch_) return branch(op, live);
  if (op.code == Opcode::while_) return loop(op, live);
  if (op.code == Opcode::accum_add) return accum_add(op, live);
  if (op.code == Opcode::primitive) return primitive(op, live);
  const kernel::ValueId id = op.results[0];
  const kernel::Type type = kernel_.value_types[id];
  std::vector<LaneValue> operands;
  for (const kernel::ValueId operand : op.operands) operands.push_back(as_decided(values_[operand], id));
  switch (op.code) {
    case Opcode::constant:
      return define(id, constant(type, op.bits));
    case Opcode::sample_index:
      return define(id, sample_index());
    case Opcode::n_samples:
      return define(id, LaneValue{type, true, {launch_.total_samples}});
    case Opcode::step_index: {
      Value* taken = b_.CreateLoad(b_.getInt64Ty(), step_);
      return define(id, LaneValue{type, true, {b_.CreateAdd(launch_.first_step, taken)}});
    }
    case Opcode::random_words:
      return define(id, random_words(values_[op.operands[0]], values_[op.operands[1]]));
    case Opcode::select:
      return define(id, select(operands));
    case Opcode::gather:
      return define(id, gather(op, operands, live));
    case Opcode::length:
      return define(id, LaneValue{type, true, {length_of(op.argument)}});
    case Opcode::compose: {
      LaneValue result{type, uniform_[id], {}};
      for (const LaneValue& component : operands) {
        result.parts.insert(result.parts.end(), component.parts.begin(), component.parts.end());
      }
      return define(id, std::move(result));
    }
    case Opcode::extract: {
      const std::size_t count = copies(operands[0].uniform);
      const auto first = operands[0].parts.begin() + static_cast<std::ptrdiff_t>(op.component * count);
      return define(id, LaneValue{type, operands[0].uniform,
                                  Values(first, first + static_cast<std::ptrdiff_t>(count))});
    }
    default:
      return define(id, elementwise(op, operands, live));
  }
}

// What it computes, in place; rules for derivatives are for whoever differentiates.
void LaneEmitter::primitive(const kernel::Op& op, const Masks& live) {
  const kernel::Region& value = op.regions[0];
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    define(value.arguments[i], as_decided(values_[op.operands[i]], value.arguments[i]));
  region(value, live);
  for (std::size_t r = 0; r < op.results.size(); ++r)
    define(op.results[r], as_decided(values_[value.yields[r]], op.results[r]));
}

void LaneEmitter::region(const kernel::Region& region, const Masks& live) {
  for (const kernel::Op& nested : region.ops) op(nested, live);
}

}  // namespace eagle::codegen
