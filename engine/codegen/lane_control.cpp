#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <utility>

#include "engine/codegen/flat.h"
#include "engine/codegen/lanes.h"

namespace eagle::codegen {
namespace {

using kernel::Opcode;
using kernel::Region;
using llvm::BasicBlock;
using llvm::Value;

// Trips of all loops of a call between two looks at the cancel flag; a power of two.
constexpr std::uint64_t poll_trips = std::uint64_t{1} << 16;

}  // namespace

Value* LaneEmitter::clamped_selector(Value* selector, std::size_t sides) {
  llvm::Type* type = selector->getType();
  Value* low = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, selector, llvm::ConstantInt::get(type, 0));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, llvm::ConstantInt::get(type, sides - 1));
}

std::vector<LaneValue> LaneEmitter::yields_of(const Region& region,
                                              const std::vector<kernel::ValueId>& results) {
  std::vector<LaneValue> yields;
  for (std::size_t r = 0; r < results.size(); ++r)
    yields.push_back(as_decided(values_[region.yields[r]], results[r]));
  return yields;
}

void LaneEmitter::branch(const kernel::Op& op, const Masks& live) {
  if (values_[op.operands[0]].uniform) return uniform_choice(op, live);
  return is_flat(op) ? flat_choice(op, live) : divergent_choice(op, live);
}

// The lanes that execute a side of a divergent choice.
Masks LaneEmitter::taken(const kernel::Op& op, std::size_t side, const Masks& live) {
  const LaneValue& choice = values_[op.operands[0]];
  Masks masks;
  for (std::size_t j = 0; j < choice.parts.size(); ++j) {
    Value* mask = choice.parts[j];
    if (op.code == Opcode::switch_) {
      Value* selector = clamped_selector(mask, op.regions.size());
      mask = b_.CreateICmpEQ(selector, llvm::ConstantInt::get(selector->getType(), side));
    } else if (side == 1) {
      mask = b_.CreateNot(mask);
    }
    masks.push_back(live.empty() ? mask : b_.CreateAnd(mask, live[j]));
  }
  return masks;
}

// Runs all sides and selects; the last one is what lanes have that no mask claims.
void LaneEmitter::flat_choice(const kernel::Op& op, const Masks& live) {
  std::vector<Masks> lanes;
  std::vector<std::vector<LaneValue>> yields;
  for (std::size_t side = 0; side < op.regions.size(); ++side) {
    lanes.push_back(taken(op, side, live));
    region(op.regions[side], lanes.back());
    yields.push_back(yields_of(op.regions[side], op.results));
  }
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    LaneValue result{yields[0][r].type, false, yields.back()[r].parts};
    for (std::size_t side = op.regions.size() - 1; side-- > 0;) {
      for (std::size_t part = 0; part < result.parts.size(); ++part) {
        Value* mask = lanes[side][part % lanes[side].size()];
        result.parts[part] = b_.CreateSelect(mask, yields[side][r].parts[part], result.parts[part]);
      }
    }
    define(op.results[r], std::move(result));
  }
}

