// Fused or not, launch by launch or block by block, on any team: the interpreter's bits. Random graphs of
// random kernels over a few planes, with views that share rows, shifted ones, updates in place, scratch,
// masks, tables, accumulators, conditionals, groups, copies and host nodes in between.
#include "engine/run/fusion.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "eagle/v1/run.pb.h"
#include "engine/engine.h"
#include "engine/graph/races.h"
#include "engine/graph/scratch.h"
#include "engine/graph/testing.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/run/reduction/reduction.h"
#include "engine/run/testing.h"

namespace eagle::run {
namespace {

using graph::Fusion;
using kernel::Kernel;
using kernel::Random;
using kernel::Role;
using kernel::Scalar;
using plane::DType;
using plane::View;

constexpr std::uint64_t first_seed = 20'261'130;
constexpr std::int64_t rows = 12;  // of a plane
constexpr std::int64_t spare = 4;  // elements at the end of a row, for shifted views
constexpr std::array<std::int64_t, 6> lengths = {0, 1, 7, 63, 300, 1100};

int graphs_to_try() { return std::getenv("EAGLE_LONG") == nullptr ? 40 : 3'000; }

struct Memory {
  std::vector<std::vector<std::byte>> planes;
};

// A description, what its planes hold at first, and what its one host node does.
class RandomScene {
public:
  explicit RandomScene(std::uint64_t seed) : random_(seed), seed_(seed) {
    samples_ = lengths[random_.below(lengths.size())];
    for (const Scalar scalar :
         {Scalar::f64, Scalar::f64, Scalar::f64, Scalar::i64, Scalar::boolean, Scalar::f32})
      add_plane(scalar, false);
    for (const Scalar scalar : {Scalar::f64, Scalar::f64, Scalar::f64, Scalar::i64, Scalar::boolean})
      add_plane(scalar, true);
    const std::size_t wanted = 4 + random_.below(12);
    for (int tries = 0; tries < 120 && stages_ < wanted; ++tries) {
      v1::GraphDescription before = message;
      *message.add_stages() = random_.chance(12)   ? group()
                              : random_.chance(20) ? conditional()
                                                   : stage(node());
      if (accepted()) {
        ++stages_;
      } else {
        message = std::move(before);
      }
    }
  }

  [[nodiscard]] std::size_t stages() const { return stages_; }
  [[nodiscard]] std::vector<PlaneMemory> memory_of(Memory& held) const {
    std::vector<PlaneMemory> out;
    for (std::size_t p = 0; p < held.planes.size(); ++p) {
      out.push_back(scratch_[p] ? PlaneMemory{} : PlaneMemory{held.planes[p].data(), held.planes[p].size()});
    }
    return out;
  }
  // Where two memories differ outside of scratch, a NaN being equal to any other; empty: nowhere.
  [[nodiscard]] std::string difference(const Memory& found, const Memory& wanted) const {
    for (std::size_t p = 0; p < found.planes.size(); ++p) {
      if (scratch_[p]) continue;
      const auto item = static_cast<std::size_t>(kernel::bytes_of(scalars_[p]));
      for (std::size_t at = 0; at < found.planes[p].size(); at += item) {
        const std::byte* a = found.planes[p].data() + at;
        const std::byte* b = wanted.planes[p].data() + at;
        if (std::memcmp(a, b, item) == 0 || (is_nan(scalars_[p], a) && is_nan(scalars_[p], b))) continue;
        return "plane " + std::to_string(p) + ", element " + std::to_string(at / item);
      }
    }
    return {};
  }
  // Numbers for the Params of top-level launches.
  std::vector<graph::ParamUpdate> updates() {
    std::vector<graph::ParamUpdate> out;
    std::uint32_t leaf = 0;
    for (const v1::Stage& one : message.stages()) {
      const auto visit = [&](const v1::Node& node) {
        if (node.has_kernel()) {
          for (const v1::Binding& binding : node.kernel().bindings()) {
            if (!binding.has_param() || !random_.chance(50)) continue;
            graph::ParamUpdate update{{"", leaf, binding.argument()}, {}};
            if (binding.param().value_case() == v1::ParamValue::kReal) {
              update.value = static_cast<double>(random_.below(1000)) / 64 - 4;
            } else {
              update.value = static_cast<std::int64_t>(random_.below(2));
            }
            out.push_back(std::move(update));
          }
        }
        ++leaf;
      };
      if (one.has_node()) visit(one.node());
      for (const v1::Branch& branch : one.group().branches()) {
        for (const v1::Node& node : branch.nodes()) visit(node);
      }
    }
    return out;
  }

  v1::GraphDescription message;
  Memory memory;

private:
  static bool is_nan(Scalar scalar, const std::byte* at) {
    if (scalar == Scalar::f64) {
      double value = 0;
      std::memcpy(&value, at, sizeof value);
      return std::isnan(value);
    }
    float value = 0;
    if (scalar == Scalar::f32) std::memcpy(&value, at, sizeof value);
    return std::isnan(value);
  }

  void add_plane(Scalar scalar, bool scratch) {
    const int item = kernel::bytes_of(scalar);
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows * (samples_ + spare) * item));
    for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(item)) {
      const std::uint64_t bits = random_bits(scalar, random_);
      std::memcpy(bytes.data() + at, &bits, static_cast<std::size_t>(item));
    }
    v1::PlaneDeclaration& plane = *message.add_planes();
    plane.set_label("plane" + std::to_string(memory.planes.size()));
    plane.set_bytes(bytes.size());
    if (scratch) {
      plane.mutable_scratch();
    } else {
      plane.mutable_private_memory();
    }
    memory.planes.push_back(std::move(bytes));
    scalars_.push_back(scalar);
    scratch_.push_back(scratch);
  }

