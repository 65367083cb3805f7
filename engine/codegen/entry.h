// Entry: the function of a module that the engine calls, and what a call brings in and takes away.
//
// A CPU's gets the address of a KernelCall (abi.h), a GPU's a parameter of words (device_abi.h). Whatever
// else is emitted is the same for both. Included by the compile helper alone.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstddef>

#include "engine/codegen/lanes.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

// Slots of i64 that the function counts in; `cancelled` is one of i1.
struct EntrySlots {
  llvm::Value* finished = nullptr;
  llvm::Value* steps = nullptr;
  llvm::Value* clamped = nullptr;
  llvm::Value* zero_divisions = nullptr;
  llvm::Value* dropped = nullptr;
  llvm::Value* cancelled = nullptr;
  llvm::Value* lost = nullptr;  // of a device alone
};

class Entry {
public:
  // Makes the function, without a body. The references are kept.
  Entry(const kernel::Kernel& kernel, bool device, llvm::Module& module, llvm::IRBuilder<>& builder);

  [[nodiscard]] llvm::Function* function() const { return function_; }
  // What the call brings, loaded at the insert point, which is in the entry block.
  void load(LaunchValues& launch);
  [[nodiscard]] llvm::Value* end() const { return end_; }
  [[nodiscard]] llvm::Value* max_steps() const { return max_steps_; }
  // The first sample that this call of the function runs.
  [[nodiscard]] llvm::Value* first() const { return first_; }
  // From one of its samples to the next; null: they are consecutive.
  [[nodiscard]] llvm::Value* stride() const { return stride_; }
  // i1: stores go past the caches. Only of a CPU.
  llvm::Value* streaming();
  // The number of a Param once more, where it is wanted instead of once for all. Only of a CPU.
  llvm::Value* load_param(std::size_t argument);
  // Stores or adds what was counted, at the insert point.
  void report(const EntrySlots& slots);

private:
  [[nodiscard]] llvm::Value* field(std::size_t offset) const;
  llvm::Value* load_field(std::size_t offset);
  llvm::Value* load_pointer(std::size_t offset);
  llvm::Value* word(std::size_t index);
  llvm::Value* address(std::size_t word_index);
  llvm::Value* param(kernel::Scalar scalar, llvm::Value* bits);
  void load_arguments(LaunchValues& launch);
  void load_host(LaunchValues& launch);
  void load_device(LaunchValues& launch);
  void add_to(std::size_t offset, llvm::Value* value, bool raise);

  const kernel::Kernel& kernel_;
  const bool device_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  llvm::Value* first_ = nullptr;
  llvm::Value* stride_ = nullptr;
  llvm::Value* end_ = nullptr;
  llvm::Value* max_steps_ = nullptr;
  llvm::Value* params_ = nullptr;  // of a CPU: where their bits are
  llvm::Value* counts_ = nullptr;  // of a device
};

}  // namespace eagle::codegen
