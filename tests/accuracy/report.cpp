#include "tests/accuracy/report.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "engine/kernel/typing.h"

namespace eagle::accuracy {

std::string describe(kernel::Opcode code, const Operands& operands) {
  const kernel::Rule& rule = kernel::rule_of(code);
  const std::string name(rule.name);
  char text[160];
  std::snprintf(text, sizeof text, rule.operands == 1 ? "%s(%a)" : "%s(%a, %a)", name.c_str(), operands[0],
                operands[1]);
  return text;
}

void report(kernel::Opcode code, kernel::Scalar scalar, const Largest& largest) {
  const std::string name(kernel::rule_of(code).name);
  const char* type = scalar == kernel::Scalar::f32 ? "f32" : "f64";
  std::printf("%-6s %s  %.6f ulp at %s, of %zu\n", name.c_str(), type, largest.error, largest.at.c_str(),
              largest.operands);
  const char* out = std::getenv("EAGLE_ACCURACY_OUT");
  if (out == nullptr) return;
  std::ofstream(out, std::ios::app) << name << ' ' << type << ' ' << std::setprecision(9) << largest.error
                                    << ' ' << largest.operands << ' ' << largest.at << '\n';
}

}  // namespace eagle::accuracy
