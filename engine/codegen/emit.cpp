#include "engine/codegen/emit.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/codegen/entry.h"
#include "engine/codegen/lanes.h"
#include "engine/codegen/straight_line.h"
#include "engine/codegen/streaming.h"
#include "engine/codegen/uniform.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::Role;
using kernel::Scalar;
using llvm::BasicBlock;
using llvm::Value;

// More Params than this would be spilled between blocks of samples, and LLVM's scheduler, which sees them all
// in registers, would line up what is to run side by side.
constexpr std::ptrdiff_t most_params_kept = 6;

std::ptrdiff_t params_of(const Kernel& kernel) {
  return std::count_if(kernel.arguments.begin(), kernel.arguments.end(),
                       [](const kernel::Argument& argument) { return argument.role == Role::param; });
}

// Emits the one function of a module. The shape of the code:
//
//   for each block of width*copies samples, then for each sample left over:
//     load the mask; nobody live: next block
//     load the planes
//     all live:  loop { step without masks } until somebody finishes or max_steps
//     loop { step with masks } while somebody is live and steps are left
//     store outputs and state, then the mask; count
//
// A kernel without a mask has the first loop alone; so has one whose finished samples may run on beside the
// live ones (may_run_on): what a sample commits is stored when it finishes, and what it computes afterwards
// is not. Carried values live in stack slots that SROA turns into registers, which spares the emitter every
// phi.
class FunctionEmitter {
public:
  FunctionEmitter(const Kernel& kernel, const Shape& shape, const llvm::TargetMachine& machine,
                  llvm::Module& module)
      : kernel_(kernel),
        shape_(shape),
        access_(kernel::accesses(kernel)),
        uniform_(uniform_values(kernel)),
        has_loops_(kernel::has_loops(kernel)),
        may_stream_(may_stream(kernel)),
        straight_(is_straight_line(kernel)),
        runs_on_(!is_device(machine) && may_run_on(kernel, uniform_)),
        mask_registers_(vector_bytes(machine) == 64),
        many_params_(straight_ && !is_device(machine) && params_of(kernel) > most_params_kept),
        math_(module, machine, vector_bytes(machine) / 8),
        b_(module.getContext()),
        entry_(kernel, is_device(machine), module, b_),
        function_(entry_.function()) {}

  void emit() {
    b_.SetInsertPoint(block("entry"));
    entry_.load(launch_);
    max_steps_ = entry_.max_steps();
    if (may_stream_ && !launch_.device) streaming_ = entry_.streaming();
    Value* end = entry_.end();
    Value* sample = slot(b_.getInt64Ty(), "sample");
    b_.CreateStore(entry_.first(), sample);
    finished_ = counter("finished");
    steps_ = counter("steps");
    launch_.clamped = counter("clamped");
    launch_.zero_divisions = counter("zero_divisions");
    launch_.dropped = counter("dropped");
    launch_.trips = counter("trips");
    launch_.cancelled = slot(b_.getInt1Ty(), "cancelled");
    b_.CreateStore(b_.getFalse(), launch_.cancelled);
    if (launch_.device) launch_.lost = counter("lost");
    if (launch_.notes_used != nullptr) launch_.note_slot = slot(b_.getInt64Ty(), "note_words");

    BasicBlock* exit = block("exit");
    BasicBlock* blocks = block("blocks");
    b_.CreateCondBr(b_.CreateICmpSGT(max_steps_, b_.getInt64(0)), blocks, exit);
    b_.SetInsertPoint(blocks);
    if (straight_ && streaming_ != nullptr) {
      samples_in_two_ways(sample, end);
    } else {
      samples(shape_, sample, end);
    }
    if (shape_.lanes() > 1) samples(Shape{1, 1}, sample, end);
    b_.CreateBr(exit);

    b_.SetInsertPoint(exit);
    entry_.report({finished_, steps_, launch_.clamped, launch_.zero_divisions, launch_.dropped,
                   launch_.cancelled, launch_.lost});
    b_.CreateRetVoid();
  }

private:
  // ---- blocks of samples

