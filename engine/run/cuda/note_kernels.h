// Notes on a device: kernels of the one emitter that add what a launch noted for its accumulators
// (kernel/additions.h), in the order of steps, samples and the program, and so with the CPU's bits.
//
// Each element of an accumulator has a sample of the launch, which looks at all notes and adds those that are
// its own: elements times notes looks, neighbours at the same place, and no order but the one of the notes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/kernel/additions.h"
#include "engine/kernel/ir.h"

namespace eagle::run::cuda {

// Of one accumulator. Arguments: samples (by value); for each of its accum_adds in program order the tables
// `element` and `value`; the accumulator, as state, in which sample i is element i.
kernel::Kernel add_columns_kernel(const kernel::Kernel& noting, const kernel::Additions& additions,
                                  std::size_t accumulator);

// The same of notes that come one after the other. Arguments: samples and room (words of a sample), by value;
// the tables `words`, `values` (the same memory, as elements of the accumulator) and `used`; the accumulator.
kernel::Kernel add_words_kernel(const kernel::Kernel& noting, const kernel::Additions& additions,
                                std::size_t accumulator);

// Words that the notes of one sample take at most where they come one after the other; none where loops could
// make more than `most`.
std::optional<std::int64_t> most_note_words(const kernel::Kernel& noting, std::int64_t most);

// One output, the same number for every sample.
kernel::Kernel fill_kernel(kernel::Scalar scalar, std::uint64_t bits);

}  // namespace eagle::run::cuda
