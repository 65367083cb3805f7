// Notes: what a kernel adds to its accumulators, as compiled code leaves it (engine/codegen/abi.h), and its
// adding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::run {

// An accumulator in memory.
struct Cells {
  std::byte* data = nullptr;
  std::int64_t component_stride = 0;  // bytes
  int components = 1;
  kernel::Scalar scalar = kernel::Scalar::f64;
};

// The notes of one op for consecutive samples: an element each, or -1, and its values, whose components lie
// `component_stride` bytes apart.
struct NoteColumn {
  const std::int64_t* elements = nullptr;
  const std::byte* values = nullptr;
  std::int64_t component_stride = 0;
};

// An accumulator and the ops that add to it, in program order.
struct NotedCells {
  Cells cells;
  std::vector<std::size_t> ops;
};

// Adds the notes of the ops of one accumulator, sample after sample, for each of them op after op.
void add_columns(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples);

// Elements are dealt out to stripes, a cache line or two at a time, so that threads can add to different
// stripes at the same time. `stripes` is a power of two.
constexpr std::size_t stripe_of(std::int64_t element, std::size_t stripes) {
  return (static_cast<std::size_t>(element) >> 4) & (stripes - 1);
}

// Room for the notes of one accumulator, sorted by stripe; within a stripe they keep their order. Values have
// their components `component_stride` bytes apart. Notes of stripe s are [begins[s], begins[s + 1]).
struct SortedNotes {
  std::int64_t* elements = nullptr;
  std::byte* values = nullptr;
  std::int64_t component_stride = 0;
  std::span<std::int64_t> begins;  // one more than there are stripes
};

// Sorts what `add_columns` would add, sample after sample and op after op.
void sort_columns(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples,
                  const SortedNotes& sorted);
void add_stripe(const Cells& cells, const SortedNotes& sorted, std::size_t stripe);

// Adds notes that come one after the other; `cells` has the accumulator of each op.
void add_words(std::span<const Cells> cells, std::span<const std::uint64_t> words);

}  // namespace eagle::run