// A real branch on a choice that is the same for all lanes.
void LaneEmitter::uniform_choice(const kernel::Op& op, const Masks& live) {
  Value* choice = values_[op.operands[0]].parts[0];
  std::vector<BasicBlock*> begins;
  for (std::size_t side = 0; side < op.regions.size(); ++side) begins.push_back(block("side"));
  BasicBlock* join = block("join");
  if (op.code == Opcode::if_) {
    b_.CreateCondBr(choice, begins[0], begins[1]);
  } else {
    Value* selector = clamped_selector(choice, begins.size());
    llvm::SwitchInst* jump =
        b_.CreateSwitch(selector, begins.back(), static_cast<unsigned>(begins.size() - 1));
    for (std::size_t side = 0; side + 1 < begins.size(); ++side)
      jump->addCase(b_.getInt64(side), begins[side]);
  }
  std::vector<std::pair<BasicBlock*, std::vector<LaneValue>>> sides;
  for (std::size_t side = 0; side < begins.size(); ++side) {
    b_.SetInsertPoint(begins[side]);
    region(op.regions[side], live);
    std::vector<LaneValue> yields = yields_of(op.regions[side], op.results);
    sides.emplace_back(b_.GetInsertBlock(), std::move(yields));
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    LaneValue result{sides[0].second[r].type, uniform_[op.results[r]], {}};
    for (std::size_t part = 0; part < sides[0].second[r].parts.size(); ++part) {
      llvm::PHINode* phi =
          b_.CreatePHI(sides[0].second[r].parts[part]->getType(), static_cast<unsigned>(sides.size()));
      for (const auto& [end, yields] : sides) phi->addIncoming(yields[r].parts[part], end);
      result.parts.push_back(phi);
    }
    define(op.results[r], std::move(result));
  }
}

// Each side behind a test whether any live lane takes it.
void LaneEmitter::divergent_choice(const kernel::Op& op, const Masks& live) {
  std::vector<LaneValue> merged;
  for (std::size_t side = 0; side < op.regions.size(); ++side) {
    const Masks lanes = taken(op, side, live);
    BasicBlock* body = block("side");
    BasicBlock* after = block("after");
    Value* entered = any(lanes);
    BasicBlock* before = b_.GetInsertBlock();
    b_.CreateCondBr(entered, body, after);
    b_.SetInsertPoint(body);
    region(op.regions[side], lanes);
    const std::vector<LaneValue> yields = yields_of(op.regions[side], op.results);
    BasicBlock* body_end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    std::vector<LaneValue> values;
    for (const LaneValue& yield : yields) {
      LaneValue value{yield.type, false, {}};
      for (Value* part : yield.parts) {
        llvm::PHINode* phi = b_.CreatePHI(part->getType(), 2);
        phi->addIncoming(part, body_end);
        // No live lane takes this side, so nobody uses this value.
        phi->addIncoming(llvm::Constant::getNullValue(part->getType()), before);
        value.parts.push_back(phi);
      }
      values.push_back(std::move(value));
    }
    if (side == 0) {
      merged = std::move(values);
      continue;
    }
    for (std::size_t r = 0; r < merged.size(); ++r) {
      for (std::size_t part = 0; part < merged[r].parts.size(); ++part) {
        Value* mask = lanes[part % lanes.size()];
        merged[r].parts[part] = b_.CreateSelect(mask, values[r].parts[part], merged[r].parts[part]);
      }
    }
  }
  for (std::size_t r = 0; r < merged.size(); ++r) define(op.results[r], std::move(merged[r]));
}

// Counts a trip of any loop and now and then looks at the cancel flag.
void LaneEmitter::poll() {
  Value* trips = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), launch_.trips), b_.getInt64(1));
  b_.CreateStore(trips, launch_.trips);
  BasicBlock* look = block("poll");
  BasicBlock* after = block("after_poll");
  Value* due = b_.CreateICmpEQ(b_.CreateAnd(trips, b_.getInt64(poll_trips - 1)), b_.getInt64(0));
  b_.CreateCondBr(due, look, after);
  b_.SetInsertPoint(look);
  llvm::LoadInst* flag = b_.CreateLoad(b_.getInt8Ty(), launch_.cancel);
  flag->setAtomic(llvm::AtomicOrdering::Monotonic);
  flag->setAlignment(llvm::Align(1));
  Value* seen =
      b_.CreateOr(b_.CreateLoad(b_.getInt1Ty(), launch_.cancelled), b_.CreateICmpNE(flag, b_.getInt8(0)));
  b_.CreateStore(seen, launch_.cancelled);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// Carried values live in slots. Where all live lanes make the same trips ("lockstep") the loop is an
