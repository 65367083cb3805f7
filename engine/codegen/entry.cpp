#include "engine/codegen/entry.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>
#include <vector>

#include "engine/codegen/abi.h"
#include "engine/codegen/device_abi.h"
#include "engine/codegen/emit.h"

namespace eagle::codegen {

using kernel::Role;
using kernel::Scalar;
using llvm::Value;

namespace {

constexpr unsigned global_memory = 1;  // LLVM's number of the address space

llvm::Type* words_of(const kernel::Kernel& kernel, llvm::LLVMContext& context) {
  return llvm::ArrayType::get(llvm::Type::getInt64Ty(context), device_parameter_words(kernel));
}

}  // namespace

Entry::Entry(const kernel::Kernel& kernel, bool device, llvm::Module& module, llvm::IRBuilder<>& builder)
    : kernel_(kernel), device_(device), b_(builder) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                     device ? device_entry_name : entry_name, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  if (device_) {
    llvm::AttrBuilder by_value(module.getContext());
    by_value.addByValAttr(words_of(kernel, module.getContext()));
    by_value.addAlignmentAttr(llvm::Align(8));
    function_->addParamAttrs(0, by_value);
    function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function_->addFnAttr("no-jump-tables", "true");
    return;
  }
  // The vectors are native by construction; without these two LLVM halves 512-bit ones on some CPUs.
  function_->addFnAttr("prefer-vector-width", "512");
  function_->addFnAttr("min-legal-vector-width", "512");
  // A frame pointer lets LLVM align the stack for vectors it spills: unaligned ones cost up to twice the
  // time.
  function_->addFnAttr("frame-pointer", "all");
}

// ---- fields

Value* Entry::field(std::size_t offset) const {
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), function_->getArg(0), offset);
}
Value* Entry::load_field(std::size_t offset) { return b_.CreateLoad(b_.getInt64Ty(), field(offset)); }
Value* Entry::load_pointer(std::size_t offset) { return b_.CreateLoad(b_.getPtrTy(), field(offset)); }
Value* Entry::word(std::size_t index) { return load_field(index * 8); }
Value* Entry::address(std::size_t word_index) {
  return b_.CreateIntToPtr(word(word_index), b_.getPtrTy(global_memory));
}

Value* Entry::param(Scalar scalar, Value* bits) {
  switch (scalar) {
    case Scalar::f64:
      return b_.CreateBitCast(bits, b_.getDoubleTy());
    case Scalar::f32:
      return b_.CreateBitCast(b_.CreateTrunc(bits, b_.getInt32Ty()), b_.getFloatTy());
    case Scalar::i64:
      return bits;
    case Scalar::i32:
      return b_.CreateTrunc(bits, b_.getInt32Ty());
    case Scalar::boolean:
      return b_.CreateICmpNE(bits, b_.getInt64(0));
  }
  return nullptr;
}

// ---- what comes in

void Entry::load(LaunchValues& launch) {
  launch.additions = kernel::additions_of(kernel_);
  launch.device = device_;
  if (device_) {
    load_device(launch);
  } else {
    load_host(launch);
  }
}

void Entry::load_host(LaunchValues& launch) {
  launch.call = function_->getArg(0);
  first_ = launch.begin = load_field(offsetof(KernelCall, begin));
  end_ = load_field(offsetof(KernelCall, end));
  max_steps_ = load_field(offsetof(KernelCall, max_steps));
  launch.first_sample = load_field(offsetof(KernelCall, first_sample));
  launch.total_samples = load_field(offsetof(KernelCall, total_samples));
  launch.first_step = load_field(offsetof(KernelCall, first_step));
  launch.cancel = load_pointer(offsetof(KernelCall, cancel));
  launch.notes = load_pointer(offsetof(KernelCall, notes));
  launch.notes_capacity = load_field(offsetof(KernelCall, notes_capacity));
  launch.sample_numbers = load_pointer(offsetof(KernelCall, sample_numbers));
  load_arguments(launch);
}

void Entry::load_device(LaunchValues& launch) {
  const auto number = [](llvm::Intrinsic::ID id, llvm::IRBuilder<>& b) {
    return b.CreateZExt(b.CreateIntrinsic(id, {}, {}), b.getInt64Ty());
  };
  Value* block = number(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, b_);
  Value* threads = number(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, b_);
  Value* thread = number(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, b_);
  Value* blocks = number(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, b_);
  launch.begin = load_field(offsetof(DeviceCall, begin));
  first_ = b_.CreateAdd(launch.begin, b_.CreateAdd(b_.CreateMul(block, threads), thread));
  stride_ = b_.CreateMul(blocks, threads);
  end_ = load_field(offsetof(DeviceCall, end));
  max_steps_ = load_field(offsetof(DeviceCall, max_steps));
  launch.first_sample = load_field(offsetof(DeviceCall, first_sample));
  launch.total_samples = load_field(offsetof(DeviceCall, total_samples));
  launch.first_step = b_.CreateLoad(b_.getInt64Ty(), address(offsetof(DeviceCall, first_step) / 8));
  launch.cancel = address(offsetof(DeviceCall, cancel) / 8);
  launch.sample_numbers = address(offsetof(DeviceCall, sample_numbers) / 8);
  counts_ = address(offsetof(DeviceCall, counts) / 8);
  launch.notes_capacity = load_field(offsetof(DeviceCall, notes_capacity));
  if (launch.additions.by_sample) {
    for (std::size_t site = 0; site < launch.additions.sites.size(); ++site) {
      const std::size_t first_word = device_notes_word(kernel_, site);
      launch.note_bases.push_back(address(first_word));
      launch.note_bases.push_back(address(first_word + 1));
    }
  } else {
    launch.notes = address(offsetof(DeviceCall, notes) / 8);
    launch.notes_used = address(offsetof(DeviceCall, notes_used) / 8);
  }
  load_arguments(launch);
}

