// Parents: the edges of a graph that a device has to be told of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/edges.h"

namespace eagle::run::cuda {

// By leaf, ascending: those that must have ended before it begins and that no other parent waits for anyway
// (the transitive reduction, which is one for each acyclic graph). `edges` are those of graph::edges, each
// from a lower leaf to a higher one. Takes leaves * leaves bits.
std::vector<std::vector<std::uint32_t>> parents_of(std::span<const graph::Edge> edges, std::size_t leaves);

}  // namespace eagle::run::cuda