  // What is live while one block of samples is run.
  struct Block {
    Shape shape;
    Value* sample = nullptr;       // index of lane 0
    std::vector<LaneValue> reads;  // by argument; planes that are only read
    std::vector<Values> carried;   // by argument; slots of state and outputs, one a part
    Values live;                   // slots of the masks, one a copy; none without a mask
    Values live_at_entry;
    Values mask_bytes;      // the mask's plane as it was
    Value* step = nullptr;  // slot: steps taken
  };

  void samples(const Shape& shape, Value* sample_slot, Value* end) {
    BasicBlock* head = block("head");
    BasicBlock* body = block("body");
    BasicBlock* next = block("next");
    BasicBlock* done = block("done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    Value* sample = b_.CreateLoad(b_.getInt64Ty(), sample_slot);
    Value* after = b_.CreateAdd(sample, b_.getInt64(static_cast<std::uint64_t>(shape.lanes())));
    b_.CreateCondBr(b_.CreateICmpSLE(after, end), body, done);
    b_.SetInsertPoint(body);
    run_block(shape, sample, next);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    b_.CreateStore(entry_.stride() == nullptr ? after : b_.CreateAdd(sample, entry_.stride()), sample_slot);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
  }

  // One loop whose stores go past the caches, and one whose stores do not.
  void samples_in_two_ways(Value* sample_slot, Value* end) {
    BasicBlock* past_caches = block("past_caches");
    BasicBlock* cached = block("cached");
    BasicBlock* rest = block("rest");
    b_.CreateCondBr(streaming_, past_caches, cached);
    for (BasicBlock* way : {past_caches, cached}) {
      b_.SetInsertPoint(way);
      past_caches_ = way == past_caches;
      samples(shape_, sample_slot, end);
      b_.CreateBr(rest);
    }
    past_caches_ = false;
    b_.SetInsertPoint(rest);
  }

  // Leaves through `skip` when nobody in the block is live.
  void run_block(const Shape& shape, Value* sample, BasicBlock* skip) {
    Block s;
    s.shape = shape;
    s.sample = sample;
    s.step = slot(b_.getInt64Ty(), "step");
    b_.CreateStore(b_.getInt64(0), s.step);
    if (launch_.note_slot != nullptr) begin_notes(s);
    LaneEmitter lanes(kernel_, uniform_, launch_, math_, shape, b_);
    const bool masked = kernel_.terminated_argument() >= 0;
    if (masked) load_mask(s, lanes, skip);
    load_planes(s, lanes);
    if (straight_) {
      only_step(s);
      return count_steps(s);
    }
    if (runs_on_) {
      steps_past_ends(s, lanes);
    } else {
      if (masked) {
        masked_steps(s, lanes);
      } else {
        plain_steps(s);
      }
      store_planes(s);
    }
    if (masked) store_mask(s, lanes);
    if (launch_.note_slot != nullptr) store_note_words(s);
    count_steps(s);
  }

  // A sample that is skipped whole has said, by then, that it notes nothing.
  void begin_notes(const Block& s) {
    b_.CreateStore(b_.getInt64(0), launch_.note_slot);
    store_note_words(s);
  }
  void store_note_words(const Block& s) {
    Value* place = b_.CreateSub(s.sample, launch_.begin);
    b_.CreateAlignedStore(b_.CreateLoad(b_.getInt64Ty(), launch_.note_slot),
                          b_.CreateGEP(b_.getInt64Ty(), launch_.notes_used, place), llvm::Align(8));
  }

  void load_mask(Block& s, LaneEmitter& lanes, BasicBlock* skip) {
    const auto a = static_cast<std::size_t>(kernel_.terminated_argument());
    s.mask_bytes = load_parts(s, a, memory_type(s.shape, Scalar::boolean));
    for (Value* bytes : s.mask_bytes) {
      Value* live = b_.CreateICmpEQ(bytes, llvm::Constant::getNullValue(bytes->getType()));
      s.live_at_entry.push_back(live);
      s.live.push_back(slot(live->getType(), "live"));
      b_.CreateStore(live, s.live.back());
    }
    BasicBlock* some = block("some_live");
    b_.CreateCondBr(lanes.any(s.live_at_entry), some, skip);
    b_.SetInsertPoint(some);
  }

  void load_planes(Block& s, LaneEmitter& lanes) {
    s.reads.resize(kernel_.arguments.size());
    s.carried.resize(kernel_.arguments.size());
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      const kernel::Argument& argument = kernel_.arguments[a];
      const Scalar scalar = argument.type.scalar;
      if (argument.role == Role::param) {
        Value* number = many_params_ ? entry_.load_param(a) : launch_.bases[a];
        s.reads[a] = LaneValue{argument.type, true, {number}};
      } else if (only_read(a)) {
        s.reads[a] = LaneValue{argument.type, false,
                               from_memory(load_parts(s, a, memory_type(s.shape, scalar)), scalar)};
      } else if (kernel::is_committed(argument.role) && argument.role != Role::terminated) {
        llvm::Type* type = lanes.lane_type(scalar);
        if (straight_) continue;  // stored as soon as it is there
        for (int part = 0; part < argument.type.components() * s.shape.copies; ++part) {
          s.carried[a].push_back(slot(type, argument.name));
        }
        // An output is loaded only where something of what is there may have to stay: a lane that is not
        // live, or a step that a cancelled loop left unfinished.
        if (argument.role == Role::mutable_ || has_loops_) fill_slots(s, a);
      }
    }
  }

