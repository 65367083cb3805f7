// Counters: what the sessions of this process have done. They move on success only.
#pragma once

#include <cstdint>

namespace eagle {

struct Counters {
  std::uint64_t graph_builds = 0;
  std::uint64_t captures = 0;  // CUDA graphs; none on a CPU
  std::uint64_t binds = 0;     // plans bound to their arrays
  std::uint64_t rebinds = 0;   // of bound plans and of graphs
  std::uint64_t updates = 0;   // Graph::update
  std::uint64_t launches = 0;  // whole replays
  std::uint64_t runs = 0;      // stepped to their end
  std::uint64_t compiles = 0;  // builds and runs that compiled something
};

// All sessions of the process together, whichever engine computes. Any thread.
Counters counters();

}  // namespace eagle
