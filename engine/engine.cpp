#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/races.h"
#include "engine/graph/run_plan.h"
#include "engine/kernel/names.h"
#include "engine/kernel/verify.h"
#include "engine/run/counters.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/program.h"
#include "engine/run/host.h"
#include "engine/step/simulation_state.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;

// The largest team that anybody may ask for.
constexpr int most_threads = 1024;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status check_memory(const std::vector<graph::Plane>& declared, std::span<const run::PlaneMemory> planes) {
  if (declared.size() != planes.size()) {
    return Status(Reason::malformed_graph, "the description declares " + std::to_string(declared.size()) +
                                               " planes, but memory was given for " +
                                               std::to_string(planes.size()));
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (planes[i].data != nullptr && planes[i].bytes < declared[i].bytes) {
      return Status(Reason::malformed_graph,
                    "planes[" + std::to_string(i) + "] (" + kernel::quote_name(declared[i].label) +
                        ") is declared with " + std::to_string(declared[i].bytes) + " bytes, but has " +
                        std::to_string(planes[i].bytes) + "; declare the size that the plane was made with");
    }
  }
  return {};
}

// The kernels of a description, compiled where a launch uses them.
struct CompiledKernels {
  std::vector<std::shared_ptr<const codegen::Code>> code;  // by kernel; null where not used
  bool compiled = false;                                   // something did not come from the cache
};

StatusOr<CompiledKernels> compile(codegen::Compiler& compiler, const codegen::Target& target,
                                  const std::vector<std::shared_ptr<const kernel::Kernel>>& kernels,
                                  std::span<const graph::KernelLaunch> launches) {
  CompiledKernels result;
  result.code.resize(kernels.size());
  for (const graph::KernelLaunch& launch : launches) {
    if (result.code[launch.kernel]) continue;
    const kernel::Kernel& kernel = *kernels[launch.kernel];
    StatusOr<codegen::Compiler::Compiled> compiled = compiler.compile(kernel, target);
    if (!compiled.ok()) return compiled.status().within("kernel " + kernel::quote_name(kernel.name));
    result.code[launch.kernel] = std::move(compiled->code);
    result.compiled |= !compiled->hit;
  }
  return result;
}

// A run description, checked.
struct Model {
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels;
  std::vector<graph::Plane> planes;
  graph::KernelLaunch launch;
  std::size_t mask = 0;  // the argument that finishes samples

  [[nodiscard]] const kernel::Kernel& kernel() const { return *kernels[launch.kernel]; }
};

StatusOr<std::size_t> stop_rule(const kernel::Kernel& kernel) {
  const int mask = kernel.terminated_argument();
  if (mask < 0) {
    return Status(Reason::bad_value, "kernel " + kernel::quote_name(kernel.name) +
                                         " has no stop rule; give it a Terminated argument and set it when "
                                         "a sample is done, or launch it in a graph");
  }
  return static_cast<std::size_t>(mask);
}

StatusOr<Model> read_model(const v1::RunDescription& message, graph::PrivateKernelPlanes private_planes,
                           const graph::Limits& limits) {
  if (message.model_size() != 1) {
    return Status(Reason::malformed_graph, "model: a model is one kernel, found " +
                                               std::to_string(message.model_size()) +
                                               " launches; write the step as one kernel");
  }
  if (message.max_steps() < 0) {
    return Status(Reason::bad_value,
                  "max_steps must be at least 0, found " + std::to_string(message.max_steps()));
  }
  if (message.planes_size() > static_cast<int>(limits.planes)) {
    return Status(Reason::graph_limit, "planes: " + std::to_string(message.planes_size()) +
                                           " are over the limit of " + std::to_string(limits.planes) +
                                           " (graph_planes)");
  }
  Model model;
  for (int i = 0; i < message.kernels_size(); ++i) {
    StatusOr<kernel::Kernel> kernel = kernel::verify(message.kernels(i), limits.kernel);
    if (!kernel.ok()) return kernel.status().within("kernels[" + std::to_string(i) + "]");
    model.kernels.push_back(std::make_shared<const kernel::Kernel>(std::move(*kernel)));
  }
  for (int i = 0; i < message.planes_size(); ++i) {
    EAGLE_ASSIGN_OR_RETURN(graph::Plane plane,
                           graph::read_plane(message.planes(i), "planes[" + std::to_string(i) + "]"));
    model.planes.push_back(std::move(plane));
  }
  EAGLE_ASSIGN_OR_RETURN(model.launch, graph::read_launch(message.model(0), model.kernels, model.planes,
                                                          "model[0]", private_planes));
  EAGLE_ASSIGN_OR_RETURN(model.mask, stop_rule(model.kernel()));
  return model;
}

