// Which nodes a derivative passes through: they depend on what it is taken of, and what is asked about
// depends on them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/diff/program.h"

namespace eagle::diff {

// A plane's value before (of an input) or after (of a seed) a leaf of the graph.
struct Place {
  std::uint32_t leaf = 0;
  plane::View view;
};

struct Activity {
  std::vector<bool> varied;  // by Step::number: what it writes depends on an input
  std::vector<bool> useful;  // a seed depends on what it writes
  // Real views that it reads and that depend on an input, by Step::number and index into Step::reads.
  std::vector<std::vector<bool>> varied_reads;
  // Real views that it writes and that a seed depends on, by Step::number and index into Step::writes.
  std::vector<std::vector<bool>> useful_writes;
};

// `params`: launches (Step::launch) with a Param that is an input. Derivatives flow from what writes to what
// reads, through reals alone; a value that was overwritten whole before anybody read it carries none.
Activity find_activity(const Program& program, const std::vector<Place>& inputs,
                       const std::vector<std::uint32_t>& params, const std::vector<Place>& seeds);

}  // namespace eagle::diff
