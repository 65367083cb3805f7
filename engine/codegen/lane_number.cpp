#include "engine/codegen/lane_number.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/TargetParser/Triple.h>

#include <string>
#include <vector>

namespace eagle::codegen {
namespace {

using llvm::CmpInst;
using llvm::Value;
using llvm::Intrinsic::ID;

// The scope and, where the first operand is a constant, the type come from an operand that is none.
LaneScope* scope_of(const auto& a, const auto& b) { return a.scope != nullptr ? a.scope : b.scope; }
llvm::Type* type_of(const auto& a, const auto& b) {
  return a.value != nullptr ? a.value->getType() : b.value->getType();
}

template <typename Emit>
Lane reals(const Lane& a, const Lane& b, Emit emit) {
  LaneScope* scope = scope_of(a, b);
  llvm::Type* type = type_of(a, b);
  return {scope, emit(scope->b, a.as(type), b.as(type))};
}
template <typename Emit>
LaneInteger integers(const LaneInteger& a, const LaneInteger& b, Emit emit) {
  LaneScope* scope = scope_of(a, b);
  llvm::Type* type = type_of(a, b);
  return {scope, emit(scope->b, a.as(type), b.as(type))};
}
template <typename T>
LaneTruth comparison(CmpInst::Predicate predicate, const T& a, const T& b) {
  LaneScope* scope = scope_of(a, b);
  llvm::Type* type = type_of(a, b);
  return {scope, scope->b.CreateCmp(predicate, a.as(type), b.as(type))};
}
Lane unary(ID id, const Lane& a) { return {a.scope, a.scope->b.CreateUnaryIntrinsic(id, a.value)}; }

// 2^52 or 2^23: from there on every number of the type is whole.
double first_whole(llvm::Type* type) { return type->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23; }

// Half to even without an instruction for it: adding that number leaves no room for a fraction.
Lane rounded_by_adding(Lane a) {
  const double whole = first_whole(a.value->getType());
  const Lane size = magnitude(a);
  const Lane rounded = (size + whole) - whole;
  return select(size < whole, with_sign_of(rounded, a), a);
}

}  // namespace

Value* LaneInteger::as(llvm::Type* type) const {
  return value != nullptr ? value : llvm::ConstantInt::get(type, constant);
}
Value* Lane::as(llvm::Type* type) const {
  return value != nullptr ? value : llvm::ConstantFP::get(type, constant);
}

LaneTruth operator&(LaneTruth a, LaneTruth b) { return {a.scope, a.scope->b.CreateAnd(a.value, b.value)}; }
LaneTruth operator|(LaneTruth a, LaneTruth b) { return {a.scope, a.scope->b.CreateOr(a.value, b.value)}; }
LaneTruth operator^(LaneTruth a, LaneTruth b) { return {a.scope, a.scope->b.CreateXor(a.value, b.value)}; }
LaneTruth operator!(LaneTruth a) { return {a.scope, a.scope->b.CreateNot(a.value)}; }

LaneInteger operator+(LaneInteger a, LaneInteger b) {
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateAdd(x, y); });
}
LaneInteger operator-(LaneInteger a, LaneInteger b) {
  if (a.scope == nullptr && b.scope == nullptr) return a.constant - b.constant;
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateSub(x, y); });
}
LaneInteger operator-(LaneInteger a) { return LaneInteger(0) - a; }
LaneInteger operator*(LaneInteger a, LaneInteger b) {
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateMul(x, y); });
}
LaneInteger operator&(LaneInteger a, LaneInteger b) {
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateAnd(x, y); });
}
LaneInteger operator|(LaneInteger a, LaneInteger b) {
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateOr(x, y); });
}
LaneInteger operator^(LaneInteger a, LaneInteger b) {
  return integers(a, b, [](auto& at, Value* x, Value* y) { return at.CreateXor(x, y); });
}
LaneInteger operator<<(LaneInteger a, int count) {
  return {a.scope, a.scope->b.CreateShl(a.value, static_cast<std::uint64_t>(count))};
}
LaneInteger operator>>(LaneInteger a, int count) {
  return {a.scope, a.scope->b.CreateLShr(a.value, static_cast<std::uint64_t>(count))};
}
LaneInteger arithmetic_shift(LaneInteger a, int count) {
  return {a.scope, a.scope->b.CreateAShr(a.value, static_cast<std::uint64_t>(count))};
}
LaneInteger shift_left(LaneInteger a, LaneInteger count) {
  return {a.scope, a.scope->b.CreateShl(a.value, count.value)};
}
LaneTruth operator<(LaneInteger a, LaneInteger b) { return comparison(CmpInst::ICMP_SLT, a, b); }
LaneTruth operator>(LaneInteger a, LaneInteger b) { return comparison(CmpInst::ICMP_SGT, a, b); }
LaneTruth operator==(LaneInteger a, LaneInteger b) { return comparison(CmpInst::ICMP_EQ, a, b); }
LaneTruth below(LaneInteger a, LaneInteger b) { return comparison(CmpInst::ICMP_ULT, a, b); }

