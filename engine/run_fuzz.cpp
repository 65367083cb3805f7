// Run descriptions from anywhere: refused with a reason, or a run that ends within its cap and leaves the
// same bytes whatever the team, inside of its planes.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <chrono>

#include "eagle/v1/run.pb.h"
#include "engine/graph/testing_usable.h"
#include "engine/kernel/testing_usable.h"
#include "engine/kernel/verify.h"
#include "engine/run/testing.h"
#include "engine/testing_launch.h"
#include "engine/testing_teams.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using eagle::testing::GuardedPlanes;

constexpr std::int64_t most_steps = 40;

bool is_cheap(const v1::RunDescription& message) {
  return message.model_size() <= 8 &&
         std::all_of(message.kernels().begin(), message.kernels().end(), [](const auto& one) {
           const StatusOr<kernel::Kernel> kernel = kernel::verify(one);
           return kernel.ok() && kernel::is_cheap(*kernel);
         });
}

// The callables of the client: every third one asks for the end.
bool run(Engine& engine, const v1::RunDescription& message, const GuardedPlanes& planes) {
  const auto control = std::make_shared<run::Control>();
  control->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  const auto simulation = engine.simulate(message, planes.memory(), control);
  if (!simulation.ok()) {
    const std::string problem = graph::refusal_problem(simulation.status());
    if (!problem.empty()) broken(problem);
    return false;
  }
  int calls = 0;
  for (;;) {
    const step::Simulation::Next next = (*simulation)->advance();
    if (next == step::Simulation::Next::host_call) (*simulation)->answer(++calls % 3 == 0);
    if (next == step::Simulation::Next::done) break;
  }
  const step::RunResult& result = (*simulation)->result();
  if (result.report.steps > message.max_steps()) broken("more steps than its cap");
  return result.status == step::RunStatus::finished || result.status == step::RunStatus::max_steps;
}

// Oscillators of 37 samples, whose planes are filled when they run.
v1::RunDescription oscillators(std::int64_t max_steps) {
  eagle::testing::RunScene scene;
  std::vector<double> samples(37);
  std::vector<std::uint8_t> done(37);
  std::vector<std::int64_t> stops(37);
  scene.message.set_max_steps(max_steps);
  const std::uint32_t kernel = scene.kernel(eagle::testing::oscillator());
  eagle::testing::fill(*scene.message.add_model(), kernel,
                       {{"x", scene.array(samples)},
                        {"v", scene.array(samples)},
                        {"t", scene.array(samples)},
                        {"omega", scene.array(samples)},
                        {"dt", 0.25},
                        {"t_end", scene.array(samples)},
                        {"done", scene.array(done)}});
  eagle::testing::set_view(*scene.message.mutable_stop_steps(), scene.array(stops));
  return scene.message;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<v1::RunDescription> all{oscillators(10), oscillators(7), oscillators(1)};
  all[1].clear_stop_steps();
  all[1].set_steps_per_pass(3);
  v1::HostStep& host = *all[2].add_host_steps();
  host.mutable_node()->set_call(1);
  host.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
  host.set_every(2);
  std::vector<double> values(37);
  std::vector<std::int64_t> counts(37);
  for (const bool both : {false, true}) {
    eagle::testing::RunScene scene;
    scene.message.set_max_steps(5);
    eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::affine_in_place()),
                         {{"a", 0.5}, {"b", 1.0}, {"x", scene.array(values)}});
    if (both) {
      eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::counter()),
                           {{"step", std::int64_t{2}}, {"n", scene.array(counts)}});
    }
    all.push_back(scene.message);
  }
  std::vector<std::string> bytes;
  for (const v1::RunDescription& one : all) bytes.push_back(one.SerializeAsString());
  return bytes;
}

}  // namespace eagle::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  return eagle::fuzz::mutate_message<eagle::v1::RunDescription>(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  v1::RunDescription message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  // Longer runs show nothing more.
  message.set_max_steps(std::min(message.max_steps(), fuzz::most_steps));
  if (fuzz::GuardedPlanes::fits(message) && fuzz::is_cheap(message)) fuzz::run_with_teams(message, fuzz::run);
  return 0;
}