// ordinary one; else each lane has its own end, and one that has left keeps its values.
void LaneEmitter::loop(const kernel::Op& op, const Masks& live) {
  const Region& condition = op.regions[0];
  const Region& body = op.regions[1];
  const bool lockstep = uniform_[condition.yields[0]];
  const std::size_t carried = op.operands.size();

  std::vector<Values> slots(carried);
  std::vector<LaneValue> now(carried);
  for (std::size_t i = 0; i < carried; ++i) {
    now[i] = as_decided(values_[op.operands[i]], op.results[i]);
    for (Value* part : now[i].parts) {
      slots[i].push_back(slot(part->getType(), "carried"));
      b_.CreateStore(part, slots[i].back());
    }
  }
  Values active_slots;
  for (std::size_t j = 0; !lockstep && j < copies(false); ++j) {
    llvm::Type* mask = lane_type(kernel::Scalar::boolean);
    active_slots.push_back(slot(mask, "active"));
    b_.CreateStore(live.empty() ? llvm::Constant::getAllOnesValue(mask) : live[j], active_slots.back());
  }
  Value* trips = slot(b_.getInt64Ty(), "trips");
  b_.CreateStore(b_.getInt64(0), trips);
  const auto load_carried = [&] {
    for (std::size_t i = 0; i < carried; ++i) {
      for (std::size_t part = 0; part < slots[i].size(); ++part) {
        now[i].parts[part] = b_.CreateLoad(now[i].parts[part]->getType(), slots[i][part]);
      }
    }
  };

  BasicBlock* head = block("loop_head");
  BasicBlock* test = block("loop_test");
  BasicBlock* trip = block("loop_body");
  BasicBlock* exit = block("loop_exit");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  load_carried();
  // The cap comes first: a condition that is not needed is not evaluated, and so counts nothing.
  Value* taken_so_far = b_.CreateLoad(b_.getInt64Ty(), trips);
  Value* may = b_.CreateAnd(b_.CreateICmpULT(taken_so_far, b_.getInt64(op.max_trips)),
                            b_.CreateNot(b_.CreateLoad(b_.getInt1Ty(), launch_.cancelled)));
  b_.CreateCondBr(may, test, exit);

  b_.SetInsertPoint(test);
  Masks active = live;
  if (!lockstep) {
    active.clear();
    for (Value* mask : active_slots)
      active.push_back(b_.CreateLoad(lane_type(kernel::Scalar::boolean), mask));
  }
  for (std::size_t i = 0; i < carried; ++i) define(condition.arguments[i], now[i]);
  region(condition, active);
  Value* go = nullptr;
  if (lockstep) {
    go = values_[condition.yields[0]].parts[0];
  } else {
    const LaneValue holds = spread(condition.yields[0]);
    for (std::size_t j = 0; j < active.size(); ++j) active[j] = b_.CreateAnd(active[j], holds.parts[j]);
    go = any(active);
  }
  b_.CreateCondBr(go, trip, exit);

  b_.SetInsertPoint(trip);
  for (std::size_t i = 0; i < carried; ++i) define(body.arguments[i], now[i]);
  region(body, active);
  for (std::size_t i = 0; i < carried; ++i) {
    const LaneValue next = as_decided(values_[body.yields[i]], op.results[i]);
    for (std::size_t part = 0; part < slots[i].size(); ++part) {
      Value* value = next.parts[part];
      if (!lockstep) value = b_.CreateSelect(active[part % active.size()], value, now[i].parts[part]);
      b_.CreateStore(value, slots[i][part]);
    }
  }
  for (std::size_t j = 0; j < active_slots.size(); ++j) b_.CreateStore(active[j], active_slots[j]);
  b_.CreateStore(b_.CreateAdd(taken_so_far, b_.getInt64(1)), trips);
  poll();
  b_.CreateBr(head);

  b_.SetInsertPoint(exit);
  load_carried();
  for (std::size_t i = 0; i < carried; ++i) define(op.results[i], now[i]);
}

}  // namespace eagle::codegen
