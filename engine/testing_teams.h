// One description run by teams of different sizes; for fuzz targets.
#pragma once

#include <memory>
#include <vector>

#include "engine/run/testing.h"
#include "engine/testing_launch.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {

// Runs `message` with teams of 1 and 3 over equal planes. `run(engine, message, planes)` says whether it came
// to its end. A promise is broken where something is stored outside of a plane, or where two whole runs leave
// other bytes.
template <typename Message, typename Run>
void run_with_teams(const Message& message, const Run& run) {
  static const auto engines = [] {
    std::vector<std::unique_ptr<Engine>> made;
    for (const int threads : {1, 3}) made.push_back(eagle::testing::make_engine(threads));
    return made;
  }();
  std::vector<eagle::testing::GuardedPlanes> planes;
  bool whole = true;
  for (const auto& engine : engines) {
    planes.emplace_back(message);
    whole = run(*engine, message, planes.back()) && whole;
    if (!planes.back().guards_stand()) broken("a store outside of a plane");
  }
  if (whole && !(planes[0] == planes[1])) broken("other bytes with another team");
}

}  // namespace eagle::fuzz
