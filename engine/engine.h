// Engine: the one way to run anything, in process and in the daemon.
//
// It takes the description messages, verifies them whole, compiles, and gives back things that can be
// run. It owns the compiler and its cache; it owns no plane: callers pass the memory behind each plane
// of a description and keep it alive as long as the graph or run that uses it.
//
// Thread-safe, except that one BuiltGraph or Simulation is for one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/base/given_up.h"
#include "engine/base/status.h"
#include "engine/codegen/compiler.h"
#include "engine/graph/graph.h"
#include "engine/graph/sample_groups.h"
#include "engine/run/built_graph.h"
#include "engine/run/control.h"
#include "engine/run/streaming.h"
#include "engine/step/dispatch_rule.h"
#include "engine/step/simulation.h"

namespace eagle::v1 {
class GraphDescription;
class RunDescription;
}  // namespace eagle::v1

namespace eagle::graph {
struct RunPlan;
}

namespace eagle::run::cuda {
struct PlanesOnDevice;  // engine/run/cuda/graph_backend.h
}

namespace eagle {

class Engine {
public:
  // Makes the memory of a graph's scratch planes, zeroed and aligned to 64 bytes; freed with the last owner.
  using MakeScratch = std::function<StatusOr<std::shared_ptr<std::byte>>(std::uint64_t bytes)>;
  struct Options {
    int threads = 0;  // of a team; 0: run::allowed_threads(); fewer if these cannot start
    codegen::Compiler::Options compiler;
    graph::PrivateKernelPlanes private_planes = graph::PrivateKernelPlanes::refused;
    graph::Limits limits;
    std::optional<graph::Fusion> fusion;      // how launches are executed; empty: run::default_fusion()
    std::optional<run::Streaming> streaming;  // of stores; empty: run::default_streaming()
    std::optional<double> inline_work;        // that stays on one thread (run::BoundGroup); for tests
    std::optional<double>
        piece_s;  // how long a piece of work is (run::Slice), 0: as short as can be; for tests
    // What the branches of a dispatch group cost, where that is known and not to be measured; for tests.
    std::function<std::optional<step::BranchCosts>(const std::string& group)> branch_costs;
    bool packs_samples = true;  // of stepping runs, where it pays; false: for benches
  };
  struct Counters {
    std::uint64_t graph_builds = 0;
    std::uint64_t rebinds = 0;
    std::uint64_t updates = 0;
    std::uint64_t launches = 0;  // whole replays and passes
    std::uint64_t runs = 0;
    codegen::Compiler::Counters compiler;
  };

  // Reads EAGLED_CPU_TARGET, EAGLED_INTERLEAVE, EAGLED_FUSION and EAGLED_STREAMING; BAD_VALUE where they name
  // nothing that is known.
  static StatusOr<std::unique_ptr<Engine>> create(Options options);
  ~Engine();

  [[nodiscard]] int threads() const;
  [[nodiscard]] const codegen::Target& target() const;
  [[nodiscard]] graph::Fusion fusion() const;
  [[nodiscard]] codegen::Compiler& compiler();
  [[nodiscard]] Counters counters() const;

  // Verifies, refuses races, compiles, binds. `planes`: one a plane of the description, sizes at least
  // those declared (MALFORMED_GRAPH). `scratch`: empty: from the system. CANCELLED where it is given up,
  // which is asked between kernels, and now and then.
  StatusOr<std::unique_ptr<run::BuiltGraph>> build(const v1::GraphDescription& description,
                                                   std::span<const run::PlaneMemory> planes,
                                                   const MakeScratch& scratch = {},
                                                   const GivenUp& given_up = {});
  // The same on a GPU, for a graph whose planes lie there; memory that only the client's callables touch may
  // be the host's. MIXED_DEVICES names what does not go together; what the driver says.
  StatusOr<std::unique_ptr<run::BuiltGraph>> build(const v1::GraphDescription& description,
                                                   const run::cuda::PlanesOnDevice& planes,
                                                   const GivenUp& given_up = {});
  // The graph `built` over the planes of another description of it, in place of which it can then be used:
  // schedule, code and the numbers of Params are the same. All that `build` refuses is refused here, and so
  // is what is not the same graph. Where it is refused or fails, `built` stays as it is. Else it is to be
  // told `keep` before its first launch, after which `built` is only to be looked at; dropped before that, it
  // leaves `built` as it was. Between, `built` is not to be used.
  StatusOr<std::unique_ptr<run::BuiltGraph>> rebind(const run::BuiltGraph& built,
                                                    const v1::GraphDescription& description,
                                                    std::span<const run::PlaneMemory> planes,
                                                    const MakeScratch& scratch = {},
                                                    const GivenUp& given_up = {});
  // On a GPU the CUDA graph is the same one, whose nodes are changed, all or none; what was enqueued keeps
  // its planes. It is built anew, beside the old one until that goes, where other arrays overlap, or lie in
  // memory so that a copy is another routine.
  StatusOr<std::unique_ptr<run::BuiltGraph>> rebind(run::BuiltGraph& built,
                                                    const v1::GraphDescription& description,
                                                    const run::cuda::PlanesOnDevice& planes,
                                                    const GivenUp& given_up = {});
  // One that is told to stop before it is compiled has ended.
  StatusOr<std::unique_ptr<step::Simulation>> simulate(const v1::RunDescription& description,
                                                       std::span<const run::PlaneMemory> planes,
                                                       std::shared_ptr<const run::Control> control);
  // The same on a GPU, for a run whose planes lie there, as for graphs.
  StatusOr<std::unique_ptr<step::Simulation>> simulate(const v1::RunDescription& description,
                                                       const run::cuda::PlanesOnDevice& planes,
                                                       std::shared_ptr<const run::Control> control);

private:
  struct State;
  Status bind(run::BuiltGraph& built, graph::RunPlan plan, std::span<const run::PlaneMemory> planes,
              const MakeScratch& scratch, const GivenUp& given_up);
  Status bind(run::BuiltGraph& built, const run::cuda::PlanesOnDevice& planes, const GivenUp& given_up,
              run::BuiltGraph* old = nullptr);
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eagle
