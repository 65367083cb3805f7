// Reductions on a device: kernels of the one emitter that give the tree of engine/run/reduction, and so the
// same bits, in several launches.
//
// A level makes one node of a few: first of samples, then of nodes that are a fixed way apart within a leaf
// (halving), then of neighbours. Neighbours of neighbours are cut at any power of two and give the same tree,
// since a last one without a neighbour is carried up as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::run::cuda {

// One launch. Its kernel has the arguments x (a table), n and count (by value: nodes of a row of x, and those
// that it makes of them) and y.
struct ReduceLevel {
  std::shared_ptr<const kernel::Kernel> kernel;
  std::int64_t n = 0;
  std::int64_t count = 0;
  int components = 1;  // of y: two numbers for each node of a compensated sum
};

// From rows of `samples` (at least 1) to one number each, stored as `scalar`: f64, f32, i64 or bool. Launches
// of rows * count samples each; the last one has count 1 and writes the results.
std::vector<ReduceLevel> reduce_levels(kernel::ReduceOp op, kernel::Scalar scalar, bool compensated,
                                       std::int64_t samples);

}  // namespace eagle::run::cuda
