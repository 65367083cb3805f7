// What seeds and gradients are called: a plane by the name that a node has for it, alone or behind the node's
// label.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/diff/activity.h"
#include "engine/diff/program.h"

namespace eagle::diff {

// A Param of one launch.
struct ParamPlace {
  std::uint32_t launch = 0;
  std::uint32_t argument = 0;
  friend bool operator==(const ParamPlace&, const ParamPlace&) = default;
};

struct Wanted {
  std::string name;                // as it was asked for, or as it is told
  std::optional<Place> plane;      // a gradient: the value that the leaf found; a seed: the one that it left
  std::vector<ParamPlace> params;  // of a gradient of a Param: all that it is the number of
};

// "y": the last value that nodes write under this name (or read, where none does), which must be one array;
// "node.y": what that node left. UNKNOWN_NAME, with the candidates; WRONG_DTYPE for what holds no reals.
StatusOr<std::vector<Wanted>> find_seeds(const Program& program, const std::vector<std::string>& names);

// "x": the value that the first node to read an array under this name finds there; "a": the Param of this
// name of all nodes that have one; "node.x": the value that this node found; "node.a": its Param. Refusals as
// above.
StatusOr<std::vector<Wanted>> find_inputs(const Program& program, const std::vector<std::string>& names);

// All real planes whose values from before the launch are read, and all real Params, by the shortest names
// that tell them apart; where nodes share their label, too, "node.x", "node.x#2" and so on.
std::vector<Wanted> all_inputs(const Program& program);

// What a launch begins with and may leave changed, of any type, as (label of a node that reads it, name
// there): the next launch begins with other values.
std::vector<std::pair<std::string, std::string>> carried(const Program& program);

}  // namespace eagle::diff
