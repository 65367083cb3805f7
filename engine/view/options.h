// What a picture says beyond the graph itself.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/schedule.h"

namespace eagle::view {

struct PictureOptions {
  // One a stage once the graph is built; empty before: the header then says "(not built)".
  std::vector<graph::StageSchedule> schedule;
  std::string backend = "cpu";
  bool recorded = false;
};

}  // namespace eagle::view
