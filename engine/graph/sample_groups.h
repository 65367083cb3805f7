// Sample groups: launches that follow each other and can run block of samples by block of samples.
//
// The launches of a group have the same number of samples and are local to a sample: whatever bytes one of
// them writes and another reads or writes belong to the same sample of both. So a thread may take some of the
// samples through all of the launches before it looks at others, without waiting for anybody. Where samples
// mix (a table or a shifted view of something written, a different element size over the same bytes, scratch
// planes that take turns at bytes of other samples, accumulators, reductions, another number of samples) a
// new group begins.
//
// Within a group, neighbours that exchange values make a function: those that `kernel::fuse` can turn into
// one kernel. How a stage is executed is nobody's business but the executor's: edges, schedule and bits are
// the same with groups and without.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/run_plan.h"
#include "engine/graph/scratch.h"

namespace eagle::graph {

enum class Fusion : std::uint8_t {
  off,     // launch after launch
  blocks,  // groups, each launch with the code of its own kernel
  full,    // and functions
};

// Launches that run as one function, in order; one launch alone has the code of its kernel.
struct SampleFunction {
  Launches launches;
  // Of several launches: by launch, by argument, its place: a number of its own for whatever elements they
  // see (kernel/fuse.h). Params have none of their own and stand as 0.
  std::vector<std::vector<std::uint32_t>> places;
  std::vector<std::uint32_t> planes;  // by place: the plane
};

struct SampleGroup {
  std::vector<SampleFunction> functions;
  std::int64_t samples = 0;  // of each launch
};

// What bounds one function: its code is compiled whole and has registers for so much.
struct FunctionLimits {
  std::size_t launches = 16;
  std::size_t arguments = 96;
  std::size_t places = 32;
  std::size_t values = 768;  // components of all values
};
// Of one group: a turn of the executor is at most as long as it takes.
constexpr std::size_t most_group_launches = 1024;

// Where planes lie, by plane: two of equal `memory` may share bytes. (Scratch planes take turns in one
// memory: what one of them leaves behind must not be overwritten while another block of samples still needs
// it.)
struct PlanePlace {
  std::uint32_t memory = 0;
  std::int64_t offset = 0;  // bytes
};
// Each plane by itself, but scratch planes where the layout has them.
std::vector<PlanePlace> places_of(const Graph& graph, const ScratchLayout& scratch);

// The groups of these launches, in their order: each launch is in one group. Pure; near-linear in the
// arguments of the launches.
std::vector<SampleGroup> sample_groups(const RunPlan& plan, const Launches& launches, Fusion fusion,
                                       const std::vector<PlanePlace>& places,
                                       const FunctionLimits& limits = {});

// A plan whose launches are grouped.
struct GroupedPlan {
  // What RunKernel and RunBranches of `program` refer to are groups, not launches.
  std::vector<Instruction> program;
  std::vector<std::vector<std::uint32_t>> branches;  // groups, in order
  std::vector<SampleGroup> groups;
};
// Groups the launches of a plan between which nothing else happens and nobody jumps.
GroupedPlan group_samples(const RunPlan& plan, Fusion fusion, const std::vector<PlanePlace>& places);

}  // namespace eagle::graph
