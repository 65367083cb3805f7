#include "tests/conformance/not_on_gpu.h"

#include <algorithm>
#include <array>

namespace eagle::conformance {
namespace {

struct Left {
  std::string_view suite;
  std::string_view name;  // empty: all of the suite
  std::string_view why;
};
constexpr std::string_view threads = "how threads of a CPU share a group";
constexpr std::array left = {
    Left{"InnerGroups", "AreBranchTasksWhereAllOfTheirNodesAreSmallLaunches", threads},
    Left{"Arrays", "CountInWhatTheHostHolds", "a daemon counts what lies on a GPU for that GPU"},
    Left{"Arrays", "ThatFollowOthersInTheirMemoryAreZeroAndCanBeComputedOn",
         "a million samples are too many for a GPU that is played by an interpreter"},
    Left{"Changes", "ScratchPlanesTakeTurnsAndBelongToOneGraph",
         "branches of a CUDA graph run side by side, so that scratch planes share nothing"},
    Left{"Graphs", "LookTheSameOnEveryHost", "the picture names the GPU, and how each stage runs there"},
    Left{"Kernels", "PrivateArraysWorkWhereTheKernelRunsInThisProcessAndAreRefusedByNameElsewhere",
         "private memory is the host's"},
    Left{"Accumulation", "AnAccumulatorAddsInTheOrderOfSamples",
         "elements times notes are too many for a GPU that is played by an interpreter"},
};

}  // namespace

std::string_view why_not_on_gpu(std::string_view suite, std::string_view name) {
  const auto* const found = std::find_if(left.begin(), left.end(), [&](const Left& one) {
    return one.suite == suite && (one.name.empty() || one.name == name);
  });
  return found == left.end() ? std::string_view() : found->why;
}

}  // namespace eagle::conformance