  // Whether the graph may be built; a launch in it may write half of a scratch plane where samples are
  // masked, and what is in the other half is nobody's business: such launches stay away from scratch.
  [[nodiscard]] bool accepted() const {
    const StatusOr<graph::Graph> graph = graph::read(message, graph::PrivateKernelPlanes::allowed);
    return graph.ok() && graph::check_races(*graph).ok() && graph::lay_out_scratch(*graph).ok();
  }

  std::uint32_t plane_for(Scalar scalar, bool scratch_allowed) {
    while (true) {
      const auto plane = static_cast<std::uint32_t>(random_.below(scalars_.size()));
      if (scalars_[plane] == scalar && (scratch_allowed || !scratch_[plane])) return plane;
    }
  }

  // `count` rows of `length` elements.
  View view(Scalar scalar, std::int64_t count, std::int64_t length, bool scratch_allowed) {
    const std::uint32_t plane = plane_for(scalar, scratch_allowed);
    const std::int64_t item = kernel::bytes_of(scalar);
    const std::int64_t stride = (samples_ + spare) * item;
    const auto most = static_cast<std::uint64_t>(rows - count);
    // Mostly the same few rows, so that nodes meet.
    const auto row = static_cast<std::int64_t>(
        random_.below(random_.chance(85) ? std::min<std::uint64_t>(most + 1, 2) : most + 1));
    const std::int64_t shift =
        length == samples_ && random_.chance(94) ? 0 : static_cast<std::int64_t>(random_.below(spare + 1));
    View out{
        plane, row * stride + shift * item, plane::dtype_of(scalar), static_cast<std::uint32_t>(item), {},
        {}};
    if (count > 1) {
      out.shape = {count, length};
      out.strides = {stride, item};
    } else {
      out.shape = {length};
      out.strides = {item};
    }
    return out;
  }

  View view_for(const kernel::Argument& argument, bool scratch_allowed) {
    std::int64_t length = samples_;
    if (argument.role == Role::reduce) length = 1;
    if (kernel::is_indexed(argument.role)) {
      length = argument.axes.empty()
                   ? std::min<std::int64_t>(samples_ + spare, 1 + static_cast<std::int64_t>(random_.below(9)))
                   : 1;
      for (const kernel::Axis& axis : argument.axes) length *= axis.extent;
    }
    return view(argument.type.scalar, argument.type.components(), length, scratch_allowed);
  }

