#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/base/clock.h"
#include "engine/base/ticks.h"
#include "engine/graph/races.h"
#include "engine/graph/run_plan.h"
#include "engine/kernel/long_loops.h"
#include "engine/kernel/names.h"
#include "engine/kernel/verify.h"
#include "engine/run/counters.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/program.h"
#include "engine/run/cuda/graph_backend.h"
#include "engine/run/device_backend.h"
#include "engine/run/fusion.h"
#include "engine/run/host.h"
#include "engine/run/streaming.h"
#include "engine/run/system_memory.h"
#include "engine/step/bound_model.h"
#include "engine/step/device_run.h"
#include "engine/step/model.h"
#include "engine/step/simulation_state.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;

// The largest team that anybody may ask for.
constexpr int most_threads = 1024;

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

// Compiles those kernels that a launch runs by itself; whether something did not come from the cache. `code`,
// by kernel: what is there already stays.
StatusOr<bool> compile(codegen::Compiler& compiler, const codegen::Target& target, const graph::RunPlan& plan,
                       const run::FusedPlan& fused, std::vector<std::shared_ptr<const codegen::Code>>& code,
                       const GivenUp& given_up) {
  bool compiled = false;
  code.resize(plan.kernels.size());
  for (std::size_t g = 0; g < fused.code.size(); ++g) {
    for (std::size_t f = 0; f < fused.code[g].size(); ++f) {
      if (fused.code[g][f] != nullptr) continue;
      const std::uint32_t number = plan.launches[fused.grouped.groups[g].functions[f].launches.first]->kernel;
      if (code[number]) continue;
      EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
      const kernel::Kernel& kernel = *plan.kernels[number];
      StatusOr<codegen::Compiler::Compiled> made = compiler.compile(kernel, target);
      if (!made.ok()) return made.status().within("kernel " + kernel::quote_name(kernel.name));
      code[number] = std::move(made->code);
      compiled |= !made->hit;
    }
  }
  return compiled;
}

// The code of a model's kernels.
struct ModelCode {
  std::vector<std::shared_ptr<const codegen::Code>> kernels;
  std::vector<std::shared_ptr<const codegen::Code>> selectors;  // null where a kernel has no dispatch groups
  bool compiled = false;                                        // something did not come from the cache
};

StatusOr<ModelCode> compile(codegen::Compiler& compiler, const codegen::Target& target,
                            const step::Model& model, const GivenUp& given_up) {
  ModelCode result;
  for (const step::StepKernel& part : model.kernels) {
    for (const auto& [kernel, code] :
         {std::pair{&part.kernel, &result.kernels}, std::pair{&part.selectors, &result.selectors}}) {
      code->emplace_back();
      if (*kernel == nullptr) continue;
      EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
      StatusOr<codegen::Compiler::Compiled> compiled = compiler.compile(**kernel, target);
      if (!compiled.ok()) return compiled.status().within("kernel " + kernel::quote_name((*kernel)->name));
      code->back() = std::move(compiled->code);
      result.compiled |= !compiled->hit;
    }
  }
  return result;
}

// What the threads of the team need where samples make something together.
std::vector<run::ThreadSpace> spaces_for(const step::BoundModel& model, int threads) {
  run::ThreadSpace::Needs needs;
  for (const step::BoundKernel& kernel : model.kernels) {
    if (kernel.shared) needs.cover(kernel.shared->needs(threads));
  }
  return run::ThreadSpace::for_team(threads, needs);
}

// What a shard will have given to them, still without nodes.
std::vector<step::ShardReduction> reductions_of(const step::Model& model) {
  std::vector<step::ShardReduction> reductions;
  for (std::size_t k = 0; k < model.kernels.size(); ++k) {
    for (const kernel::Argument& argument : model.kernels[k].kernel->arguments) {
      if (argument.role != kernel::Role::reduce) continue;
      reductions.push_back(
          {static_cast<std::uint32_t>(k), argument.name, argument.reduce, argument.type.scalar, {}});
    }
  }
  return reductions;
}

// What is known of it beforehand.
step::RunReport report_of(const step::Model& model) {
  step::RunReport report;
  report.host = run::this_host();
  report.samples = model.samples;
  for (const step::StepKernel& part : model.kernels) report.kernels.push_back(part.hash);
  report.shard = model.shard;
  if (model.shard) report.reductions = reductions_of(model);
  return report;
}

Status check_same_backend(const run::BuiltGraph& built, const std::string& backend) {
  if (built.backend() == backend) return {};
  return {Reason::mixed_devices, "rebind: the graph was built on " + built.backend() +
                                     ", and its new arrays lie on " + backend + "; bind arrays of " +
                                     built.backend() + ", or build another graph"};
}

