// KernelCounts: what kernels put right instead of failing, counted so that a user can see it.
#pragma once

#include <cstdint>

namespace eagle::run {

struct KernelCounts {
  std::int64_t clamped = 0;         // gathers whose index was outside the table
  std::int64_t zero_divisions = 0;  // integer divisions by zero, which give 0
  std::int64_t dropped = 0;         // additions whose index was outside the accumulator
  std::int64_t cut_short = 0;       // calls that a cancel ended inside a loop: their last step is not there

  KernelCounts& operator+=(const KernelCounts& other) {
    clamped += other.clamped;
    zero_divisions += other.zero_divisions;
    dropped += other.dropped;
    cut_short += other.cut_short;
    return *this;
  }
};

}  // namespace eagle::run
