// Lanes: the values of a kernel while it is emitted, and the emission of ops on them.
//
// A kernel value is, for each component, either one scalar that is the same for all samples (uniform, see
// uniform.h) or one native vector for each copy of the block. Width 1 uses plain scalars in place of
// vectors. Included by the compile helper alone.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/codegen/emit.h"
#include "engine/codegen/math_functions.h"
#include "engine/kernel/additions.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

using Values = std::vector<llvm::Value*>;
// One i1 vector a copy, or none at all when every lane is live.
using Masks = std::vector<llvm::Value*>;

struct LaneValue {
  kernel::Type type;
  bool uniform = false;
  Values parts;  // uniform: one scalar a component; else component 0's copies, component 1's, ...
};

// What a launch brings into the function, and the slots it counts in. Made once a function.
struct LaunchValues {
  Values bases;    // by argument: plane address, or the param's value
  Values strides;  // by argument: bytes between components
  Values lengths;  // by argument: a table's or accumulator's elements
  llvm::Value* first_sample = nullptr;
  llvm::Value* total_samples = nullptr;
  llvm::Value* first_step = nullptr;
  llvm::Value* sample_numbers = nullptr;  // address, or null
  llvm::Value* cancel = nullptr;          // address of the flag
  llvm::Value* clamped = nullptr;         // slots
  llvm::Value* zero_divisions = nullptr;
  llvm::Value* trips = nullptr;      // of all loops of the call
  llvm::Value* cancelled = nullptr;  // i1: the flag was seen
  llvm::Value* dropped = nullptr;    // slot
  // Where accum_adds are noted (abi.h).
  kernel::Additions additions;
  llvm::Value* call = nullptr;   // the KernelCall
  llvm::Value* begin = nullptr;  // its first sample
  llvm::Value* notes = nullptr;
  llvm::Value* notes_capacity = nullptr;
  // Of a GPU (device_abi.h). Memory is aligned to its elements there, and the notes of a call are found in
  // other places.
  bool device = false;
  Values note_bases;                  // kept by sample: of elements and of values, an op
  llvm::Value* notes_used = nullptr;  // address, of an i64 a sample
  llvm::Value* note_slot = nullptr;   // words that this sample used
  llvm::Value* lost = nullptr;        // slot

  // What is known of the address of an element of so many bytes.
  [[nodiscard]] llvm::Align alignment(std::uint64_t bytes) const { return llvm::Align(device ? bytes : 1); }
};

// Emits regions of one kernel at the builder's insert point. Values are kept by id, so one emitter emits
// each region of the kernel once; make a new one for another step loop.
class LaneEmitter {
public:
  LaneEmitter(const kernel::Kernel& kernel, const std::vector<bool>& uniform, const LaunchValues& launch,
              MathFunctions& math, const Shape& shape, llvm::IRBuilder<>& builder);

  // Index of lane 0 among the samples of the planes, and the slot that counts the block's steps.
  void at(llvm::Value* sample, llvm::Value* step);
  void define(kernel::ValueId id, LaneValue value);
  // Emits all ops of the region; its yields can be asked for afterwards. `live`: the lanes whose samples
  // execute it. What the others compute is never used, but it must not trap, and does not count.
  void region(const kernel::Region& region, const Masks& live);
  // The value's vectors, uniform ones broadcast.
  [[nodiscard]] LaneValue spread(kernel::ValueId id);