// What moves between memory and cache when a sample's planes are read and stored once.
std::int64_t bytes_per_sample(const kernel::Kernel& kernel) {
  const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const kernel::Type& type = kernel.arguments[i].type;
    const int times = (accesses[i].read ? 1 : 0) + (accesses[i].written ? 1 : 0);
    bytes += std::int64_t{times} * type.components() * kernel::bytes_of(type.scalar);
  }
  return bytes;
}

}  // namespace

struct Engine::State {
  State(Options given, codegen::Target for_target, int team)
      : options(std::move(given)), target(std::move(for_target)), threads(team), compiler(options.compiler) {}

  const Options options;
  const codegen::Target target;
  const int threads;
  codegen::Compiler compiler;
  // Shared with what is built, which may outlive the engine.
  const std::shared_ptr<run::Counters> counters = std::make_shared<run::Counters>();
};

StatusOr<std::unique_ptr<Engine>> Engine::create(Options options) {
  if (options.threads < 0 || options.threads > most_threads) {
    return Status(Reason::bad_value, "threads must be 0 (as many as there are) to " +
                                         std::to_string(most_threads) + ", found " +
                                         std::to_string(options.threads));
  }
  EAGLE_ASSIGN_OR_RETURN(codegen::Target target, codegen::default_target());
  const int threads = run::startable_threads(
      options.threads > 0 ? options.threads : std::min(run::allowed_threads(), most_threads));
  return std::unique_ptr<Engine>(
      new Engine(std::make_unique<State>(std::move(options), std::move(target), threads)));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

int Engine::threads() const { return state_->threads; }
const codegen::Target& Engine::target() const { return state_->target; }
codegen::Compiler& Engine::compiler() { return state_->compiler; }

Engine::Counters Engine::counters() const {
  const run::Counters& counted = *state_->counters;
  return {counted.graph_builds.load(std::memory_order_relaxed),
          counted.launches.load(std::memory_order_relaxed), counted.runs.load(std::memory_order_relaxed),
          state_->compiler.counters()};
}

StatusOr<std::unique_ptr<run::BuiltGraph>> Engine::build(const v1::GraphDescription& description,
                                                         std::span<const run::PlaneMemory> planes) {
  const Clock::time_point start = Clock::now();
  std::unique_ptr<run::BuiltGraph> built(new run::BuiltGraph);
  EAGLE_ASSIGN_OR_RETURN(built->graph_,
                         graph::read(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(check_memory(built->graph_.planes, planes));
  EAGLE_RETURN_IF_ERROR(graph::check_races(built->graph_));
  built->schedule_ = graph::schedule_of(built->graph_, state_->threads);
  graph::RunPlan plan = graph::lower(built->graph_, built->schedule_);
  EAGLE_ASSIGN_OR_RETURN(CompiledKernels kernels,
                         compile(state_->compiler, state_->target, plan.kernels, plan.launches));
  EAGLE_ASSIGN_OR_RETURN(built->program_, run::CpuProgram::bind(std::move(plan), kernels.code, planes,
                                                                state_->threads, state_->counters));
  built->compiled_ = kernels.compiled;
  built->threads_ = state_->threads;
  built->build_s_ = seconds_since(start);
  run::count(state_->counters->graph_builds);
  return built;
}

StatusOr<std::unique_ptr<step::Simulation>> Engine::simulate(const v1::RunDescription& description,
                                                             std::span<const run::PlaneMemory> planes,
                                                             std::shared_ptr<const run::Control> control) {
  const Clock::time_point start = Clock::now();
  EAGLE_ASSIGN_OR_RETURN(Model model,
                         read_model(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(check_memory(model.planes, planes));
  EAGLE_ASSIGN_OR_RETURN(CompiledKernels kernels, compile(state_->compiler, state_->target, model.kernels,
                                                          std::span(&model.launch, 1)));
  const std::shared_ptr<const codegen::Code>& code = kernels.code[model.launch.kernel];
  EAGLE_ASSIGN_OR_RETURN(run::BoundLaunch launch,
                         run::BoundLaunch::bind(model.launch, model.kernel(), code, planes));

  step::RunReport report;
  report.host = run::this_host();
  report.samples = model.launch.samples;
  report.threads = state_->threads;
  report.compiled = kernels.compiled;
  report.kernels = {code->hash()};
  report.build_s = seconds_since(start);
  auto run = std::make_unique<step::Simulation::State>(std::move(launch));
  run->mask = model.mask;
  run->bytes_per_sample = bytes_per_sample(model.kernel());
  run->max_steps = description.max_steps();
  run->team = state_->threads;
  run->control = std::move(control);
  run->counters = state_->counters;
  run->result.report = std::move(report);
  return std::unique_ptr<step::Simulation>(new step::Simulation(std::move(run)));
}

}  // namespace eagle
