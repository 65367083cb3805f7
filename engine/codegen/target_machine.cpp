#include "engine/codegen/target_machine.h"

#include <llvm-c/Target.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/codegen/device_abi.h"
#include "engine/codegen/device_arch.h"

namespace eagle::codegen {

void initialise_targets() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)done;
}

StatusOr<std::unique_ptr<llvm::TargetMachine>> machine_for(std::string_view cpu, bool fast_compile,
                                                           std::string_view other_triple) {
  initialise_targets();
  const std::string triple = other_triple.empty() ? llvm::sys::getProcessTriple() : std::string(other_triple);
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (target == nullptr)
    return Status(Reason::compile_failed, "LLVM has no target for " + triple + ": " + problem);

  std::string name(cpu);
  std::string features;
  if (name.empty()) {
    name = llvm::sys::getHostCPUName().str();
    llvm::SubtargetFeatures detected;
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      detected.AddFeature(feature.first(), feature.second);
    }
    features = detected.getString();
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, name, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      fast_compile ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
  if (machine == nullptr || !machine->getMCSubtargetInfo()->isCPUStringValid(name)) {
    return Status(Reason::bad_value, "CPU target '" + name + "' is not one that LLVM knows");
  }
  return machine;
}

StatusOr<std::unique_ptr<llvm::TargetMachine>> device_machine_for(std::string_view arch, bool fast_compile,
                                                                  std::size_t parameter_bytes) {
  initialise_targets();
  const std::string triple = "nvptx64-nvidia-cuda";
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (target == nullptr)
    return Status(Reason::compile_failed, "LLVM has no target for " + triple + ": " + problem);
  EAGLE_ASSIGN_OR_RETURN(const DeviceArch known, find_device_arch(arch));
  // The oldest version that can say it, so that old drivers load it.
  const int version = parameter_bytes > usual_parameter_bytes ? std::max(81, known.ptx) : known.ptx;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, known.name, "+ptx" + std::to_string(version), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, fast_compile ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
  if (machine == nullptr)
    return Status(Reason::compile_failed, "LLVM makes no code for " + std::string(known.name));
  return machine;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, bool fast_compile) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  if (!fast_compile) {
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(
        llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  }
  passes.addPass(llvm::DCEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

StatusOr<std::unique_ptr<llvm::MemoryBuffer>> assemble(llvm::Module& module, llvm::TargetMachine& machine,
                                                       llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
    return Status(Reason::compile_failed,
                  "LLVM cannot emit this kind of file for " + machine.getTargetTriple().str());
  }
  passes.run(module);
  return std::unique_ptr<llvm::MemoryBuffer>(
      std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), /*RequiresNullTerminator=*/false));
}

}  // namespace eagle::codegen
