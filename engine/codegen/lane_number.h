// A number that the functions of engine/kernel/math compute with, in its other form: lanes being emitted.
//
// `Lane` offers what engine/kernel/math/number.h says. A value is a vector (or scalar) of doubles, or of
// floats where only selections are asked for; a number of C++ is a constant that takes the type of what it
// meets. Every operation is emitted at the insert point of the `LaneScope` that its operands come from.
// Included by the compile helper alone.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "engine/kernel/math/number.h"

namespace eagle::codegen {

// What the target has, as far as functions depend on it. Their bits do not.
struct TargetTraits {
  bool fused = false;     // multiplies and adds with one rounding
  bool rounds = false;    // rounds to whole numbers
  bool permutes = false;  // picks among 16 doubles in registers (AVX-512)
};

struct Lane;
struct LaneInteger;
struct LaneTruth;

// Where functions are emitted: one for each place that emits some.
class LaneScope {
public:
  LaneScope(llvm::IRBuilder<>& builder, const TargetTraits& traits) : b(builder), traits_(traits) {}
  virtual ~LaneScope() = default;
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

  [[nodiscard]] const TargetTraits& traits() const { return traits_; }
  // a b + c in doubles, where the target has no instruction for it.
  virtual llvm::Value* soft_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) = 0;
  llvm::Value* look_up(std::span<const std::uint64_t> table, llvm::Type* element, llvm::Value* index);

  llvm::IRBuilder<>& b;  // NOLINT: the operators below are part of this

private:
  llvm::Value* permuted(std::span<const std::uint64_t> table, llvm::Value* index);
  llvm::Value* loaded(std::span<const std::uint64_t> table, llvm::Type* element, llvm::Value* index);

  const TargetTraits& traits_;
};

struct LaneTruth {
  LaneScope* scope = nullptr;
  llvm::Value* value = nullptr;
};

struct LaneInteger {
  LaneScope* scope = nullptr;
  llvm::Value* value = nullptr;
  std::uint64_t constant = 0;
  LaneInteger(std::uint64_t number = 0) : constant(number) {}  // NOLINT: constants are written as numbers
  LaneInteger(LaneScope* s, llvm::Value* v) : scope(s), value(v) {}
  [[nodiscard]] llvm::Value* as(llvm::Type* type) const;
};

struct Lane {
  using Integer = LaneInteger;
  using Truth = LaneTruth;
  LaneScope* scope = nullptr;
  llvm::Value* value = nullptr;
  double constant = 0;
  Lane(double number = 0) : constant(number) {}  // NOLINT: constants are written as numbers
  Lane(LaneScope* s, llvm::Value* v) : scope(s), value(v) {}
  [[nodiscard]] llvm::Value* as(llvm::Type* type) const;
};

LaneTruth operator&(LaneTruth a, LaneTruth b);
LaneTruth operator|(LaneTruth a, LaneTruth b);
LaneTruth operator^(LaneTruth a, LaneTruth b);
LaneTruth operator!(LaneTruth a);

LaneInteger operator+(LaneInteger a, LaneInteger b);
LaneInteger operator-(LaneInteger a, LaneInteger b);
LaneInteger operator-(LaneInteger a);
LaneInteger operator*(LaneInteger a, LaneInteger b);
LaneInteger operator&(LaneInteger a, LaneInteger b);
LaneInteger operator|(LaneInteger a, LaneInteger b);
LaneInteger operator^(LaneInteger a, LaneInteger b);
LaneInteger operator<<(LaneInteger a, int count);
LaneInteger operator>>(LaneInteger a, int count);
LaneInteger arithmetic_shift(LaneInteger a, int count);
LaneInteger shift_left(LaneInteger a, LaneInteger count);
LaneTruth operator<(LaneInteger a, LaneInteger b);
LaneTruth operator>(LaneInteger a, LaneInteger b);
LaneTruth operator==(LaneInteger a, LaneInteger b);
LaneTruth below(LaneInteger a, LaneInteger b);

