// Model: a run description, checked. What one step consists of, over which planes, and what is wanted of the
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/kernel/transform.h"
#include "engine/step/shard.h"

namespace eagle::v1 {
class RunDescription;
}

namespace eagle::step {

constexpr std::size_t none = ~std::size_t{0};

// A plane with one element a sample, once, however many arguments of the model are bound to it.
struct Column {
  plane::View view;
  plane::Layout layout;
  int components = 1;
  std::int64_t item_bytes = 8;  // of one component of one sample
  bool written = false;         // by some kernel of the model
};

// A dispatch group of a kernel, and how it is to run.
struct StepGroup {
  std::string name;  // as the author named it; after "kernel." where two kernels have the name
  kernel::DispatchPolicy policy = kernel::DispatchPolicy::automatic;
  std::size_t branches = 0;
  std::vector<std::size_t> weights;  // scalar values that each branch computes
};

// One kernel of the step.
struct StepKernel {
  std::shared_ptr<const kernel::Kernel> kernel;  // the author's, with what stepping adds
  std::string hash;                              // of the author's
  graph::KernelLaunch launch;
  std::size_t mask = none;           // its finish mask, among the arguments
  std::vector<std::size_t> columns;  // by argument; `none` for one that has no element a sample
  bool long_loops = false;           // a step of one sample may take so long that a cancel must reach inside
  std::vector<StepGroup> groups;
  // Where there are groups: what samples would select, its launch, and the columns of its arguments.
  std::shared_ptr<const kernel::Kernel> selectors;
  graph::KernelLaunch selectors_launch;        // views of the outputs are empty: they are the caller's
  std::vector<std::size_t> selectors_columns;  // by argument; `none` for outputs too
  std::vector<std::size_t> selected_groups;    // by output: index into `groups`
};

struct HostStep {
  std::uint32_t call = 0;  // the client's number
  std::size_t before = 0;  // index of the kernel that it comes before; the number of kernels: last
  std::int64_t every = 1;  // steps
  std::vector<graph::NamedView> writes = {};
};

struct Record {
  struct Plane {
    std::size_t column = 0;
    plane::View rows;  // row-major (rows, components * samples) elements
  };
  std::vector<Plane> planes;
  std::int64_t every = 1;
  std::int64_t rows = 0;  // that there is room for
  bool initial = false;
};

struct Model {
  std::vector<graph::Plane> planes;
  std::vector<StepKernel> kernels;
  std::vector<HostStep> host_steps;  // in the order of the step
  std::vector<Column> columns;
  std::size_t mask = none;  // column; `none`: nothing finishes samples
  std::int64_t samples = 0;
  // Samples meet between the kernels of a step: one kernel reads, at other samples, what another one writes,
  // or samples make something together. Each kernel then runs over all samples before the next one begins.
  bool mixes = false;
  std::int64_t max_steps = 0;
  std::int64_t steps_per_pass = 0;  // 0: as many as suit
  std::optional<Record> record;
  std::optional<Shard> shard;  // that the samples are

  [[nodiscard]] bool has_host_steps_within() const;  // that come in every step
  // What its kernels and its recording read and write, by argument name.
  [[nodiscard]] graph::Touches touches() const;
};

// Kernels of one model, host steps, recorded planes: more are refused (graph_nodes).
constexpr int most_parts = 1024;

// Verifies everything that does not need the planes' memory. Refusals name kernel and argument.
StatusOr<Model> read_model(const v1::RunDescription& message, graph::PrivateKernelPlanes private_planes,
                           const graph::Limits& limits);

}  // namespace eagle::step
