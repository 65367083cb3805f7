#include "client/ctl/graph_check.h"

#include <bit>
#include <cstdio>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/edges.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/wire.h"
#include "engine/run/cuda/device_graph.h"

namespace eagle::ctl {
namespace {

using kernel::KernelBuilder;

constexpr std::int64_t samples = 37;
constexpr std::size_t arrays = 5;

// z = a sin(x) + y
kernel::Kernel mixing() {
  KernelBuilder b("mixing");
  const auto a = b.param("a"), x = b.scalar("x"), y = b.scalar("y");
  b.output("z", b.add(b.mul(a, b.op(kernel::Opcode::sin, {x})), y));
  return *b.finish();
}

// x <- a x + y
kernel::Kernel in_place() {
  KernelBuilder b("in_place");
  const auto a = b.param("a"), y = b.scalar("y");
  const auto x = b.state("x", {});
  b.commit("x", b.add(b.mul(a, x), y));
  return *b.finish();
}

// A description of launches over arrays of doubles, and those arrays.
class Scene {
public:
  explicit Scene(std::uint64_t seed) : random_(seed), values_(arrays) {
    kernel::to_message(mixing(), *message_.add_kernels());
    kernel::to_message(in_place(), *message_.add_kernels());
    for (std::size_t i = 0; i < arrays; ++i) {
      v1::PlaneDeclaration& plane = *message_.add_planes();
      plane.mutable_private_memory();
      plane.set_bytes(samples * sizeof(double));
      plane.set_label("array" + std::to_string(i));
      for (std::int64_t s = 0; s < samples; ++s)
        values_[i].push_back(static_cast<double>(random_() % 2000) / 1000 - 1);
    }
    const std::uint64_t stages = 5 + random_() % 8;
    for (std::uint64_t s = 0; s < stages; ++s) add_stage();
  }

  [[nodiscard]] const v1::GraphDescription& message() const { return message_; }
  std::vector<std::vector<double>>& values() { return values_; }
  std::vector<run::PlaneMemory> memory() {
    std::vector<run::PlaneMemory> all;
    for (auto& array : values_)
      all.push_back({reinterpret_cast<std::byte*>(array.data()), samples * sizeof(double)});
    return all;
  }

private:
  std::uint32_t any() { return static_cast<std::uint32_t>(random_() % arrays); }
  std::uint32_t any_but(std::uint32_t one, std::uint32_t other) {
    std::uint32_t found = any();
    while (found == one || found == other) found = any();
    return found;
  }

  // One in three is a group: two branches that read what they like and write what the other leaves alone.
  void add_stage() {
    v1::Stage& stage = *message_.add_stages();
    if (random_() % 3 != 0) {
      const std::uint32_t written = any();
      launch(*stage.mutable_node(), written, any_but(written, written));
      return;
    }
    const std::uint32_t first = any(), second = any_but(first, first), read = any_but(first, second);
    for (const std::uint32_t written : {first, second})
      launch(*stage.mutable_group()->add_branches()->add_nodes(), written, read);
  }

  void launch(v1::Node& node, std::uint32_t written, std::uint32_t read) {
    v1::KernelLaunch& launch = *node.mutable_kernel();
    const bool mixes = random_() % 2 == 0;
    launch.set_kernel(mixes ? 0 : 1);
    v1::Binding& a = *launch.add_bindings();
    a.set_argument("a");
    a.mutable_param()->set_real(static_cast<double>(random_() % 9 + 1) / 16);
    if (mixes) {
      bind(launch, "x", read);
      bind(launch, "y", read);
      bind(launch, "z", written);
    } else {
      bind(launch, "y", read);
      bind(launch, "x", written);
    }
  }

  static void bind(v1::KernelLaunch& launch, const char* argument, std::uint32_t array) {
    v1::Binding& binding = *launch.add_bindings();
    binding.set_argument(argument);
    v1::View& view = *binding.mutable_view();
    view.set_plane(array);
    view.set_dtype(v1::DTYPE_F64);
    view.set_item_bytes(sizeof(double));
    view.add_shape(samples);
    view.add_strides(sizeof(double));
  }

