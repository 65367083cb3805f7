// Runs kernels of PTX on this CPU, thread by thread, in an order that a seed makes up: threads of a grid may
// run in any. Slow, exact, and strict: what a device would fault at, this does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/fake_cuda/ptx_program.h"

namespace eagle::fake_cuda {

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

enum class PtxFault : std::uint8_t { none, illegal_address, misaligned_address, out_of_time };

struct PtxOutcome {
  PtxFault fault = PtxFault::none;
  std::string text;  // of a fault: thread, line and address
  std::uint64_t instructions = 0;
};

struct PtxLaunch {
  const PtxProgram* program = nullptr;
  const PtxFunction* entry = nullptr;
  std::byte* globals = nullptr;  // a copy of the program's, of this loaded module
  std::span<const std::byte> parameters;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  // What may be loaded and stored, ascending and apart; parameters, frames and globals are known.
  std::span<const MemoryRange> memory;
  // What the function cudaGraphSetConditional does; false for a handle that is none.
  std::function<bool(std::uint64_t handle, std::uint32_t value)> set_conditional;
  std::uint64_t seed = 0;
  bool flips_bit = false;  // the lowest one of the first value that it stores in the device's memory
  std::uint64_t most_instructions = std::uint64_t{1} << 36;
};

PtxOutcome run_ptx(const PtxLaunch& launch);

}  // namespace eagle::fake_cuda