  [[nodiscard]] llvm::Type* scalar_type(kernel::Scalar scalar) const;
  [[nodiscard]] llvm::Type* lane_type(kernel::Scalar scalar) const;  // scalar or native vector
  // What a lane's value looks like in its plane: itself, and a byte for a bool.
  [[nodiscard]] llvm::Type* memory_type(kernel::Scalar scalar) const;
  // One i1: some lane of the masks is set; no lane is clear.
  llvm::Value* any(const Masks& masks);
  llvm::Value* all(const Masks& masks);
  // Lanes set, as i64.
  llvm::Value* count(const Masks& masks);
  // All masks as one i64, a bit a lane from the lowest on, and back.
  llvm::Value* bits(const Masks& masks);
  Masks masks(llvm::Value* bits);
  // An alloca in the entry block, which SROA turns into registers.
  llvm::Value* slot(llvm::Type* type, const llvm::Twine& name);

private:
  // lanes.cpp: ops
  void op(const kernel::Op& op, const Masks& live);
  void primitive(const kernel::Op& op, const Masks& live);
  LaneValue constant(const kernel::Type& type, std::uint64_t bits);
  LaneValue sample_index();
  LaneValue consecutive_numbers();
  LaneValue listed_numbers();
  LaneValue elementwise(const kernel::Op& op, const std::vector<LaneValue>& operands, const Masks& live);
  LaneValue select(const std::vector<LaneValue>& operands);
  llvm::Value* plain(kernel::Opcode code, kernel::Scalar scalar, const Values& operands);
  llvm::Value* convert(llvm::Value* value, kernel::Scalar from, kernel::Scalar to);
  llvm::Value* smaller_or_larger(bool smaller, kernel::Scalar scalar, llvm::Value* a, llvm::Value* b);
  llvm::Value* floored(bool quotient, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(bool left, llvm::Value* a, llvm::Value* count);

  // lane_gather.cpp
  LaneValue gather(const kernel::Op& op, const std::vector<LaneValue>& operands, const Masks& live);
  // How many elements a table or accumulator has: an i64.
  llvm::Value* length_of(std::size_t argument);
  // Bytes from the table's start to the element that part `part` of the indices means.
  llvm::Value* offset_of(const kernel::Op& op, const std::vector<LaneValue>& indices, std::size_t part,
                         const Masks& live);

  // lane_notes.cpp
  void accum_add(const kernel::Op& op, const Masks& live);
  // The element that copy `part` of the indices means, and whether it is there.
  std::pair<llvm::Value*, llvm::Value*> element_of(const kernel::Op& op,
                                                   const std::vector<LaneValue>& indices, std::size_t part);
  void note_by_sample(const kernel::Op& op, const LaneValue& value, const Values& elements);
  void append_note(const kernel::Op& op, const LaneValue& value, llvm::Value* element, llvm::Value* noted);
  void append_device_note(const kernel::Op& op, const LaneValue& value, llvm::Value* element,
                          llvm::Value* noted);
  void write_note(llvm::Value* address, const kernel::Op& op, const LaneValue& value, llvm::Value* element);
  std::size_t number_of(const kernel::Op& op) const;

  // lane_random.cpp
  LaneValue random_words(const LaneValue& seed, const LaneValue& counter);

  // lane_control.cpp
  void branch(const kernel::Op& op, const Masks& live);
  void flat_choice(const kernel::Op& op, const Masks& live);
  void uniform_choice(const kernel::Op& op, const Masks& live);
  void divergent_choice(const kernel::Op& op, const Masks& live);
  void loop(const kernel::Op& op, const Masks& live);
  void poll();
  Masks taken(const kernel::Op& op, std::size_t side, const Masks& live);
  // What the region yields, as the op's results are to be. Emitted at the insert point.
  std::vector<LaneValue> yields_of(const kernel::Region& region, const std::vector<kernel::ValueId>& results);
  llvm::Value* clamped_selector(llvm::Value* selector, std::size_t sides);

  [[nodiscard]] LaneValue spread(const LaneValue& value);
  // `value` as the analysis wants `id`: a scalar only where that says uniform.
  LaneValue as_decided(const LaneValue& value, kernel::ValueId id);
  [[nodiscard]] std::size_t copies(bool uniform) const {
    return uniform ? 1 : static_cast<std::size_t>(shape_.copies);
  }
  // Adds the lanes of copy `part` that are set and live to a slot. A uniform i1 counts for every live lane.
  void tally(llvm::Value* slot, llvm::Value* set, const Masks& live, std::size_t part);
  llvm::Value* bits_of(llvm::Value* mask);  // i1 vector as one integer of that many bits
  llvm::BasicBlock* block(const char* name);

  const kernel::Kernel& kernel_;
  const std::vector<bool>& uniform_;
  const LaunchValues& launch_;
  MathFunctions& math_;
  Shape shape_;
  llvm::IRBuilder<>& b_;
  llvm::Value* sample_ = nullptr;
  llvm::Value* step_ = nullptr;
  std::vector<LaneValue> values_;
};

}  // namespace eagle::codegen
