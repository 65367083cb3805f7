// What a recorded launch keeps for reverse passes.
//
// Values that a launch overwrites are made again by running nodes once more, from how it found the planes. So
// a record is a copy of those bytes as they were before the launch: each byte once, however often the graph
// overwrites it, and none where no node overwrites what a derivative looks at. What callables of the client
// made is kept by the client.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/status.h"
#include "engine/diff/program.h"

namespace eagle::v1 {
class GraphDescription;
}

namespace eagle::diff {

struct Kept {
  std::size_t block = 0;    // of Program::blocks()
  std::int64_t offset = 0;  // in the record
};

// What the client keeps of each call of a host node.
struct KeptCalls {
  std::vector<bool> reads;  // by index: its value does not hold after the launch
  bool writes = false;      // what it wrote may be made again
};

struct Record {
  std::vector<Kept> kept;
  std::int64_t bytes = 0;
  std::vector<KeptCalls> calls;  // by host node, in the order of a walk through the graph

  [[nodiscard]] const Kept* find(std::size_t block) const;
};

// Enough for any reverse pass through the graph.
StatusOr<Record> plan_record(const Program& program);

// Puts copies into the record before all nodes: `plane` is the record's index among the planes of
// `description`, which describes the program's graph. Returns how many nodes they are; they are one stage, if
// any.
std::uint32_t add_copies(const Program& program, const Record& record, std::uint32_t plane,
                         v1::GraphDescription& description);

}  // namespace eagle::diff
