// Target machines and the way from a module to an object file. Included by the compile helper alone.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace eagle::codegen {

// Tells LLVM about its targets; once, before any of the calls below (which do it too).
void initialise_targets();

// A machine for an LLVM CPU name ("x86-64-v3", "znver4"), or for this machine and all its features when
// empty. Contraction is off: AllowFPOpFusion is Strict and no fast flag is ever set. BAD_VALUE for a CPU
// that LLVM does not know. `fast_compile`: for kernels so large that optimising them would take minutes.
// `triple`: empty for this process's, or another x86-64 or AArch64 one, to cross-compile (name a CPU then).
StatusOr<std::unique_ptr<llvm::TargetMachine>> machine_for(std::string_view cpu, bool fast_compile,
                                                           std::string_view triple = {});

// The same for a GPU architecture (device_arch.h); what it assembles is PTX. `parameter_bytes`: of the
// kernel's parameter, which may ask for a newer PTX than others.
StatusOr<std::unique_ptr<llvm::TargetMachine>> device_machine_for(std::string_view arch, bool fast_compile,
                                                                  std::size_t parameter_bytes);

// A short fixed pipeline: what a straight-line numeric kernel profits from, and little else. Bits are
// unaffected: no pass may reassociate, contract or assume.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, bool fast_compile);

// An object file, or the assembly text.
StatusOr<std::unique_ptr<llvm::MemoryBuffer>> assemble(llvm::Module& module, llvm::TargetMachine& machine,
                                                       llvm::CodeGenFileType type);

}  // namespace eagle::codegen
