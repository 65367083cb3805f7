// Tile: consecutive samples that one thread takes through a pass, and how far they are.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step/dispatch_rule.h"

namespace eagle::step {

// What a tile knows of a dispatch group of the model.
struct GroupLook {
  SplitRule rule;
  Prediction prediction;  // at the last look
};

// What the last visit of a tile showed, by which the next one begins.
struct Visit {
  std::int64_t steps = 0;     // 0: there was none
  std::int64_t finished = 0;  // samples
  double block_step_s = 0;    // one step of one block with a live sample, when last looked at
};

struct Tile {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t live = 0;          // samples whose mask is not set, as far as is known
  std::int64_t steps = 0;         // that its live samples have taken
  std::int64_t rows = 0;          // recorded
  bool moved = false;             // some sample took part in the step in hand (stepwise)
  std::int64_t looked_at = -1;    // the step of the last look
  Visit visit;                    // the last one that stepped
  std::vector<GroupLook> groups;  // by group of the model
};

}  // namespace eagle::step
