// accum_add: which element gets what is noted for the engine, which adds it (abi.h).
#include <llvm/IR/Constants.h>

#include <cstddef>

#include "engine/codegen/abi.h"
#include "engine/codegen/lanes.h"

namespace eagle::codegen {

using llvm::BasicBlock;
using llvm::Value;

std::size_t LaneEmitter::number_of(const kernel::Op& op) const {
  std::size_t number = 0;
  while (launch_.additions.sites[number].op != &op) ++number;
  return number;
}

std::pair<Value*, Value*> LaneEmitter::element_of(const kernel::Op& op, const std::vector<LaneValue>& indices,
                                                  std::size_t part) {
  const kernel::Argument& accumulator = kernel_.arguments[op.argument];
  llvm::Type* type = indices[0].parts[part]->getType();
  Value* flat = nullptr;
  Value* inside = nullptr;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    Value* index = indices[axis].parts[part];
    Value* extent = nullptr;
    if (!accumulator.axes.empty()) {
      extent = llvm::ConstantInt::get(type, accumulator.axes[axis].extent);
    } else {
      extent = launch_.lengths[op.argument];
      if (type->isVectorTy()) extent = b_.CreateVectorSplat(static_cast<unsigned>(shape_.width), extent);
    }
    Value* within = b_.CreateICmpULT(index, extent);  // negative ones are huge when unsigned
    inside = inside == nullptr ? within : b_.CreateAnd(inside, within);
    flat = flat == nullptr ? index : b_.CreateAdd(b_.CreateMul(flat, extent), index);
  }
  return {flat, inside};
}

void LaneEmitter::accum_add(const kernel::Op& op, const Masks& live) {
  std::vector<LaneValue> operands;
  for (const kernel::ValueId id : op.operands) operands.push_back(spread(id));
  const std::vector<LaneValue> indices(operands.begin() + 1, operands.end());
  Values elements;
  for (std::size_t j = 0; j < copies(false); ++j) {
    auto [element, noted] = element_of(op, indices, j);
    tally(launch_.dropped, b_.CreateNot(noted), live, j);
    if (!live.empty()) noted = b_.CreateAnd(noted, live[j]);
    if (launch_.additions.by_sample) {
      Value* none = llvm::Constant::getAllOnesValue(element->getType());
      elements.push_back(b_.CreateSelect(noted, element, none));
    } else if (launch_.device) {
      append_device_note(op, operands[0], element, noted);
    } else {
      append_note(op, operands[0], element, noted);
    }
  }
  if (launch_.additions.by_sample) note_by_sample(op, operands[0], elements);
}

// One vector of elements and one of each component, at the places of the block's samples.
void LaneEmitter::note_by_sample(const kernel::Op& op, const LaneValue& value, const Values& elements) {
  const std::size_t number = number_of(op);
  const auto bytes = static_cast<std::uint64_t>(kernel::bytes_of(value.type.scalar));
  Value* place = b_.CreateSub(sample_, launch_.begin);
  const auto base = [&](std::size_t entry) -> Value* {
    if (launch_.device) return launch_.note_bases[entry];
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), launch_.notes, entry));
  };
  const auto store = [&](Value* parts_of, Value* base_address, std::uint64_t item_bytes, std::size_t copy) {
    Value* lane_0 = b_.CreateGEP(b_.getInt8Ty(), base_address, b_.CreateMul(place, b_.getInt64(item_bytes)));
    Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), lane_0,
                                           copy * static_cast<std::uint64_t>(shape_.width) * item_bytes);
    b_.CreateAlignedStore(parts_of, address, launch_.alignment(item_bytes));
  };
  Value* element_base = base(2 * number);
  Value* value_base = base(2 * number + 1);
  for (std::size_t j = 0; j < elements.size(); ++j) store(elements[j], element_base, 8, j);
  for (std::size_t part = 0; part < value.parts.size(); ++part) {
    const std::size_t component = part / copies(false);
    Value* apart = b_.CreateMul(launch_.notes_capacity, b_.getInt64(component * bytes));
    Value* of_component = b_.CreateGEP(b_.getInt8Ty(), value_base, apart);
    store(value.parts[part], of_component, bytes, part % copies(false));
  }
}

// One sample at a time, since in a loop every sample makes as many notes as it likes.
void LaneEmitter::append_note(const kernel::Op& op, const LaneValue& value, Value* element, Value* noted) {
  const std::size_t words = 2 + value.parts.size();
  Value* used_field = b_.CreateConstGEP1_64(b_.getInt8Ty(), launch_.call, offsetof(KernelCall, notes_used));
  const auto load_used = [&] { return b_.CreateLoad(b_.getInt64Ty(), used_field); };
  BasicBlock* begin = block("note");
  BasicBlock* full = block("notes_full");
  BasicBlock* write = block("write_note");
  BasicBlock* after = block("noted");
  b_.CreateCondBr(noted, begin, after);

  b_.SetInsertPoint(begin);
  Value* wanted = b_.CreateAdd(load_used(), b_.getInt64(words));
  b_.CreateCondBr(b_.CreateICmpSGT(wanted, launch_.notes_capacity), full, write);

  b_.SetInsertPoint(full);
  Value* flush = b_.CreateLoad(
      b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getInt8Ty(), launch_.call, offsetof(KernelCall, flush)));
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  b_.CreateCall(type, flush, {launch_.call});
  b_.CreateBr(write);

  b_.SetInsertPoint(write);
  Value* used = load_used();
  write_note(b_.CreateGEP(b_.getInt64Ty(), launch_.notes, used), op, value, element);
  b_.CreateStore(b_.CreateAdd(used, b_.getInt64(words)), used_field);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void LaneEmitter::write_note(Value* address, const kernel::Op& op, const LaneValue& value, Value* element) {
  const auto store = [&](std::size_t word, Value* stored) {
    b_.CreateStore(stored, b_.CreateConstGEP1_64(b_.getInt64Ty(), address, word));
  };
  store(0, b_.getInt64(number_of(op)));
  store(1, element);
  for (std::size_t c = 0; c < value.parts.size(); ++c)
    store(2 + c, value.parts[c]);  // the low bytes of a word
}

// Into the words of this sample alone: nobody can make room, so whoever launches gives enough of it, and
// hears where it was not.
void LaneEmitter::append_device_note(const kernel::Op& op, const LaneValue& value, Value* element,
                                     Value* noted) {
  const std::size_t words = 2 + value.parts.size();
  BasicBlock* begin = block("note");
  BasicBlock* full = block("notes_full");
  BasicBlock* write = block("write_note");
  BasicBlock* after = block("noted");
  b_.CreateCondBr(noted, begin, after);

  b_.SetInsertPoint(begin);
  Value* used = b_.CreateLoad(b_.getInt64Ty(), launch_.note_slot);
  Value* wanted = b_.CreateAdd(used, b_.getInt64(words));
  b_.CreateCondBr(b_.CreateICmpSGT(wanted, launch_.notes_capacity), full, write);

  b_.SetInsertPoint(full);
  b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), launch_.lost), b_.getInt64(1)), launch_.lost);
  b_.CreateBr(after);

  b_.SetInsertPoint(write);
  Value* place = b_.CreateMul(b_.CreateSub(sample_, launch_.begin), launch_.notes_capacity);
  write_note(b_.CreateGEP(b_.getInt64Ty(), launch_.notes, b_.CreateAdd(place, used)), op, value, element);
  b_.CreateStore(wanted, launch_.note_slot);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace eagle::codegen