Lane operator+(Lane a, Lane b);
Lane operator-(Lane a, Lane b);
Lane operator*(Lane a, Lane b);
Lane operator/(Lane a, Lane b);
Lane operator-(Lane a);
LaneTruth operator<(Lane a, Lane b);
LaneTruth operator<=(Lane a, Lane b);
LaneTruth operator>(Lane a, Lane b);
LaneTruth operator>=(Lane a, Lane b);
LaneTruth operator==(Lane a, Lane b);
LaneTruth operator!=(Lane a, Lane b);
Lane fma(Lane a, Lane b, Lane c);
Lane sqrt(Lane a);
Lane magnitude(Lane a);
Lane with_sign_of(Lane a, Lane sign);
Lane round_down(Lane a);
Lane round_up(Lane a);
Lane round_to_zero(Lane a);
Lane round_to_even(Lane a);
LaneInteger bits(Lane a);
Lane from_bits(LaneInteger a);
Lane select(LaneTruth c, Lane a, Lane b);
LaneInteger select(LaneTruth c, LaneInteger a, LaneInteger b);

template <std::size_t N>
Lane look_up(const std::array<double, N>& table, LaneInteger index) {
  std::array<std::uint64_t, N> words{};
  for (std::size_t i = 0; i < N; ++i) words[i] = std::bit_cast<std::uint64_t>(table[i]);
  return {index.scope, index.scope->look_up(words, index.scope->b.getDoubleTy(), index.value)};
}
template <std::size_t N>
LaneInteger look_up(const std::array<std::uint64_t, N>& table, LaneInteger index) {
  return {index.scope, index.scope->look_up(table, index.scope->b.getInt64Ty(), index.value)};
}

// One i1: some lane is set.
llvm::Value* any_lane(LaneTruth a);

template <typename Slow>
Lane unless(LaneTruth special, Lane usual, Slow slow) {
  LaneScope* scope = special.scope;
  llvm::IRBuilder<>& b = scope->b;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* seldom = llvm::BasicBlock::Create(b.getContext(), "seldom", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", function);
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::MDNode* weights = llvm::MDBuilder(b.getContext()).createBranchWeights(1, 2000);
  b.CreateCondBr(any_lane(special), seldom, done, weights);
  b.SetInsertPoint(seldom);
  const Lane merged = select(special, slow(), usual);
  llvm::BasicBlock* after = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(usual.value->getType(), 2);
  result->addIncoming(usual.value, before);
  result->addIncoming(merged.value, after);
  return {scope, result};
}

// Goes on until no lane asks for another step. A lane that does not ask any more must not mind one.
template <typename Again, typename Step>
kernel::math::Progress<Lane> repeat(int most, kernel::math::Progress<Lane> state, Again again, Step step) {
  LaneScope* scope = state.rest.scope;
  llvm::IRBuilder<>& b = scope->b;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "again", function);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "step", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "repeated", function);
  llvm::BasicBlock* before = b.GetInsertBlock();
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* trip = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::PHINode* rest = b.CreatePHI(state.rest.value->getType(), 2);
  llvm::PHINode* left = b.CreatePHI(state.left.value->getType(), 2);
  trip->addIncoming(b.getInt32(0), before);
  rest->addIncoming(state.rest.value, before);
  left->addIncoming(state.left.value, before);
  const kernel::math::Progress<Lane> now{{scope, rest}, {scope, left}};
  llvm::Value* more = b.CreateICmpULT(trip, b.getInt32(static_cast<unsigned>(most)));
  b.CreateCondBr(b.CreateAnd(any_lane(again(now)), more), body, done);
  b.SetInsertPoint(body);
  const kernel::math::Progress<Lane> next = step(now);
  trip->addIncoming(b.CreateAdd(trip, b.getInt32(1)), b.GetInsertBlock());
  rest->addIncoming(next.rest.value, b.GetInsertBlock());
  left->addIncoming(next.left.value, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(done);
  return now;
}

}  // namespace eagle::codegen