  v1::Node kernel_node() {
    kernel::RandomKernelOptions options;
    options.ops = 10;
    options.depth = static_cast<int>(random_.below(3));  // without loops, which do not fuse, as often as not
    options.arguments = 4;
    options.outputs = 2;
    options.extent = 2;
    options.terminated = 12;
    options.shared = 5;
    const Kernel kernel = kernel::random_kernel(seed_ * 100'000 + kernels_++, options);
    // Every kernel is used again now and then, as programs do.
    std::uint32_t number = 0;
    if (message.kernels_size() == 0 || random_.chance(60)) {
      kernel::to_message(kernel, *message.add_kernels());
      number = static_cast<std::uint32_t>(message.kernels_size() - 1);
      made_.resize(number);  // those of nodes that were not accepted are gone
      made_.push_back(kernel);
    } else {
      number = static_cast<std::uint32_t>(random_.below(static_cast<std::uint64_t>(message.kernels_size())));
    }
    const Kernel& used = made_[number];
    const bool scratch_allowed = used.terminated_argument() < 0 && !used.shares();
    v1::Node node;
    node.set_name("node" + std::to_string(kernels_));
    node.mutable_kernel()->set_kernel(number);
    for (const kernel::Argument& argument : used.arguments) {
      v1::Binding& binding = *node.mutable_kernel()->add_bindings();
      binding.set_argument(argument.name);
      if (kernel::has_plane(argument.role)) {
        graph::testing::to_message(view_for(argument, scratch_allowed), *binding.mutable_view());
      } else if (kernel::is_real(argument.type.scalar)) {
        binding.mutable_param()->set_real(static_cast<double>(random_.below(1000)) / 64 - 4);
      } else {
        binding.mutable_param()->set_integer(static_cast<std::int64_t>(random_.below(2)));
      }
    }
    return node;
  }

  v1::Node node() {
    if (random_.chance(8)) {
      return graph::testing::copy("copy", view(Scalar::f64, 1, samples_, true),
                                  view(Scalar::f64, 1, samples_, true));
    }
    if (random_.chance(6)) {
      return graph::testing::host("host", {}, {{"x", view(Scalar::i64, 1, samples_, false)}}, calls_++);
    }
    if (samples_ > 0 && random_.chance(6)) {
      return graph::testing::reduce("sum", view(Scalar::f64, 1, samples_, true),
                                    view(Scalar::f64, 1, 1, false));
    }
    return kernel_node();
  }

  static v1::Stage stage(v1::Node node) { return graph::testing::stage(std::move(node)); }

  v1::Stage group() {
    std::vector<std::vector<v1::Node>> branches(2 + random_.below(2));
    for (std::vector<v1::Node>& branch : branches) {
      const std::size_t nodes = 1 + random_.below(3);
      for (std::size_t i = 0; i < nodes; ++i) branch.push_back(kernel_node());
    }
    return graph::testing::group(branches);
  }

  v1::Stage conditional() {
    graph::testing::Cells guard{view(Scalar::i64, 1, 1, false)};
    guard.negated = random_.chance(30);
    std::vector<v1::Stage> body;
    const std::size_t nodes = 1 + random_.below(4);
    for (std::size_t i = 0; i < nodes; ++i) body.push_back(stage(kernel_node()));
    return stage(random_.chance(50) ? graph::testing::skippable("maybe", guard, body)
                                    : graph::testing::repeat_while("loop", guard, body, 3));
  }

  Random random_;
  std::uint64_t seed_;
  std::uint64_t kernels_ = 0;
  std::uint32_t calls_ = 0;
  std::int64_t samples_ = 0;
  std::size_t stages_ = 0;
  std::vector<Kernel> made_;  // by kernel of the message
  std::vector<Scalar> scalars_;
  std::vector<bool> scratch_;
};

// What the scene's host node does, to whatever it declares.
void host_call(const graph::Graph& graph, Memory& memory, std::uint32_t call) {
  for (const graph::Stage& stage : graph.stages) {
    for (const graph::Branch& branch : stage.branches) {
      for (const graph::Node& node : branch.nodes) {
        const auto* host = graph::as<graph::HostNode>(node);
        if (host == nullptr || host->call != call) continue;
        const View& view = host->writes.front().view;
        for (std::int64_t i = 0; i < view.shape[0]; ++i) {
          std::uint64_t value = 0;
          std::byte* at = memory.planes[view.plane].data() + view.offset + i * 8;
          std::memcpy(&value, at, 8);
          value += 3;
          std::memcpy(at, &value, 8);
        }
      }
    }
  }
}

// Runs a graph node after node with the reference interpreter.
class Serial {
public:
  Serial(const graph::Graph& graph, Memory& memory) : graph_(graph), memory_(memory) {}