Lane operator+(Lane a, Lane b) {
  return reals(a, b, [](auto& at, Value* x, Value* y) { return at.CreateFAdd(x, y); });
}
Lane operator-(Lane a, Lane b) {
  return reals(a, b, [](auto& at, Value* x, Value* y) { return at.CreateFSub(x, y); });
}
Lane operator*(Lane a, Lane b) {
  return reals(a, b, [](auto& at, Value* x, Value* y) { return at.CreateFMul(x, y); });
}
Lane operator/(Lane a, Lane b) {
  return reals(a, b, [](auto& at, Value* x, Value* y) { return at.CreateFDiv(x, y); });
}
Lane operator-(Lane a) { return {a.scope, a.scope->b.CreateFNeg(a.value)}; }
LaneTruth operator<(Lane a, Lane b) { return comparison(CmpInst::FCMP_OLT, a, b); }
LaneTruth operator<=(Lane a, Lane b) { return comparison(CmpInst::FCMP_OLE, a, b); }
LaneTruth operator>(Lane a, Lane b) { return comparison(CmpInst::FCMP_OGT, a, b); }
LaneTruth operator>=(Lane a, Lane b) { return comparison(CmpInst::FCMP_OGE, a, b); }
LaneTruth operator==(Lane a, Lane b) { return comparison(CmpInst::FCMP_OEQ, a, b); }
LaneTruth operator!=(Lane a, Lane b) { return comparison(CmpInst::FCMP_UNE, a, b); }

Lane fma(Lane a, Lane b, Lane c) {
  LaneScope* scope = a.scope != nullptr ? a.scope : scope_of(b, c);
  llvm::Type* type = a.value != nullptr ? a.value->getType() : type_of(b, c);
  if (!scope->traits().fused) return {scope, scope->soft_fma(a.as(type), b.as(type), c.as(type))};
  return {scope,
          scope->b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a.as(type), b.as(type), c.as(type)})};
}
Lane sqrt(Lane a) { return unary(llvm::Intrinsic::sqrt, a); }
Lane magnitude(Lane a) { return unary(llvm::Intrinsic::fabs, a); }
Lane with_sign_of(Lane a, Lane sign) {
  return reals(a, sign, [](auto& at, Value* x, Value* y) { return at.CreateCopySign(x, y); });
}
Lane round_to_even(Lane a) {
  return a.scope->traits().rounds ? unary(llvm::Intrinsic::rint, a) : rounded_by_adding(a);
}
Lane round_to_zero(Lane a) {
  if (a.scope->traits().rounds) return unary(llvm::Intrinsic::trunc, a);
  const Lane size = magnitude(a), near = rounded_by_adding(size);
  return with_sign_of(select(near > size, near - 1.0, near), a);
}
Lane round_down(Lane a) {
  if (a.scope->traits().rounds) return unary(llvm::Intrinsic::floor, a);
  const Lane near = rounded_by_adding(a);
  return with_sign_of(select(near > a, near - 1.0, near), a);
}
Lane round_up(Lane a) {
  if (a.scope->traits().rounds) return unary(llvm::Intrinsic::ceil, a);
  const Lane near = rounded_by_adding(a);
  return with_sign_of(select(near < a, near + 1.0, near), a);
}

