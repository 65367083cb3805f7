// One operation on many operands, by the interpreter and by compiled code.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/kernel/ir.h"
#include "tests/accuracy/reference.h"

namespace eagle::accuracy {

// A kernel of one operation, compiled for a CPU by LLVM's name, or for this machine. Throws
// std::runtime_error where that fails.
class Runner {
public:
  Runner(kernel::Opcode code, kernel::Scalar scalar, const char* cpu = "");
  // Results widened to double, which is exact; conditions are 0 and 1. Operands are to be numbers of the
  // scalar type.
  [[nodiscard]] std::vector<double> compiled(const std::vector<Operands>& operands) const;
  [[nodiscard]] std::vector<double> interpreted(const std::vector<Operands>& operands) const;
  // A function of one single, by compiled code and without copies.
  void compiled(std::span<const float> operands, std::span<float> results) const;

private:
  kernel::Opcode code_;
  kernel::Scalar scalar_;
  int operands_;
  bool question_;
  std::shared_ptr<const codegen::Code> compiled_;
};

}  // namespace eagle::accuracy
