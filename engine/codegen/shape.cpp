#include "engine/codegen/shape.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "engine/codegen/large_kernel.h"
#include "engine/codegen/straight_line.h"
#include "engine/codegen/uniform.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::Role;
using kernel::Scalar;

// The bytes of the widest value that lives in vector lanes. Masks cost nothing: they are mask bits.
int widest_bytes(const Kernel& kernel) {
  int widest = 1;
  for (const kernel::Type& type : kernel.value_types) {
    if (type.scalar != Scalar::boolean) widest = std::max(widest, kernel::bytes_of(type.scalar));
  }
  for (const kernel::Argument& argument : kernel.arguments) {
    if (kernel::is_committed(argument.role) && argument.type.scalar != Scalar::boolean) {
      widest = std::max(widest, kernel::bytes_of(argument.type.scalar));
    }
  }
  return widest == 1 ? 4 : widest;
}

bool has_avx512(const llvm::TargetMachine& machine) {
  return machine.getTargetTriple().isX86() &&
         machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl,+avx512bw,+avx512dq");
}

int registers_of(const llvm::TargetMachine& machine) {
  return has_avx512(machine) || !machine.getTargetTriple().isX86() ? 32 : 16;
}

// By one copy: what a straight line has in hand, or else what goes through the step loop, planes' values and
// a few temporaries. More copies fill the pipes of latency-bound loops; spilling would cost more than they
// bring.
int registers_kept(const Kernel& kernel) {
  if (is_straight_line(kernel)) return vectors_kept(kernel, uniform_values(kernel));
  int kept = 3;
  for (const kernel::Argument& argument : kernel.arguments) {
    if (kernel::is_per_sample(argument.role) && argument.role != Role::terminated)
      kept += argument.type.components();
  }
  return kept;
}

}  // namespace

bool is_device(const llvm::TargetMachine& machine) { return machine.getTargetTriple().isNVPTX(); }

int vector_bytes(const llvm::TargetMachine& machine) {
  if (is_device(machine)) return 8;
  if (has_avx512(machine)) return 64;
  return machine.getTargetTriple().isX86() && machine.getMCSubtargetInfo()->checkFeatures("+avx2") ? 32 : 16;
}

Shape shape_for(const Kernel& kernel, const llvm::TargetMachine& machine, int copies) {
  Shape shape;
  if (is_device(machine) || !kernel::additions_of(kernel).by_sample) return shape;
  shape.width = vector_bytes(machine) / widest_bytes(kernel);
  if (is_large(kernel)) return shape;
  shape.copies =
      copies > 0 ? copies : std::clamp(registers_of(machine) / registers_kept(kernel), 1, most_copies);
  if (shape.copies == 3) shape.copies = 2;
  return shape;
}

}  // namespace eagle::codegen
