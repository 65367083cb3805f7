// What the library pretends: its GPUs, and what goes wrong with them. EAGLE_FAKE_CUDA says it, as words apart
// by commas: devices=2,capability=80,version=12010,bytes=1000000,fail_alloc=3,seed=7,
// uuid=17,descriptors=0,vanish=/tmp/gone
#pragma once

#include <cstdint>
#include <string>

namespace eagle::fake_cuda {

struct Pretence {
  int devices = 1;
  int capability = 90;
  int version = 12'040;               // of the driver
  std::uint64_t bytes = 1ull << 30;   // of memory, each device
  std::int64_t fail_alloc = 0;        // the number of the allocation that finds no memory, from 1; 0: none
  std::int64_t fail_launch = 0;       // the number of the launch that faults, which the context never forgets
  std::int64_t flip_bit = 0;          // the number of the launch whose first value is wrong in its lowest bit
  std::int64_t fail_load = 0;         // the number of the module that the driver's compiler refuses
  std::int64_t fail_instantiate = 0;  // the number of the graph made executable that finds no memory
  std::int64_t fail_change = 0;       // the number of the change of a graph's node that finds no memory
  bool single = false;                // a graph with conditionals is executable once at a time
  int init = 0;                       // what cuInit says
  std::uint64_t seed = 1;             // of the order of threads
  int uuid = 0x5a;                    // every byte of the GPUs' UUIDs but the last
  bool descriptors = true;            // memory can be handed over as descriptors
  std::int64_t slow_open = 0;         // milliseconds that opening memory by 64 bytes takes
  std::string vanish;                 // once this file is there, the first GPU is not any more
};

// Read once.
const Pretence& pretence();
// Whether the first GPU has fallen off its bus.
bool has_vanished();

}  // namespace eagle::fake_cuda