LaneInteger bits(Lane a) {
  llvm::Type* type = a.scope->b.getInt64Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a.value->getType())) {
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  }
  return {a.scope, a.scope->b.CreateBitCast(a.value, type)};
}
Lane from_bits(LaneInteger a) {
  llvm::Type* type = a.scope->b.getDoubleTy();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a.value->getType())) {
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  }
  return {a.scope, a.scope->b.CreateBitCast(a.value, type)};
}

namespace {

// The type that `element` has in as many lanes as the condition.
llvm::Type* lanes_like(const LaneTruth& c, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(c.value->getType());
  return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
}

}  // namespace

Lane select(LaneTruth c, Lane a, Lane b) {
  const bool constants = a.value == nullptr && b.value == nullptr;
  llvm::Type* type = constants ? lanes_like(c, c.scope->b.getDoubleTy()) : type_of(a, b);
  return {c.scope, c.scope->b.CreateSelect(c.value, a.as(type), b.as(type))};
}
LaneInteger select(LaneTruth c, LaneInteger a, LaneInteger b) {
  const bool constants = a.value == nullptr && b.value == nullptr;
  llvm::Type* type = constants ? lanes_like(c, c.scope->b.getInt64Ty()) : type_of(a, b);
  return {c.scope, c.scope->b.CreateSelect(c.value, a.as(type), b.as(type))};
}

Value* any_lane(LaneTruth a) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a.value->getType());
  if (vector == nullptr) return a.value;
  llvm::IRBuilder<>& b = a.scope->b;
  Value* mask = b.CreateBitCast(a.value, b.getIntNTy(vector->getNumElements()));
  return b.CreateICmpNE(mask, llvm::ConstantInt::get(mask->getType(), 0));
}

// ---- tables

Value* LaneScope::look_up(std::span<const std::uint64_t> table, llvm::Type* element, Value* index) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  const bool fits =
      traits_.permutes && vector != nullptr && vector->getNumElements() == 8 && table.size() <= 32;
  if (fits && element->isDoubleTy()) return permuted(table, index);
  return loaded(table, element, index);
}

// The table in registers, two of them for each 16 entries.
Value* LaneScope::permuted(std::span<const std::uint64_t> table, Value* index) {
  const auto eight = [&](std::size_t first) {
    std::vector<double> entries;
    for (std::size_t i = 0; i < 8; ++i)
      entries.push_back(std::bit_cast<double>(table[(first + i) % table.size()]));
    return llvm::ConstantDataVector::get(b.getContext(), entries);
  };
  const auto sixteen = [&](std::size_t first) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_pd_512, {},
                             {eight(first), index, eight(first + 8)});
  };
  if (table.size() <= 8)
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_df_512, {}, {eight(0), index});
  if (table.size() == 16) return sixteen(0);
  Value* upper = b.CreateICmpNE(b.CreateAnd(index, 16), llvm::Constant::getNullValue(index->getType()));
  return b.CreateSelect(upper, sixteen(16), sixteen(0));
}

// The table in memory, beside the code.
Value* LaneScope::loaded(std::span<const std::uint64_t> table, llvm::Type* element, Value* index) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::Constant* data =
      llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef(table.data(), table.size()));
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same name for the same table
  for (const std::uint64_t word : table) hash = (hash ^ word) * 0x100000001b3;
  const std::string name = "table_" + std::to_string(hash);
  llvm::GlobalVariable* global = module.getNamedGlobal(name);
  if (global == nullptr || global->getInitializer() != data) {
    // A GPU's global memory, read through its caches: constant memory would serve one address at a time.
    constexpr unsigned global_memory = 1;
    const bool device = llvm::Triple(module.getTargetTriple()).isNVPTX();
    global =
        new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, name,
                                 nullptr, llvm::GlobalValue::NotThreadLocal, device ? global_memory : 0);
    global->setAlignment(llvm::Align(64));
  }
  Value* masked = b.CreateAnd(index, table.size() - 1);
  const auto load = [&](Value* at) -> Value* {
    llvm::LoadInst* entry = b.CreateLoad(element, b.CreateGEP(b.getInt64Ty(), global, at));
    entry->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return entry;
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  if (vector == nullptr) return load(masked);
  Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, vector->getNumElements()));
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    result = b.CreateInsertElement(result, load(b.CreateExtractElement(masked, lane)), lane);
  }
  return result;
}

}  // namespace eagle::codegen
