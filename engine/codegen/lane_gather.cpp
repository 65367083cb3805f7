#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>

#include "engine/codegen/lanes.h"

namespace eagle::codegen {

using kernel::Scalar;
using llvm::Value;

// Each index is clamped to its axis, so that whatever a kernel computes stays inside the table, lanes that
// are not live included. An index outside is counted once a gather, for the samples that execute it.
Value* LaneEmitter::offset_of(const kernel::Op& op, const std::vector<LaneValue>& indices, std::size_t part,
                              const Masks& live) {
  const kernel::Argument& table = kernel_.arguments[op.argument];
  llvm::Type* type = indices[0].parts[part]->getType();
  const auto constant = [&](std::uint64_t value) { return llvm::ConstantInt::get(type, value); };
  Value* flat = constant(0);
  Value* outside = nullptr;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    Value* index = indices[axis].parts[part];
    Value* extent = nullptr;
    if (!table.axes.empty()) {
      extent = constant(table.axes[axis].extent);
    } else {
      extent = launch_.lengths[op.argument];
      if (type->isVectorTy()) extent = b_.CreateVectorSplat(static_cast<unsigned>(shape_.width), extent);
    }
    Value* out = b_.CreateICmpUGE(index, extent);  // negative ones are huge when unsigned
    outside = outside == nullptr ? out : b_.CreateOr(outside, out);
    Value* low = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, index, constant(0));
    Value* inside = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, b_.CreateSub(extent, constant(1)));
    flat = b_.CreateAdd(b_.CreateMul(flat, extent), inside);
  }
  tally(launch_.clamped, outside, live, part);
  return b_.CreateMul(flat, constant(static_cast<std::uint64_t>(kernel::bytes_of(table.type.scalar))));
}

Value* LaneEmitter::length_of(std::size_t argument) {
  const kernel::Argument& indexed = kernel_.arguments[argument];
  if (indexed.axes.empty()) return launch_.lengths[argument];
  std::uint64_t elements = 1;
  for (const kernel::Axis& axis : indexed.axes) elements *= axis.extent;
  return b_.getInt64(elements);
}

LaneValue LaneEmitter::gather(const kernel::Op& op, const std::vector<LaneValue>& operands,
                              const Masks& live) {
  const kernel::Type type = kernel_.arguments[op.argument].type;
  const bool uniform = operands[0].uniform;
  llvm::Type* stored = type.scalar == Scalar::boolean ? b_.getInt8Ty() : scalar_type(type.scalar);
  Values offsets;
  for (std::size_t part = 0; part < copies(uniform); ++part)
    offsets.push_back(offset_of(op, operands, part, live));

  LaneValue result{type, uniform, {}};
  for (int c = 0; c < type.components(); ++c) {
    Value* component = b_.CreateMul(launch_.strides[op.argument], b_.getInt64(static_cast<std::uint64_t>(c)));
    Value* base = b_.CreateGEP(b_.getInt8Ty(), launch_.bases[op.argument], component);
    for (Value* offset : offsets) {
      Value* address = b_.CreateGEP(b_.getInt8Ty(), base, offset);
      Value* loaded = nullptr;
      if (offset->getType()->isVectorTy()) {
        loaded = b_.CreateMaskedGather(memory_type(type.scalar), address, llvm::Align(1));
      } else {
        const auto bytes = static_cast<std::uint64_t>(kernel::bytes_of(type.scalar));
        loaded = b_.CreateAlignedLoad(stored, address, launch_.alignment(bytes));
      }
      if (type.scalar == Scalar::boolean)
        loaded = b_.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType()));
      result.parts.push_back(loaded);
    }
  }
  return result;
}

}  // namespace eagle::codegen