  void run() { stages(graph_.stages); }
  KernelCounts counts;

private:
  void stages(const std::vector<graph::Stage>& all) {
    for (const graph::Stage& stage : all) {
      for (const graph::Branch& branch : stage.branches) {
        for (const graph::Node& node : branch.nodes)
          visit_kind(node, [this](const auto& kind) { run(kind); });
      }
    }
  }
  [[nodiscard]] std::byte* at(const View& view) { return memory_.planes[view.plane].data() + view.offset; }
  [[nodiscard]] bool holds(const graph::Guard& guard) {
    std::int64_t value = 0;
    std::memcpy(&value, at(guard.count.view), 8);
    return (value != 0) != guard.negated;
  }

  void run(const graph::KernelLaunch& launch) {
    if (launch.samples == 0) return;
    const Kernel& kernel = *graph_.kernels[launch.kernel];
    std::vector<std::uint64_t> params;
    for (const graph::Bound& bound : launch.arguments) params.push_back(bound.bits);
    std::vector<kernel::InterpreterPlane> planes;
    for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
      const graph::Bound& bound = launch.arguments[a];
      planes.push_back(bound.view ? kernel::InterpreterPlane{at(*bound.view), bound.layout.component_stride,
                                                             bound.layout.samples}
                                  : kernel::InterpreterPlane{reinterpret_cast<std::byte*>(&params[a]), 0, 1});
    }
    const kernel::InterpreterResult result =
        kernel::interpret_launch(kernel, planes, launch.samples, 1, {0, launch.samples, 0});
    counts.clamped += result.clamped;
    counts.zero_divisions += result.zero_divisions;
    counts.dropped += result.dropped;
  }
  void run(const graph::HostNode& host) { host_call(graph_, memory_, host.call); }
  void run(const graph::Conditional& conditional) {
    if (conditional.max_iterations == 0) {
      if (holds(conditional.guard)) stages(conditional.body);
      return;
    }
    for (std::int64_t i = 0; i < conditional.max_iterations && holds(conditional.guard); ++i)
      stages(conditional.body);
  }
  void run(const graph::Group& group) {
    for (const graph::Branch& branch : group.branches) {
      for (const graph::Node& node : branch.nodes) visit_kind(node, [this](const auto& kind) { run(kind); });
    }
  }
  void run(const graph::Copy& copy) {
    const auto item = static_cast<std::int64_t>(copy.source.item_bytes);
    for (std::int64_t i = 0; i < copy.source.shape[0]; ++i)
      std::memcpy(at(copy.destination) + i * item, at(copy.source) + i * item,
                  static_cast<std::size_t>(item));
  }
  void run(const graph::Reduce& reduce) {
    // One leaf after the other, as docs/manual/accumulation.md says; the executor's own is tested elsewhere.
    const Reducer& reducer = reducer_for({reduce.op, reduce.scalar});
    Partial partial;
    reducer.append(partial, at(reduce.x.view), 0, reduce.samples);
    reducer.finish(partial, at(reduce.out.view));
  }

  const graph::Graph& graph_;
  Memory& memory_;
};