  std::mt19937_64 random_;
  v1::GraphDescription message_;
  std::vector<std::vector<double>> values_;
};

std::string difference(const std::vector<std::vector<double>>& cpu,
                       const std::vector<std::vector<double>>& gpu) {
  for (std::size_t array = 0; array < arrays; ++array) {
    for (std::size_t i = 0; i < cpu[array].size(); ++i) {
      const double wanted = cpu[array][i], found = gpu[array][i];
      const bool both_nan = wanted != wanted && found != found;
      if (both_nan || std::bit_cast<std::uint64_t>(wanted) == std::bit_cast<std::uint64_t>(found)) continue;
      char text[128];
      std::snprintf(text, sizeof text, "array%zu[%zu]: CPU %.17g, GPU %.17g", array, i, wanted, found);
      return text;
    }
  }
  return {};
}

Status replay(run::BuiltGraph& graph) {
  run::Replay replay(graph, 2, nullptr);
  StatusOr<run::Replay::Next> next = replay.advance();
  while (next.ok() && *next == run::Replay::Next::again) next = replay.advance();
  return next.ok() ? Status() : next.status();
}

// Halves every Param of the graph on the GPU; on the CPU, they are those of the other description.
Status halve_params(run::cuda::DeviceGraph& device, const graph::Graph& graph) {
  const std::vector<graph::Leaf> leaves = graph::leaves(graph);
  std::vector<graph::ParamUpdate> updates;
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto& launch = *graph::as<graph::KernelLaunch>(*leaves[leaf].node);
    const double half = std::bit_cast<double>(launch.arguments[0].bits) / 2;
    updates.push_back({{"", leaf, "a"}, half});
  }
  return device.update(updates);
}

void halve_params(v1::Node& node) {
  for (v1::Binding& binding : *node.mutable_kernel()->mutable_bindings()) {
    if (binding.has_param()) binding.mutable_param()->set_real(binding.param().real() / 2);
  }
}

v1::GraphDescription with_halved_params(v1::GraphDescription message) {
  for (v1::Stage& stage : *message.mutable_stages()) {
    if (stage.has_node()) {
      halve_params(*stage.mutable_node());
      continue;
    }
    for (v1::Branch& branch : *stage.mutable_group()->mutable_branches()) {
      for (v1::Node& node : *branch.mutable_nodes()) halve_params(node);
    }
  }
  return message;
}

// Takes away the parent with this number.
void forget_one(std::vector<std::vector<std::uint32_t>>& parents, std::int64_t number) {
  for (auto& of_node : parents) {
    if (number >= 0 && number < static_cast<std::int64_t>(of_node.size())) {
      of_node.erase(of_node.begin() + number);
      return;
    }
    number -= static_cast<std::int64_t>(of_node.size());
  }
}

}  // namespace

StatusOr<GraphCheck> check_graph(Engine& engine, run::cuda::DeviceModules& modules, std::uint64_t seed,
                                 std::int64_t forget) {
  Scene scene(seed);
  EAGLE_ASSIGN_OR_RETURN(const auto built, engine.build(scene.message(), scene.memory()));
  const graph::Graph& graph = built->graph();
  const std::size_t leaves = graph::leaves(graph).size();
  GraphCheck check;
  check.nodes = leaves;
  run::cuda::LoweringOptions options;
  options.change_parents = [&](run::cuda::Parents& parents) {
    for (const auto& of_node : parents) check.parents += of_node.size();
    if (forget >= 0) forget_one(parents, forget);
  };
  EAGLE_ASSIGN_OR_RETURN(const auto device, run::cuda::DeviceGraph::build(modules, graph, {}, options));
  run::cuda::DeviceGraph& there = *device;
  std::vector<std::vector<double>> values = scene.values();
  for (std::uint32_t i = 0; i < arrays; ++i)
    EAGLE_RETURN_IF_ERROR(there.write(i, std::as_bytes(std::span(values[i]))));
  EAGLE_RETURN_IF_ERROR(there.launch(2));
  EAGLE_RETURN_IF_ERROR(halve_params(there, graph));
  EAGLE_RETURN_IF_ERROR(there.launch(2));
  EAGLE_RETURN_IF_ERROR(there.wait().status());
  for (std::uint32_t i = 0; i < arrays; ++i)
    EAGLE_RETURN_IF_ERROR(there.read(i, std::as_writable_bytes(std::span(values[i]))));

  EAGLE_RETURN_IF_ERROR(replay(*built));
  EAGLE_ASSIGN_OR_RETURN(const auto halved,
                         engine.build(with_halved_params(scene.message()), scene.memory()));
  EAGLE_RETURN_IF_ERROR(replay(*halved));
  check.difference = difference(scene.values(), values);
  return check;
}

}  // namespace eagle::ctl