step::Mode mode_of(const step::Model& model) {
  if (model.mixes || model.has_host_steps_within()) return step::Mode::stepwise;
  return model.kernels.size() > 1 ? step::Mode::tiled : step::Mode::fused;
}

}  // namespace

struct Engine::State {
  State(Options given, codegen::Target for_target, graph::Fusion how, std::int64_t streamed, int team)
      : options(std::move(given)),
        target(std::move(for_target)),
        fusion(how),
        streamed_from(streamed),
        threads(team),
        compiler(options.compiler) {}

  const Options options;
  const codegen::Target target;
  const graph::Fusion fusion;
  const std::int64_t streamed_from;
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
  EAGLE_ASSIGN_OR_RETURN(const graph::Fusion by_default, run::default_fusion());
  const graph::Fusion fusion = options.fusion.value_or(by_default);
  EAGLE_ASSIGN_OR_RETURN(const run::Streaming streaming, run::default_streaming());
  const std::int64_t streamed = run::streamed_from(options.streaming.value_or(streaming));
  const int threads = run::startable_threads(
      options.threads > 0 ? options.threads : std::min(run::allowed_threads(), most_threads));
  static_cast<void>(ticks_per_second());  // so that no launch measures it
  return std::unique_ptr<Engine>(
      new Engine(std::make_unique<State>(std::move(options), std::move(target), fusion, streamed, threads)));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

int Engine::threads() const { return state_->threads; }
const codegen::Target& Engine::target() const { return state_->target; }
graph::Fusion Engine::fusion() const { return state_->fusion; }
codegen::Compiler& Engine::compiler() { return state_->compiler; }

Engine::Counters Engine::counters() const {
  const run::Counters& counted = *state_->counters;
  return {
      counted.graph_builds.load(std::memory_order_relaxed), counted.rebinds.load(std::memory_order_relaxed),
      counted.updates.load(std::memory_order_relaxed),      counted.launches.load(std::memory_order_relaxed),
      counted.runs.load(std::memory_order_relaxed),         state_->compiler.counters()};
}

// Fuses and compiles what has no code yet, lays out the scratch planes, gets their memory, and binds the
// program.
Status Engine::bind(run::BuiltGraph& built, graph::RunPlan plan, std::span<const run::PlaneMemory> planes,
                    const MakeScratch& scratch, const GivenUp& given_up) {
  EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
  EAGLE_ASSIGN_OR_RETURN(built.scratch_, graph::lay_out_scratch(built.graph_));
  const auto compile_if_wanted = [&](const kernel::Kernel& kernel) -> StatusOr<codegen::Compiler::Compiled> {
    EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
    return state_->compiler.compile(kernel, state_->target);
  };
  EAGLE_ASSIGN_OR_RETURN(run::FusedPlan fused,
                         run::fuse_plan(built.graph_, plan, built.scratch_, state_->fusion, *built.functions_,
                                        compile_if_wanted));
  EAGLE_ASSIGN_OR_RETURN(const bool compiled,
                         compile(state_->compiler, state_->target, plan, fused, built.code_, given_up));
  EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
  built.compiled_ = built.compiled_ || compiled || fused.compiled;
  graph::leave_out(built.scratch_, fused.in_registers);
  std::vector<run::PlaneMemory> memory(planes.begin(), planes.end());
  if (built.scratch_.bytes > 0) {
    EAGLE_ASSIGN_OR_RETURN(built.scratch_memory_, scratch ? scratch(built.scratch_.bytes)
                                                          : run::system_memory(built.scratch_.bytes));
  }
  for (const graph::ScratchUse& use : built.scratch_.uses) {
    // A plane without memory has an address too: nobody touches it.
    static std::byte nothing{};
    memory[use.plane] = {use.in_memory ? built.scratch_memory_.get() + use.offset : &nothing, use.bytes};
  }
  EAGLE_ASSIGN_OR_RETURN(
      built.program_,
      run::CpuProgram::bind(std::move(plan), std::move(fused), built.code_, memory, state_->threads,
                            run::GroupRules{state_->options.inline_work.value_or(run::usual_inline_work),
                                            state_->streamed_from},
                            state_->options.piece_s.value_or(run::usual_piece_s), state_->counters));
  built.long_loops_ = std::ranges::any_of(built.graph_.kernels,
                                          [](const auto& kernel) { return kernel::has_long_loops(*kernel); });
  built.threads_ = state_->threads;
  built.fusion_ = state_->fusion;
  return {};
}

StatusOr<std::unique_ptr<run::BuiltGraph>> Engine::build(const v1::GraphDescription& description,
                                                         std::span<const run::PlaneMemory> planes,
                                                         const MakeScratch& scratch,
                                                         const GivenUp& given_up) {
  const Clock::time_point start = Clock::now();
  std::unique_ptr<run::BuiltGraph> built(new run::BuiltGraph);
  EAGLE_ASSIGN_OR_RETURN(built->graph_,
                         graph::read(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(check_memory(built->graph_.planes, planes));
  EAGLE_RETURN_IF_ERROR(graph::check_races(built->graph_, given_up));
  built->schedule_ = graph::schedule_of(built->graph_, state_->threads);
  built->functions_ = std::make_shared<run::FusedFunctions>();
  EAGLE_RETURN_IF_ERROR(
      bind(*built, graph::lower(built->graph_, built->schedule_), planes, scratch, given_up));
  built->build_s_ = seconds_since(start);
  run::count(state_->counters->graph_builds);
  return built;
}

StatusOr<std::unique_ptr<run::BuiltGraph>> Engine::rebind(const run::BuiltGraph& old,
                                                          const v1::GraphDescription& description,
                                                          std::span<const run::PlaneMemory> planes,
                                                          const MakeScratch& scratch,
                                                          const GivenUp& given_up) {
  EAGLE_RETURN_IF_ERROR(check_same_backend(old, "cpu"));
  std::unique_ptr<run::BuiltGraph> built(new run::BuiltGraph);
  EAGLE_ASSIGN_OR_RETURN(built->graph_,
                         graph::read(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(graph::check_same_structure(old.graph_, built->graph_));
  EAGLE_RETURN_IF_ERROR(check_memory(built->graph_.planes, planes));
  EAGLE_RETURN_IF_ERROR(graph::check_races(built->graph_, given_up));
  built->schedule_ = old.schedule_;
  built->code_ = old.code_;
  built->functions_ = old.functions_;
  EAGLE_RETURN_IF_ERROR(
      bind(*built, graph::lower(built->graph_, built->schedule_), planes, scratch, given_up));
  EAGLE_RETURN_IF_ERROR(built->keep_params_of(old));
  built->compiled_ = old.compiled_;
  built->build_s_ = old.build_s_;
  run::count(state_->counters->rebinds);
  return built;
}

// Compiles by building: the device keeps the kernels that it has loaded. What `old` is on the device is put
// over the planes, if it can be.
Status Engine::bind(run::BuiltGraph& built, const run::cuda::PlanesOnDevice& planes, const GivenUp& given_up,
                    run::BuiltGraph* old) {
  EAGLE_RETURN_IF_ERROR(run::cuda::check_on_device(built.graph_, planes));
  EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
  EAGLE_ASSIGN_OR_RETURN(built.scratch_, graph::lay_out_scratch(built.graph_));
  // Each has memory of its own there.
  std::uint64_t offset = 0;
  for (graph::ScratchUse& use : built.scratch_.uses) {
    use.offset = offset;
    if (use.in_memory) offset += run::cuda::paid_bytes(use.bytes);
  }
  if (old != nullptr) {
    EAGLE_ASSIGN_OR_RETURN(built.to_keep_, run::cuda::rebind_on_device(*old->device_, built.graph_, planes));
  }
  if (built.to_keep_) {
    built.device_ = old->device_;
  } else {
    EAGLE_ASSIGN_OR_RETURN(built.device_, run::cuda::build_on_device(built.graph_, planes));
    if (old != nullptr) EAGLE_RETURN_IF_ERROR(built.device_->keep_params_of(*old->device_));
  }
  built.scratch_.bytes = built.device_->own_bytes();
  built.schedule_ = built.device_->schedule();
  built.counters_ = state_->counters;
  built.compiled_ = true;
  built.fusion_ = graph::Fusion::off;
  return {};
}

StatusOr<std::unique_ptr<run::BuiltGraph>> Engine::build(const v1::GraphDescription& description,
                                                         const run::cuda::PlanesOnDevice& planes,
                                                         const GivenUp& given_up) {
  const Clock::time_point start = Clock::now();
  std::unique_ptr<run::BuiltGraph> built(new run::BuiltGraph);
  EAGLE_ASSIGN_OR_RETURN(built->graph_,
                         graph::read(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(graph::check_races(built->graph_, given_up));
  EAGLE_RETURN_IF_ERROR(bind(*built, planes, given_up));
  built->build_s_ = seconds_since(start);
  run::count(state_->counters->graph_builds);
  return built;
}

StatusOr<std::unique_ptr<run::BuiltGraph>> Engine::rebind(run::BuiltGraph& old,
                                                          const v1::GraphDescription& description,
                                                          const run::cuda::PlanesOnDevice& planes,
                                                          const GivenUp& given_up) {
  EAGLE_RETURN_IF_ERROR(check_same_backend(old, planes.unit->name()));
  std::unique_ptr<run::BuiltGraph> built(new run::BuiltGraph);
  EAGLE_ASSIGN_OR_RETURN(built->graph_,
                         graph::read(description, state_->options.private_planes, state_->options.limits));
  EAGLE_RETURN_IF_ERROR(graph::check_same_structure(old.graph_, built->graph_));
  EAGLE_RETURN_IF_ERROR(graph::check_races(built->graph_, given_up));
  EAGLE_RETURN_IF_ERROR(bind(*built, planes, given_up, &old));
  built->compiled_ = old.compiled_;
  built->build_s_ = old.build_s_;
  run::count(state_->counters->rebinds);
  return built;
}

StatusOr<std::unique_ptr<step::Simulation>> Engine::simulate(const v1::RunDescription& description,
                                                             std::span<const run::PlaneMemory> planes,
                                                             std::shared_ptr<const run::Control> control) {
  const Clock::time_point start = Clock::now();
  EAGLE_ASSIGN_OR_RETURN(step::Model model, step::read_model(description, state_->options.private_planes,
                                                             state_->options.limits));
  EAGLE_RETURN_IF_ERROR(check_memory(model.planes, planes));
  auto run = std::make_unique<step::Simulation::State>();
  run->mode = mode_of(model);
  run->touches = model.touches();
  run->control = std::move(control);
  run->counters = state_->counters;
  step::RunReport& report = run->result.report;
  report = report_of(model);
  report.threads = state_->threads;
  report.mode = name_of(run->mode);
  // Nobody waits for the compiler to hear that nothing ran.
  const auto made = [&] { return std::unique_ptr<step::Simulation>(new step::Simulation(std::move(run))); };
  if (run->end_unbegun(model, planes)) return made();

  const auto stopped = [control = run->control] {
    return control && (control->cancelled() || control->expired());
  };
  StatusOr<ModelCode> compiled = compile(state_->compiler, state_->target, model, stopped);
  if (compiled.status().reason() == Reason::cancelled && run->end_unbegun(model, planes)) return made();
  EAGLE_ASSIGN_OR_RETURN(ModelCode code, std::move(compiled));
  EAGLE_ASSIGN_OR_RETURN(step::BoundModel bound, step::bind(model, code.kernels, code.selectors, planes));
  run->spaces = spaces_for(bound, state_->threads);
  run->model = std::move(bound);
  if (model.record) run->recorder.emplace(*model.record, run->model.columns, model.samples, planes);
  run->host_steps = std::move(model.host_steps);
  run->max_steps = model.max_steps;
  run->steps_per_pass = model.steps_per_pass;
  run->team = state_->threads;
  run->known_costs = state_->options.branch_costs;
  run->packs = state_->options.packs_samples;
  run->piece_s = state_->options.piece_s.value_or(run::usual_piece_s);
  report.compiled = code.compiled;
  report.build_s = seconds_since(start);
  return made();
}

StatusOr<std::unique_ptr<step::Simulation>> Engine::simulate(const v1::RunDescription& description,
                                                             const run::cuda::PlanesOnDevice& planes,
                                                             std::shared_ptr<const run::Control> control) {
  const Clock::time_point start = Clock::now();
  EAGLE_ASSIGN_OR_RETURN(step::Model model, step::read_model(description, state_->options.private_planes,
                                                             state_->options.limits));
  EAGLE_RETURN_IF_ERROR(step::check_on_device(model, planes));
  step::RunResult begun;
  begun.report = report_of(model);
  graph::Touches touches = model.touches();
  if (control && (control->cancelled() || control->expired())) {
    EAGLE_ASSIGN_OR_RETURN(const std::int64_t live, step::live_on_device(model, planes));
    auto run = std::make_unique<step::Simulation::State>();
    run->touches = std::move(touches);
    run->control = std::move(control);
    run->counters = state_->counters;
    run->result = std::move(begun);
    run->result.report.backend = planes.unit->name();
    run->end_unbegun(model, live);
    return std::unique_ptr<step::Simulation>(new step::Simulation(std::move(run)));
  }
  step::report_unopened_groups(model, begun.report);
  step::DeviceRun::Options options;
  if (state_->options.piece_s) options.piece = std::chrono::duration<double>(*state_->options.piece_s);
  EAGLE_ASSIGN_OR_RETURN(auto stepper,
                         step::DeviceRun::build(planes, std::move(model), std::move(begun),
                                                {std::move(control), state_->counters, start}, options));
  auto run = std::make_unique<step::Simulation::OnDevice>();
  run->touches = std::move(touches);
  run->stepper = std::move(stepper);
  return std::unique_ptr<step::Simulation>(new step::Simulation(std::move(run)));
}

}  // namespace eagle