void Entry::load_arguments(LaunchValues& launch) {
  Value *planes = nullptr, *strides = nullptr, *lengths = nullptr;
  if (!device_) {
    planes = load_pointer(offsetof(KernelCall, planes));
    strides = load_pointer(offsetof(KernelCall, component_strides));
    params_ = load_pointer(offsetof(KernelCall, params));
    lengths = load_pointer(offsetof(KernelCall, lengths));
  }
  const auto entry = [&](Value* table, std::size_t index, llvm::Type* type) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), table, index));
  };
  for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
    const kernel::Argument& argument = kernel_.arguments[a];
    const bool by_value = argument.role == Role::param;
    const bool own_length = kernel::is_indexed(argument.role) && argument.axes.empty();
    Value *base = nullptr, *stride = nullptr, *length = nullptr;
    if (by_value) {
      base = device_ ? param(argument.type.scalar, word(device_base_word(a))) : load_param(a);
    } else {
      base = device_ ? address(device_base_word(a)) : entry(planes, a, b_.getPtrTy());
      stride = device_ ? word(device_stride_word(a)) : entry(strides, a, b_.getInt64Ty());
    }
    if (own_length) length = device_ ? word(device_length_word(a)) : entry(lengths, a, b_.getInt64Ty());
    launch.bases.push_back(base);
    launch.strides.push_back(stride);
    launch.lengths.push_back(length);
  }
}

Value* Entry::load_param(std::size_t argument) {
  Value* bits = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), params_, argument));
  return param(kernel_.arguments[argument].type.scalar, bits);
}

Value* Entry::streaming() {
  return b_.CreateICmpNE(load_field(offsetof(KernelCall, streaming)), b_.getInt64(0));
}

// ---- what goes out

// Adds to a count of the launch, or raises it. Few samples have anything to add, and what all of them would
// raise is soon there: a look spares the memory system a million additions to one place.
void Entry::add_to(std::size_t offset, Value* value, bool raise) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* add = llvm::BasicBlock::Create(context, "count", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "counted", function_);
  Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), counts_, offset);
  Value* there = b_.getInt64(0);
  if (raise) {
    llvm::LoadInst* load = b_.CreateAlignedLoad(b_.getInt64Ty(), at, llvm::Align(8));
    load->setAtomic(llvm::AtomicOrdering::Monotonic);
    there = load;
  }
  b_.CreateCondBr(b_.CreateICmpSGT(value, there), add, after);
  b_.SetInsertPoint(add);
  b_.CreateAtomicRMW(raise ? llvm::AtomicRMWInst::Max : llvm::AtomicRMWInst::Add, at, value, llvm::Align(8),
                     llvm::AtomicOrdering::Monotonic);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void Entry::report(const EntrySlots& slots) {
  const auto counted = [&](Value* slot) { return b_.CreateLoad(b_.getInt64Ty(), slot); };
  Value* cancelled =
      b_.CreateZExt(b_.CreateLoad(b_.getInt1Ty(), slots.cancelled), b_.getInt64Ty(), "was_cancelled");
  if (!device_) {
    const auto store = [&](std::size_t offset, Value* value) { b_.CreateStore(value, field(offset)); };
    store(offsetof(KernelCall, finished), counted(slots.finished));
    store(offsetof(KernelCall, steps), counted(slots.steps));
    store(offsetof(KernelCall, clamped), counted(slots.clamped));
    store(offsetof(KernelCall, zero_divisions), counted(slots.zero_divisions));
    store(offsetof(KernelCall, dropped), counted(slots.dropped));
    store(offsetof(KernelCall, cancelled), cancelled);
    return;
  }
  add_to(offsetof(DeviceCounts, finished), counted(slots.finished), false);
  add_to(offsetof(DeviceCounts, steps), counted(slots.steps), true);
  add_to(offsetof(DeviceCounts, clamped), counted(slots.clamped), false);
  add_to(offsetof(DeviceCounts, zero_divisions), counted(slots.zero_divisions), false);
  add_to(offsetof(DeviceCounts, dropped), counted(slots.dropped), false);
  add_to(offsetof(DeviceCounts, cancelled), cancelled, false);
  add_to(offsetof(DeviceCounts, lost), counted(slots.lost), false);
}

}  // namespace eagle::codegen