  void fill_slots(Block& s, std::size_t a) {
    const Scalar scalar = kernel_.arguments[a].type.scalar;
    const Values parts = from_memory(load_parts(s, a, memory_type(s.shape, scalar)), scalar);
    for (std::size_t part = 0; part < parts.size(); ++part) b_.CreateStore(parts[part], s.carried[a][part]);
  }

  // ---- steps

  struct StepResult {
    std::vector<LaneValue> committed;  // by argument; state and outputs
    Values finished;                   // masks of what this step finishes
  };

  // The body once, from the values in the slots. Makes its own emitter: each loop has its own code.
  StepResult step(Block& s, const Values& live) {
    LaneEmitter lanes(kernel_, uniform_, launch_, math_, s.shape, b_);
    lanes.at(s.sample, s.step);
    std::size_t entry = 0;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      const kernel::Argument& argument = kernel_.arguments[a];
      if (!kernel::has_entry_value(argument.role)) continue;
      const kernel::ValueId id = kernel_.body.arguments[entry++];
      if (argument.role == Role::mutable_ && !only_read(a)) {
        LaneValue value{argument.type, false, {}};
        for (Value* carried : s.carried[a])
          value.parts.push_back(b_.CreateLoad(lanes.lane_type(argument.type.scalar), carried));
        lanes.define(id, std::move(value));
      } else if (argument.role == Role::terminated) {
        lanes.define(id,
                     LaneValue{argument.type, true, {b_.getFalse()}});  // a sample that runs is not finished
      } else {
        lanes.define(id, s.reads[a]);
      }
    }
    lanes.region(kernel_.body, live);

