// Routines: PTX of what a graph does on a device beside running kernels: copies between any two views, and
// the guards of conditionals. Integers, addresses and conversions that say how they round; reals are computed
// by the one emitter alone.
//
// Each is a module with one kernel, `routine_entry`, of one parameter by value: an array of 64-bit words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::run::cuda {

inline constexpr const char* routine_entry = "eagle_routine";

// ---- copies

// Addresses are numbers; the words of one copy's parameter, then three for each axis, innermost first: how
// many, bytes between elements of the source, and of the destination.
struct CopyWords {
  std::int64_t elements = 0;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  std::uint64_t index = 0;  // of the cell that chooses a row; 0: none
  std::int64_t index_bytes = 0;
  std::int64_t rows = 1;        // that it chooses from; what is outside takes the nearest one
  std::int64_t source_row = 0;  // bytes from one row to the next
  std::int64_t destination_row = 0;
};
static_assert(sizeof(CopyWords) == 8 * 8);

struct CopyRoutine {
  std::string ptx;
  std::vector<std::uint64_t> words;  // `source`, `destination` and `index` are 0: they are the caller's
  std::int64_t elements = 0;
};
// As the CPU's (engine/run/cpu/copy.h), from any strides to any.
CopyRoutine copy_routine(const graph::Copy& copy, std::string_view arch);

// ---- conditionals

// The words of a guard's parameter. `ran` counts the bodies of a loop.
struct GuardWords {
  std::uint64_t handle = 0;  // of the conditional
  std::uint64_t count = 0;   // address of a cell
  std::int64_t count_bytes = 8;
  std::int64_t count_is_bool = 0;
  std::uint64_t baseline = 0;  // 0: none
  std::int64_t baseline_bytes = 8;
  std::int64_t baseline_is_bool = 0;
  std::int64_t negated = 0;
  std::uint64_t ran = 0;         // address of an i64; 0: not a loop
  std::int64_t back = 0;         // 1: a body has ended; 0: the loop is entered
  std::int64_t most = 0;         // bodies
  std::uint64_t iterations = 0;  // address of the cell that gets `ran`; 0: none
  std::int64_t iterations_bytes = 8;
  std::uint64_t cancel = 0;  // address of a byte: not 0, nothing goes on
};
static_assert(sizeof(GuardWords) == 14 * 8);

// One thread. Counts, writes the counter's cell, and sets the conditional.
std::string guard_ptx(std::string_view arch);

// ---- runs until samples are done

// The words of `step_ptx`.
struct StepWords {
  std::uint64_t handle = 0;  // of the loop; 0: the host reads `live` and `steps` itself
  std::uint64_t state = 0;   // address of a StepState
  std::uint64_t counts = 0;  // of a DeviceCounts
  std::int64_t taken = 0;    // steps of the body that has ended; 0: the loop is entered
  std::int64_t next = 0;     // steps of a body
  std::uint64_t limit = 0;   // address of an i64: no body of this loop goes past this step
};
static_assert(sizeof(StepWords) == 6 * 8);

inline constexpr std::size_t most_step_loops = 3;

// In device memory.
struct StepState {
  std::int64_t steps = 0;      // taken, which kernels read as their first step
  std::int64_t last_step = 0;  // the last one that any sample took
  std::int64_t bodies = 0;
  std::int64_t cancel = 0;
  // Set anew before each pass.
  std::int64_t live = 0;                             // samples that had finished before it or have not yet
  std::int64_t limits[most_step_loops] = {0, 0, 0};  // by loop
};

// One thread: takes account of the steps of a body, and goes on while samples are live and a whole body fits.
// `sets`: for a driver that has conditionals; else `handle` is 0.
std::string step_ptx(std::string_view arch, bool sets);

// Many threads: adds to an i64 how many of so many bytes are 0. Words: bytes, their address, the i64's.
std::string count_zeros_ptx(std::string_view arch);

}  // namespace eagle::run::cuda