// A folder for compiled code, so that engines of one test do not all compile the same.
class CodeFolder {
public:
  CodeFolder() : path_((std::filesystem::temp_directory_path() / "eagle-fusion-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~CodeFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CodeFolder(const CodeFolder&) = delete;
  CodeFolder& operator=(const CodeFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

std::unique_ptr<Engine> engine_with(Fusion fusion, int threads, const std::string& code = {},
                                    Streaming streaming = Streaming::large) {
  Engine::Options options;
  options.compiler.cache_directory = code;
  options.threads = threads;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  options.fusion = fusion;
  options.inline_work = 0;  // every group opens its region
  options.streaming = streaming;
  StatusOr<std::unique_ptr<Engine>> engine = Engine::create(std::move(options));
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  return engine.ok() ? *std::move(engine) : nullptr;
}

struct Way {
  Fusion fusion;
  int threads;
  Streaming streaming = Streaming::off;
};
constexpr Way ways[] = {{Fusion::off, 1},
                        {Fusion::off, 3, Streaming::always},
                        {Fusion::blocks, 1},
                        {Fusion::blocks, 2},
                        {Fusion::blocks, 7, Streaming::always},
                        {Fusion::full, 1},
                        {Fusion::full, 2, Streaming::always},
                        {Fusion::full, 3},
                        {Fusion::full, 7, Streaming::always}};

KernelCounts launch(BuiltGraph& graph, Memory& memory) {
  Replay replay(graph, 1, nullptr);
  for (StatusOr<Replay::Next> next = replay.advance();; next = replay.advance()) {
    EXPECT_TRUE(next.ok()) << next.status().to_string();
    if (!next.ok() || *next == Replay::Next::done) return replay.counts();
    if (*next == Replay::Next::host_call) host_call(graph.graph(), memory, replay.call());
  }
}

TEST(Fusion, RandomGraphsHaveTheInterpretersBitsHoweverTheyRun) {
  const CodeFolder code;
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Way& way : ways)
    engines.push_back(engine_with(way.fusion, way.threads, code.path(), way.streaming));
  int fused = 0, blocks = 0;
  for (int i = 0; i < graphs_to_try(); ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomScene scene(seed);
    ASSERT_GT(scene.stages(), 0U);
    const std::vector<graph::ParamUpdate> updates = scene.updates();

    const StatusOr<graph::Graph> before = graph::read(scene.message, graph::PrivateKernelPlanes::allowed);
    ASSERT_TRUE(before.ok());
    Memory wanted = scene.memory;
    Serial first(*before, wanted);
    first.run();
    graph::Graph changed = *before;
    const auto bits = graph::resolve_updates(*before, updates);
    ASSERT_TRUE(bits.ok()) << bits.status().to_string();
    const Memory after_one = wanted;
    // The same walk in which launches are numbered.
    std::vector<graph::KernelLaunch*> launches;
    const std::function<void(std::vector<graph::Stage>&)> walk = [&](std::vector<graph::Stage>& stages) {
      for (graph::Stage& stage : stages) {
        for (graph::Branch& branch : stage.branches) {
          for (graph::Node& node : branch.nodes) {
            if (auto* one = std::get_if<graph::KernelLaunch>(&node.kind)) launches.push_back(one);
            if (const auto* const conditional = graph::as<graph::Conditional>(node)) {
              auto own = std::make_shared<graph::Conditional>(*conditional);  // the other one has it, too
              walk(own->body);
              node.kind = std::move(own);
            }
          }
        }
      }
    };
    walk(changed.stages);
    for (const auto& [target, value] : *bits)
      launches[target.launch]->arguments[target.argument].bits = value;
    Serial second(changed, wanted);
    second.run();

    for (std::size_t w = 0; w < engines.size(); ++w) {
      SCOPED_TRACE(std::string(name_of(ways[w].fusion)) + " on " + std::to_string(ways[w].threads));
      Memory found = scene.memory;
      StatusOr<std::unique_ptr<BuiltGraph>> built = engines[w]->build(scene.message, scene.memory_of(found));
      ASSERT_TRUE(built.ok()) << built.status().to_string();
      const KernelCounts one = launch(**built, found);
      ASSERT_EQ(scene.difference(found, after_one), "");
      EXPECT_EQ(one.clamped, first.counts.clamped);
      EXPECT_EQ(one.zero_divisions, first.counts.zero_divisions);
      EXPECT_EQ(one.dropped, first.counts.dropped);
      ASSERT_TRUE((*built)->update(updates).ok());
      launch(**built, found);
      ASSERT_EQ(scene.difference(found, wanted), "") << "after an update";
      for (const ExecutedGroup& group : (*built)->execution().groups) {
        blocks += group.functions.size() > 1 ? 1 : 0;
        for (const auto& function : group.functions) fused += function.size() > 1 ? 1 : 0;
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
  // That is what the test is about.
  EXPECT_GT(fused, 50);
  EXPECT_GT(blocks, 50);
}

// ---- what is reported, and what is stopped

graph::testing::Description chain_of(int nodes, std::int64_t samples, bool scratch) {
  graph::testing::Description d;
  const std::uint32_t kernel = d.double_kernel();
  View x = d.private_array({samples});
  for (int i = 0; i < nodes; ++i) {
    const View y = d.private_array({samples});
    if (scratch && i + 1 < nodes) d.message.mutable_planes(static_cast<int>(y.plane))->mutable_scratch();
    d.add(graph::testing::launch("n" + std::to_string(i), kernel, {{"x", x}, {"y", y}}));
    x = y;
  }
  return d;
}

struct Arrays {
  std::vector<std::vector<double>> values;
  std::vector<PlaneMemory> memory;

  explicit Arrays(const v1::GraphDescription& message) {
    for (const v1::PlaneDeclaration& plane : message.planes()) values.emplace_back(plane.bytes() / 8, 1.0);
    for (int p = 0; p < message.planes_size(); ++p) {
      auto& one = values[static_cast<std::size_t>(p)];
      const bool scratch = message.planes(p).has_scratch();
      memory.push_back(scratch ? PlaneMemory{}
                               : PlaneMemory{reinterpret_cast<std::byte*>(one.data()), one.size() * 8});
    }
  }
};

TEST(Fusion, AChainThroughScratchIsOneFunctionWithoutMemoryBetween) {
  const auto engine = engine_with(Fusion::full, 2);
  const graph::testing::Description d = chain_of(16, 1000, true);
  Arrays arrays(d.message);
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  const Execution& execution = (*built)->execution();
  ASSERT_EQ(execution.groups.size(), 1U);
  ASSERT_EQ(execution.groups[0].functions.size(), 1U);
  EXPECT_EQ(execution.groups[0].functions[0].size(), 16U);
  EXPECT_EQ(execution.groups[0].functions[0][15], (ExecutedNode{15, "n15"}));
  EXPECT_EQ(execution.bytes, 2 * 8 * 1000);  // the first plane and the last
  EXPECT_EQ((*built)->scratch().bytes, 0U);
  eagle::testing::launch(**built);
  EXPECT_EQ(arrays.values.back(), std::vector<double>(1000, 65536.0));
}

TEST(Fusion, WithoutItEveryNodeHasAGroupOfItsOwn) {
  const auto engine = engine_with(Fusion::off, 2);
  const graph::testing::Description d = chain_of(4, 1000, true);
  Arrays arrays(d.message);
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  EXPECT_EQ((*built)->execution().groups.size(), 4U);
  EXPECT_EQ((*built)->execution().bytes, 4 * 2 * 8 * 1000);
  EXPECT_GT((*built)->scratch().bytes, 0U);
}

TEST(Fusion, AReboundGraphIsGroupedAnew) {
  const auto engine = engine_with(Fusion::full, 1);
  graph::testing::Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.private_array({8}), y = d.private_array({9}), z = d.private_array({8});
  const View low = plane::testing::slice(y, 0, 0, 8), high = plane::testing::slice(y, 0, 1, 8);
  d.add(graph::testing::launch("a", kernel, {{"x", x}, {"y", low}}));
  d.add(graph::testing::launch("b", kernel, {{"x", low}, {"y", z}}));
  Arrays arrays(d.message);
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  EXPECT_EQ((*built)->execution().groups.size(), 1U);
  graph::testing::to_message(
      high,
      *d.message.mutable_stages(1)->mutable_node()->mutable_kernel()->mutable_bindings(0)->mutable_view());
  const auto again = engine->rebind(**built, d.message, arrays.memory);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ((*again)->execution().groups.size(), 2U);
  eagle::testing::launch(**again);
  EXPECT_EQ(arrays.values[2], (std::vector<double>{4, 4, 4, 4, 4, 4, 4, 2}));
}

TEST(Fusion, ExecutionsTravelAsMessages) {
  const auto engine = engine_with(Fusion::full, 2);
  const graph::testing::Description d = chain_of(3, 100, false);
  Arrays arrays(d.message);
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  v1::Execution message;
  describe((*built)->execution(), message);
  EXPECT_EQ(execution_of(message), (*built)->execution());
  EXPECT_EQ(execution_of_leaf((*built)->execution(), 1),
            "one function with 0 'n0', 2 'n2'; 100 samples on 2 threads, 3,200 bytes moved");
}

TEST(Fusion, ADeadlineInsideOfAGroupIsToldAsOne) {
  const auto engine = engine_with(Fusion::blocks, 1);
  graph::testing::Description d = chain_of(1, 100'000, false);
  // Counts to a limit of each sample's own; the first sample takes longer than the launch may.
  kernel::KernelBuilder builder("count");
  const auto limit = builder.scalar("limit");
  const auto carried = builder.begin_while({builder.real(0)}, 1ull << 40);
  const auto inside = builder.while_condition(builder.lt(carried[0], limit));
  builder.output("y", builder.end_while({builder.add(inside[0], builder.real(1))})[0]);
  const std::uint32_t count = d.kernel(builder);
  const View limits = d.private_array({100'000});
  d.add(graph::testing::launch("count", count, {{"limit", limits}, {"y", d.private_array({100'000})}}));
  Arrays arrays(d.message);
  arrays.values[limits.plane][0] = 30e6;
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  ASSERT_EQ((*built)->execution().groups.size(), 1U);
  const auto control = std::make_shared<Control>();
  control->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  Replay replay(**built, 1, control);
  const auto next = eagle::testing::advance(replay);
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().reason(), Reason::deadline);
  EXPECT_EQ(replay.launches(), 0);
  EXPECT_EQ(arrays.values[1].back(), 1.0) << "a block was begun after the deadline";
}

TEST(Fusion, ACancelEndsAGroupBetweenBlocksAndNothingOfTheNextIsWritten) {
  const auto engine = engine_with(Fusion::blocks, 1);
  graph::testing::Description d = chain_of(2, 100'000, false);
  // Cancels half way: a host node cannot stand inside of a group, a loop that never ends can.
  kernel::KernelBuilder builder("spin");
  const auto x = builder.scalar("x");
  const auto carried = builder.begin_while({x}, 1ull << 40);
  const auto inside = builder.while_condition(builder.boolean(true));
  builder.output("y", builder.end_while({builder.add(inside[0], builder.real(1))})[0]);
  const std::uint32_t spin = d.kernel(builder);
  const View first = plane::testing::array({100'000}, DType::f64, 0, 0);
  const View out = d.private_array({100'000});
  d.add(graph::testing::launch("spin", spin, {{"x", first}, {"y", out}}));
  d.add(graph::testing::launch("after", d.double_kernel(), {{"x", out}, {"y", d.private_array({100'000})}}));
  Arrays arrays(d.message);
  const auto built = engine->build(d.message, arrays.memory);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  ASSERT_EQ((*built)->execution().groups.size(), 1U);
  const auto control = std::make_shared<Control>();
  std::thread other([&] {
    // As soon as the first block of the first node is there, the loop is next.
    while (reinterpret_cast<std::atomic<double>&>(arrays.values[1][0]).load() == 1.0)
      std::this_thread::yield();
    control->cancel = true;
  });
  Replay replay(**built, 1, control);
  const auto next = replay.advance();
  other.join();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().reason(), Reason::cancelled);
  EXPECT_EQ(replay.launches(), 0);
  EXPECT_EQ(arrays.values.back(), std::vector<double>(100'000, 1.0)) << "a node ran behind a cancelled loop";
  EXPECT_EQ(arrays.values[1].back(), 1.0) << "a block was begun after the cancel";
}

TEST(DefaultFusion, RefusesWhatItDoesNotKnow) {
  const char* before = std::getenv("EAGLED_FUSION");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("EAGLED_FUSION", "sideways", 1);
  const auto engine = Engine::create({});
  ::setenv("EAGLED_FUSION", "blocks", 1);
  const auto blocks = default_fusion();
  if (before != nullptr) {
    ::setenv("EAGLED_FUSION", saved.c_str(), 1);
  } else {
    ::unsetenv("EAGLED_FUSION");
  }
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().reason(), Reason::bad_value);
  EXPECT_NE(engine.status().message().find("sideways"), std::string::npos);
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(*blocks, Fusion::blocks);
}

}  // namespace
}  // namespace eagle::run
