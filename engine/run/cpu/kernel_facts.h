// KernelFacts: what binding asks of a kernel, worked out once for all launches of it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::run {

struct KernelFacts {
  static KernelFacts of(const kernel::Kernel& kernel);

  // Of a sample.
  struct Cost {
    std::int64_t bytes = 0;  // loaded and stored, tables aside
    double work = 0;         // kernel::work_of
    bool loops = false;      // it may take any time
  };
  Cost cost;
  std::vector<kernel::Access> accesses;  // by argument
  bool may_stream = false;               // codegen::may_stream
};

}  // namespace eagle::run
