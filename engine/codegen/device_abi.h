// What a compiled kernel of a GPU gets: one parameter by value, an array of 64-bit words, and where the words
// of a kernel's arguments are in it. Compiled code depends on these places.
//
// Thread i of a launch runs samples begin + i, begin + i + threads, ... one after the other, so that any grid
// gives the same bits. Counts are integers, added up and compared in memory by all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/kernel/additions.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

// Raised with every change of what follows, and of what the code of one kernel computes.
inline constexpr std::uint32_t device_abi_version = 1;

// The kernel of a module of PTX.
inline constexpr const char* device_entry_name = "eagle_kernel";

// What a launch counts, in device memory. Code adds to all but `steps`, which it raises; who launches clears.
struct DeviceCounts {
  std::int64_t finished = 0;  // samples whose mask the launch set
  std::int64_t steps = 0;     // the last step that any sample took (1-based)
  std::int64_t clamped = 0;
  std::int64_t zero_divisions = 0;
  std::int64_t dropped = 0;
  std::int64_t cancelled = 0;  // threads of which a loop saw the cancel flag, so that a step was left
  std::int64_t lost = 0;       // notes that found no room: what was added is not all
};
static_assert(sizeof(DeviceCounts) == 7 * 8);

// The first words of the parameter; as codegen::KernelCall (abi.h) where the names are the same. Addresses
// are those of device memory, as numbers.
struct DeviceCall {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t max_steps = 1;
  std::int64_t first_sample = 0;
  std::int64_t total_samples = 0;
  std::uint64_t first_step = 0;      // of an i64
  std::uint64_t cancel = 0;          // of a byte
  std::uint64_t sample_numbers = 0;  // 0: consecutive
  std::uint64_t counts = 0;          // of a DeviceCounts
  // Of accumulators whose notes come one after the other (kernel::Additions): sample s has the words
  // [(s - begin) * notes_capacity, ...) at `notes`, and says at `notes_used` + 8 * (s - begin) how many of
  // them it used. Where notes are kept by sample, `notes_capacity` is the distance of components instead.
  std::uint64_t notes = 0;
  std::int64_t notes_capacity = 0;
  std::uint64_t notes_used = 0;
};
static_assert(std::is_standard_layout_v<DeviceCall> && sizeof(DeviceCall) == 12 * 8);

// Then, by argument of the kernel: the address of its first sample's first component, or the bits of a Param;
// the bytes from one component to the next; the elements of a table or accumulator (at least 1).
inline constexpr std::size_t device_call_words = sizeof(DeviceCall) / 8;
constexpr std::size_t device_base_word(std::size_t argument) { return device_call_words + 3 * argument; }
constexpr std::size_t device_stride_word(std::size_t argument) { return device_base_word(argument) + 1; }
constexpr std::size_t device_length_word(std::size_t argument) { return device_base_word(argument) + 2; }

// Then, where notes are kept by sample, two addresses for each accum_add in program order: of elements and of
// values.
inline std::size_t device_notes_word(const kernel::Kernel& kernel, std::size_t site) {
  return device_base_word(kernel.arguments.size()) + 2 * site;
}
inline std::size_t device_parameter_words(const kernel::Kernel& kernel) {
  const kernel::Additions additions = kernel::additions_of(kernel);
  return device_notes_word(kernel, additions.by_sample ? additions.sites.size() : 0);
}

// Bytes that the parameters of a kernel may have: of any driver, and of drivers for CUDA 12.1 and newer.
inline constexpr std::size_t usual_parameter_bytes = 4096;
inline constexpr std::size_t most_parameter_bytes = 32'764;

}  // namespace eagle::codegen
