#include "engine/run/cpu/kernel_facts.h"

#include "engine/codegen/streaming.h"
#include "engine/kernel/work.h"

namespace eagle::run {

KernelFacts KernelFacts::of(const kernel::Kernel& kernel) {
  KernelFacts facts;
  facts.accesses = kernel::accesses(kernel);
  facts.may_stream = codegen::may_stream(kernel);
  facts.cost.work = kernel::work_of(kernel);
  facts.cost.loops = kernel::has_loops(kernel);
  for (std::size_t a = 0; a < facts.accesses.size(); ++a) {
    const kernel::Argument& argument = kernel.arguments[a];
    if (!kernel::is_per_sample(argument.role)) continue;
    const int ways = (facts.accesses[a].read ? 1 : 0) + (facts.accesses[a].written ? 1 : 0);
    facts.cost.bytes +=
        ways * argument.type.components() * std::int64_t{kernel::bytes_of(argument.type.scalar)};
  }
  return facts;
}

}  // namespace eagle::run