    StepResult result;
    result.committed.resize(kernel_.arguments.size());
    std::size_t yield = 0;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      const kernel::Argument& argument = kernel_.arguments[a];
      if (!kernel::is_committed(argument.role)) continue;
      LaneValue value = lanes.spread(kernel_.body.yields[yield++]);
      if (argument.role == Role::terminated) {
        result.finished = std::move(value.parts);
      } else {
        result.committed[a] = std::move(value);
      }
    }
    return result;
  }

  void commit(Block& s, const StepResult& result, const Values& live) {
    for (std::size_t a = 0; a < s.carried.size(); ++a) {
      for (std::size_t part = 0; part < s.carried[a].size(); ++part) {
        Value* value = result.committed[a].parts[part];
        Value* carried = s.carried[a][part];
        if (!live.empty()) {
          Value* old = b_.CreateLoad(value->getType(), carried);
          value = b_.CreateSelect(live[part % live.size()], value, old);
        }
        b_.CreateStore(value, carried);
      }
    }
  }

  // A step that a cancelled loop left has no meaningful values: nothing of it is committed, so that every
  // sample stays at a whole step.
  void leave_if_cancelled(BasicBlock* done) {
    if (!has_loops_) return;
    BasicBlock* go_on = block("not_cancelled");
    b_.CreateCondBr(b_.CreateLoad(b_.getInt1Ty(), launch_.cancelled), done, go_on);
    b_.SetInsertPoint(go_on);
  }

  Value* advance(Block& s) {
    Value* taken = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), s.step), b_.getInt64(1));
    b_.CreateStore(taken, s.step);
    return taken;
  }

  void plain_steps(Block& s) {
    BasicBlock* loop = block("step");
    BasicBlock* done = block("stepped");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    const StepResult result = step(s, {});
    leave_if_cancelled(done);
    commit(s, result, {});
    b_.CreateCondBr(b_.CreateICmpSLT(advance(s), max_steps_), loop, done);
    b_.SetInsertPoint(done);
  }

  // The last step, which stands for all of them. What it commits is stored as soon as it is there: to keep a
  // vector for each of many planes until the end would spill them.
  void only_step(Block& s) {
    b_.CreateStore(b_.CreateSub(max_steps_, b_.getInt64(1)), s.step);
    const StepResult result = step(s, {});
    for (std::size_t a = 0; a < result.committed.size(); ++a) {
      const Values& parts = result.committed[a].parts;
      for (std::size_t part = 0; part < parts.size(); ++part) store_early(s, a, part, parts[part]);
    }
    if (many_params_) load_params_late(s);
    advance(s);
  }

  // Where each is used first: LLVM may not move a load behind a store that it cannot tell apart from it.
  void load_params_late(const Block& s) {
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (kernel_.arguments[a].role != Role::param) continue;
      auto* number = llvm::cast<llvm::Instruction>(s.reads[a].parts.front());
      llvm::Instruction* first = nullptr;
      for (llvm::User* user : number->users()) {
        auto* at = llvm::cast<llvm::Instruction>(user);
        const bool here = at->getParent() == number->getParent();
        if (here && (first == nullptr || at->comesBefore(first))) first = at;
      }
      if (first == nullptr) continue;
      for (llvm::Instruction* part = number;
           part != nullptr;) {  // the number, and the load that it is made of
        part->moveBefore(first);
        first = part;
        part = llvm::isa<llvm::LoadInst>(part) ? nullptr
                                               : llvm::dyn_cast<llvm::Instruction>(part->getOperand(0));
      }
    }
  }

  void store_early(const Block& s, std::size_t a, std::size_t part, Value* value) {
    const llvm::IRBuilderBase::InsertPointGuard guard(b_);
    // Anything else is there by the end of the block, where the builder is.
    auto* made = llvm::dyn_cast<llvm::Instruction>(value);
    const bool here =
        made != nullptr && made->getParent() == b_.GetInsertBlock() && !llvm::isa<llvm::PHINode>(made);
    if (here && made->getNextNode() != nullptr) b_.SetInsertPoint(made->getNextNode());
    const bool streams = past_caches_ && s.shape.width > 1 && is_streamed(kernel_.arguments[a], access_[a]);
    store_part(s, a, part, value, streams);
  }

  void masked_steps(Block& s, LaneEmitter& lanes) {
    BasicBlock* fast = block("all_live");
    BasicBlock* left_fast = block("left_all_live");
    BasicBlock* prepare = block("prepare_masked");
    BasicBlock* head = block("masked_head");
    BasicBlock* body = block("masked_step");
    BasicBlock* done = block("stepped");
    b_.CreateCondBr(lanes.all(s.live_at_entry), fast, prepare);

    b_.SetInsertPoint(fast);
    const StepResult all_live = step(s, {});
    leave_if_cancelled(done);  // the masks are still those of the entry
    commit(s, all_live, {});
    Value* over = b_.CreateICmpSGE(advance(s), max_steps_);
    b_.CreateCondBr(b_.CreateOr(lanes.any(all_live.finished), over), left_fast, fast);
    b_.SetInsertPoint(left_fast);
    for (std::size_t j = 0; j < s.live.size(); ++j)
      b_.CreateStore(b_.CreateNot(all_live.finished[j]), s.live[j]);
    b_.CreateBr(head);

    b_.SetInsertPoint(prepare);
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      const Role role = kernel_.arguments[a].role;
      if ((role == Role::output || role == Role::reduce) && !has_loops_) fill_slots(s, a);
    }
    b_.CreateBr(head);

    b_.SetInsertPoint(head);
    Values live;
    for (Value* mask : s.live) live.push_back(b_.CreateLoad(s.live_at_entry[0]->getType(), mask));
    Value* left = b_.CreateICmpSLT(b_.CreateLoad(b_.getInt64Ty(), s.step), max_steps_);
    b_.CreateCondBr(b_.CreateAnd(lanes.any(live), left), body, done);
    b_.SetInsertPoint(body);
    const StepResult some_live = step(s, live);
    leave_if_cancelled(done);
    commit(s, some_live, live);
    for (std::size_t j = 0; j < live.size(); ++j) {
      b_.CreateStore(b_.CreateAnd(live[j], b_.CreateNot(some_live.finished[j])), s.live[j]);
    }
    advance(s);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
  }

  // All lanes step, live or not. One that finishes is stored then, and those that never do at the end. Who is
  // live is a bit of a number: vectors and mask registers are for the step.
  void steps_past_ends(Block& s, LaneEmitter& lanes) {
    BasicBlock* all_live = block("all_live");
    BasicBlock* first_end = block("first_end");
    BasicBlock* some_live = block("some_live_step");
    BasicBlock* finish = block("finish");
    BasicBlock* again = block("again");
    BasicBlock* over = block("steps_are_over");
    BasicBlock* store_all = block("store_all");
    BasicBlock* store_live = block("store_live");
    BasicBlock* done = block("stepped");
    Value* live = slot(b_.getInt64Ty(), "live_bits");
    Value* ended = slot(b_.getInt64Ty(), "ended_bits");
    b_.CreateStore(lanes.bits(s.live_at_entry), live);
    b_.CreateCondBr(lanes.all(s.live_at_entry), all_live, some_live);

    // While all are live nobody asks which of those that are done were so before.
    for (const bool all : {true, false}) {
      BasicBlock* loop = all ? all_live : some_live;
      BasicBlock* nobody = block("nobody_ends");
      b_.SetInsertPoint(loop);
      const StepResult result = step(s, {});
      commit(s, result, {});
      Value* left = b_.CreateICmpSLT(advance(s), max_steps_);
      if (all) {
        b_.CreateCondBr(lanes.any(result.finished), first_end, nobody);
        b_.SetInsertPoint(first_end);
        b_.CreateStore(lanes.bits(result.finished), ended);
        b_.CreateBr(finish);
      } else {
        Value* bits = b_.CreateAnd(lanes.bits(result.finished), b_.CreateLoad(b_.getInt64Ty(), live));
        b_.CreateStore(bits, ended);
        b_.CreateCondBr(b_.CreateICmpNE(bits, b_.getInt64(0)), finish, nobody);
      }
      b_.SetInsertPoint(nobody);
      b_.CreateCondBr(left, loop, over);
    }

    b_.SetInsertPoint(finish);
    Value* bits = b_.CreateLoad(b_.getInt64Ty(), ended);
    store_some(s, lanes.masks(bits));
    Value* still = b_.CreateAnd(b_.CreateLoad(b_.getInt64Ty(), live), b_.CreateNot(bits));
    b_.CreateStore(still, live);
    b_.CreateCondBr(b_.CreateICmpNE(still, b_.getInt64(0)), again, done);
    b_.SetInsertPoint(again);
    Value* left = b_.CreateICmpSLT(b_.CreateLoad(b_.getInt64Ty(), s.step), max_steps_);
    b_.CreateCondBr(left, some_live, over);

    b_.SetInsertPoint(over);
    const Values never = lanes.masks(b_.CreateLoad(b_.getInt64Ty(), live));
    b_.CreateCondBr(lanes.all(never), store_all, store_live);
    b_.SetInsertPoint(store_all);
    store_planes(s);
    b_.CreateBr(done);
    b_.SetInsertPoint(store_live);
    store_some(s, never);
    b_.CreateBr(done);

    b_.SetInsertPoint(done);
    const Values left_live = lanes.masks(b_.CreateLoad(b_.getInt64Ty(), live));
    for (std::size_t j = 0; j < left_live.size(); ++j) b_.CreateStore(left_live[j], s.live[j]);
  }

  // What the lanes of a mask hold; what lies in memory for the others stays.
  void store_some(Block& s, const Values& mask) {
    for (std::size_t a = 0; a < s.carried.size(); ++a) {
      if (s.carried[a].empty()) continue;
      const Scalar scalar = kernel_.arguments[a].type.scalar;
      if (mask_registers_ && s.shape.width > 1 && scalar != Scalar::boolean) {
        store_masked(s, a, mask);
        continue;
      }
      const Values old = from_memory(load_parts(s, a, memory_type(s.shape, scalar)), scalar);
      for (std::size_t part = 0; part < old.size(); ++part) {
        Value* value = b_.CreateLoad(old[part]->getType(), s.carried[a][part]);
        store_part(s, a, part, b_.CreateSelect(mask[part % mask.size()], value, old[part]), false);
      }
    }
  }

  void store_masked(const Block& s, std::size_t a, const Values& mask) {
    const int copies = s.shape.copies;
    for (std::size_t part = 0; part < s.carried[a].size(); ++part) {
      auto* carried = llvm::cast<llvm::AllocaInst>(s.carried[a][part]);
      const int index = static_cast<int>(part);
      b_.CreateMaskedStore(b_.CreateLoad(carried->getAllocatedType(), carried),
                           address(s, a, index / copies, index % copies), element_alignment(a),
                           mask[part % mask.size()]);
    }
  }

  // ---- memory

  llvm::Type* memory_type(const Shape& shape, Scalar scalar) {
    return LaneEmitter(kernel_, uniform_, launch_, math_, shape, b_).memory_type(scalar);
  }

  // Address of part (component, copy) of the block in the plane of argument `a`.
  Value* address(const Block& s, std::size_t a, int component, int copy) {
    const auto bytes = static_cast<std::uint64_t>(kernel::bytes_of(kernel_.arguments[a].type.scalar));
    const bool apart = kernel_.arguments[a].role == Role::reduce;  // the values of this call's samples alone
    Value* index = apart ? b_.CreateSub(s.sample, launch_.begin) : s.sample;
    Value* offset = b_.CreateMul(index, b_.getInt64(bytes));
    if (component > 0) {
      offset = b_.CreateAdd(
          offset, b_.CreateMul(launch_.strides[a], b_.getInt64(static_cast<std::uint64_t>(component))));
    }
    Value* lane_0 = b_.CreateGEP(b_.getInt8Ty(), launch_.bases[a], offset);
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), lane_0,
                                 static_cast<std::uint64_t>(copy * s.shape.width) * bytes);
  }

  llvm::Align element_alignment(std::size_t a) const {
    return launch_.alignment(static_cast<std::uint64_t>(kernel::bytes_of(kernel_.arguments[a].type.scalar)));
  }

  Values load_parts(const Block& s, std::size_t a, llvm::Type* type) {
    Values parts;
    for (int c = 0; c < kernel_.arguments[a].type.components(); ++c) {
      for (int j = 0; j < s.shape.copies; ++j) {
        parts.push_back(b_.CreateAlignedLoad(type, address(s, a, c, j), element_alignment(a)));
      }
    }
    return parts;
  }

  Values from_memory(Values parts, Scalar scalar) {
    if (scalar != Scalar::boolean) return parts;
    for (Value*& part : parts) part = b_.CreateICmpNE(part, llvm::Constant::getNullValue(part->getType()));
    return parts;
  }

  void store_planes(Block& s) {
    std::vector<std::size_t> streamed;
    for (std::size_t a = 0; a < s.carried.size(); ++a) {
      const bool streams = may_stream_ && s.shape.width > 1 && is_streamed(kernel_.arguments[a], access_[a]);
      if (streams) {
        streamed.push_back(a);
      } else {
        store_plane(s, a, false);
      }
    }
    if (streamed.empty()) return;
    BasicBlock* past_caches = block("past_caches");
    BasicBlock* cached = block("cached");
    BasicBlock* stored = block("stored");
    b_.CreateCondBr(streaming_, past_caches, cached);
    for (BasicBlock* way : {past_caches, cached}) {
      b_.SetInsertPoint(way);
      for (const std::size_t a : streamed) store_plane(s, a, way == past_caches);
      b_.CreateBr(stored);
    }
    b_.SetInsertPoint(stored);
  }

  // `streams`: past the caches; the address is a multiple of the vector's size then.
  void store_plane(Block& s, std::size_t a, bool streams) {
    for (std::size_t part = 0; part < s.carried[a].size(); ++part) {
      auto* carried = llvm::cast<llvm::AllocaInst>(s.carried[a][part]);
      store_part(s, a, part, b_.CreateLoad(carried->getAllocatedType(), carried), streams);
    }
  }

  void store_part(const Block& s, std::size_t a, std::size_t part, Value* value, bool streams) {
    const Scalar scalar = kernel_.arguments[a].type.scalar;
    if (scalar == Scalar::boolean) value = b_.CreateZExt(value, memory_type(s.shape, scalar));
    const int copies = s.shape.copies;
    const int index = static_cast<int>(part);
    const auto bytes = static_cast<std::uint64_t>(s.shape.width * kernel::bytes_of(scalar));
    llvm::StoreInst* store = b_.CreateAlignedStore(value, address(s, a, index / copies, index % copies),
                                                   streams ? llvm::Align(bytes) : element_alignment(a));
    if (!streams) return;
    auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
  }

  void store_mask(Block& s, LaneEmitter& lanes) {
    const auto a = static_cast<std::size_t>(kernel_.terminated_argument());
    Values newly;
    for (std::size_t j = 0; j < s.live.size(); ++j) {
      Value* live = b_.CreateLoad(s.live_at_entry[j]->getType(), s.live[j]);
      newly.push_back(b_.CreateAnd(s.live_at_entry[j], b_.CreateNot(live)));
      Value* set =
          b_.CreateSelect(newly[j], llvm::ConstantInt::get(s.mask_bytes[j]->getType(), 1), s.mask_bytes[j]);
      b_.CreateAlignedStore(set, address(s, a, 0, static_cast<int>(j)), llvm::Align(1));
    }
    Value* total = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), finished_), lanes.count(newly));
    b_.CreateStore(total, finished_);
  }

  void count_steps(Block& s) {
    Value* taken = b_.CreateLoad(b_.getInt64Ty(), s.step);
    Value* most = b_.CreateLoad(b_.getInt64Ty(), steps_);
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpSGT(taken, most), taken, most), steps_);
  }

  // A plane that no step changes, state that is never committed among them: nothing may be stored to it,
  // since the edges count it as read.
  bool only_read(std::size_t a) const {
    const Role role = kernel_.arguments[a].role;
    return role == Role::read || (role == Role::mutable_ && !access_[a].written);
  }

  // ---- small

  BasicBlock* block(const char* name) { return BasicBlock::Create(b_.getContext(), name, function_); }

  Value* counter(const char* name) {
    Value* zeroed = slot(b_.getInt64Ty(), name);
    b_.CreateStore(b_.getInt64(0), zeroed);
    return zeroed;
  }

  // A stack slot, in the entry block so that SROA promotes it.
  Value* slot(llvm::Type* type, const llvm::Twine& name) {
    BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> at_entry(&entry, entry.begin());
    return at_entry.CreateAlloca(type, nullptr, name);
  }

  const Kernel& kernel_;
  Shape shape_;
  const std::vector<kernel::Access> access_;
  const std::vector<bool> uniform_;
  const bool has_loops_;
  const bool may_stream_;
  const bool straight_;
  const bool runs_on_;  // finished samples do, beside live ones
  const bool mask_registers_;
  const bool many_params_;  // they are loaded again for each block of samples
  MathFunctions math_;
  llvm::IRBuilder<> b_;
  Entry entry_;
  llvm::Function* function_;
  Value* max_steps_ = nullptr;
  Value* streaming_ = nullptr;  // whether stores go past the caches
  bool past_caches_ = false;    // in the way that is being emitted (of a straight line)
  Value* finished_ = nullptr;
  Value* steps_ = nullptr;
  LaunchValues launch_;
};

}  // namespace

std::unique_ptr<llvm::Module> emit(const Kernel& kernel, const Shape& shape, llvm::LLVMContext& context,
                                   const llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("kernel", context);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  // Notes that come one after the other are made by one sample at a time.
  const Shape used = kernel::additions_of(kernel).by_sample ? shape : Shape{1, 1};
  FunctionEmitter(kernel, used, machine, *module).emit();
  return module;
}

}  // namespace eagle::codegen
