// Graph descriptions from anywhere: refused with a reason, or a graph that can be looked at, and that leaves
// the same bytes whatever the team, inside of its planes.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/testing_usable.h"
#include "engine/kernel/testing_usable.h"
#include "engine/run/testing.h"
#include "engine/testing_launch.h"
#include "engine/testing_teams.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using eagle::testing::GuardedPlanes;

// Fewer than replays of minutes; what a fuzzer makes is otherwise mostly those.
bool is_cheap(const graph::Graph& graph) {
  return graph.stages.size() <= 64 && std::all_of(graph.kernels.begin(), graph.kernels.end(),
                                                  [](const auto& one) { return kernel::is_cheap(*one); });
}

// Whether the launch came to its end.
bool launch(Engine& engine, const v1::GraphDescription& message, const GuardedPlanes& planes) {
  const auto built = engine.build(message, planes.memory());
  if (!built.ok()) {
    const std::string problem = graph::refusal_problem(built.status());
    if (!problem.empty()) broken(problem);
    return false;
  }
  const auto control = std::make_shared<run::Control>();
  control->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  run::Replay replay(**built, 2, control);
  for (;;) {
    const StatusOr<run::Replay::Next> next = replay.advance();
    if (!next.ok()) return false;
    if (*next == run::Replay::Next::done) return true;
  }
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  std::mt19937_64 random(1);
  while (all.size() < 48) {
    const auto description = graph::testing::random_description(random);
    // Half of them race, and are refused before they could run.
    const StatusOr<graph::Graph> read = graph::read(description.message, graph::PrivateKernelPlanes::allowed);
    if (!read.ok() || (all.size() % 8 != 0 && !graph::check_races(*read).ok())) continue;
    all.push_back(description.message.SerializeAsString());
  }
  return all;
}

}  // namespace eagle::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  return eagle::fuzz::mutate_message<eagle::v1::GraphDescription>(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  v1::GraphDescription message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const StatusOr<graph::Graph> read = graph::read(message, graph::PrivateKernelPlanes::allowed);
  const std::string problem =
      read.ok() ? graph::usable_problem(*read) : graph::refusal_problem(read.status());
  if (!problem.empty()) fuzz::broken(problem);
  if (read.ok() && fuzz::is_cheap(*read) && fuzz::GuardedPlanes::fits(message))
    fuzz::run_with_teams(message, fuzz::launch);
  return 0;
}
