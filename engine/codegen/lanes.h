// Lanes: the values of a kernel while it is emitted, and the emission of ops on them.
//
// A kernel value is, for each component, either one scalar that is the same for all samples (uniform:
// constants, Params and what is computed from them alone) or one native vector for each copy of the block.
// Width 1 uses plain scalars in place of vectors. Included by the compile helper alone.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Value.h>

#include <vector>

#include "engine/codegen/emit.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

struct LaneValue {
  kernel::Type type;
  bool uniform = false;
  // Uniform: one scalar a component. Else component-major: component 0's copies, component 1's, ...
  std::vector<llvm::Value*> parts;
};

// Emits regions of one kernel at the builder's insert point. Values are kept by id, so one emitter emits
// each region of the kernel once; make a new one for another step loop.
class LaneEmitter {
public:
  LaneEmitter(const kernel::Kernel& kernel, const Shape& shape, llvm::IRBuilder<>& builder);

  void define(kernel::ValueId id, LaneValue value);
  // Emits all ops of the region; its yields can be asked for afterwards. `live` has one mask a copy, or
  // none when all lanes are live: it decides whether an expensive side of a branch is worth entering.
  void region(const kernel::Region& region, const std::vector<llvm::Value*>& live);
  // The value's vectors, uniform ones broadcast.
  [[nodiscard]] LaneValue spread(kernel::ValueId id);

  [[nodiscard]] llvm::Type* scalar_type(kernel::Scalar scalar) const;
  [[nodiscard]] llvm::Type* lane_type(kernel::Scalar scalar) const;  // scalar or native vector
  // One i1: some lane of the masks is set; no lane is clear.
  llvm::Value* any(const std::vector<llvm::Value*>& masks);
  llvm::Value* all(const std::vector<llvm::Value*>& masks);
  // Lanes set, as i64.
  llvm::Value* count(const std::vector<llvm::Value*>& masks);

private:
  void op(const kernel::Op& op, const std::vector<llvm::Value*>& live);
  void branch(const kernel::Op& op, const std::vector<llvm::Value*>& live);
  // Runs both sides and selects.
  void flat_branch(const kernel::Op& op, const LaneValue& condition, const std::vector<llvm::Value*>& live);
  // A real branch on a condition that is the same for all lanes.
  void uniform_branch(const kernel::Op& op, llvm::Value* condition, const std::vector<llvm::Value*>& live);
  // Each side behind a test whether any lane takes it.
  void divergent_branch(const kernel::Op& op, const LaneValue& condition,
                        const std::vector<llvm::Value*>& live);
  std::vector<LaneValue> yields_of(const kernel::Region& region, bool spread_all);

  LaneValue constant(const kernel::Type& type, std::uint64_t bits);
  [[nodiscard]] LaneValue spread(const LaneValue& value);
  llvm::Value* plain(kernel::Opcode code, kernel::Scalar scalar, const std::vector<llvm::Value*>& operands);
  llvm::Value* convert(llvm::Value* value, kernel::Scalar from, kernel::Scalar to);
  llvm::Value* smaller_or_larger(bool smaller, kernel::Scalar scalar, llvm::Value* a, llvm::Value* b);
  llvm::Value* bits_of(llvm::Value* mask);  // i1 vector as one integer of that many bits

  const kernel::Kernel& kernel_;
  Shape shape_;
  llvm::IRBuilder<>& b_;
  std::vector<LaneValue> values_;
};

}  // namespace eagle::codegen
