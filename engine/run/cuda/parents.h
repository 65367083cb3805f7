// Parents: the edges of a graph that a device has to be told of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace eagle::run::cuda {

// By leaf, ascending: those that must have ended before it begins and that no other parent waits for anyway
// (the transitive reduction, which is one for each acyclic graph). `order`: pairs of an earlier and a later
// leaf, as of graph::list_order. Takes leaves * leaves bits.
std::vector<std::vector<std::uint32_t>> parents_of(
    std::span<const std::pair<std::uint32_t, std::uint32_t>> order, std::size_t leaves);

}  // namespace eagle::run::cuda
