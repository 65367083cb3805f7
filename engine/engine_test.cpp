#include "engine/engine.h"

#include <gtest/gtest.h>
#include <span>

#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include "engine/run/host.h"
#include "engine/run/testing.h"

namespace eagle {
namespace {

using testing::GraphScene;

GraphScene counting(std::vector<std::int64_t>& n) {
  GraphScene scene;
  testing::fill(*testing::add_node(scene.message, "count").mutable_kernel(), scene.kernel(testing::counter()),
                {{"step", std::int64_t{1}}, {"n", scene.array(n)}});
  return scene;
}

// Two branches that write one array.
GraphScene racing(std::vector<std::int64_t>& n) {
  GraphScene scene;
  const std::uint32_t kernel = scene.kernel(testing::counter());
  const testing::Array array = scene.array(n);
  v1::Group& group = *scene.message.add_stages()->mutable_group();
  for (const char* name : {"left", "right"}) {
    v1::Node& node = *group.add_branches()->add_nodes();
    node.set_name(name);
    testing::fill(*node.mutable_kernel(), kernel, {{"step", std::int64_t{1}}, {"n", array}});
  }
  return scene;
}

TEST(Engine, TakesTheThreadsThatThereAre) {
  EXPECT_EQ(testing::make_engine(0)->threads(), run::available_threads());
  EXPECT_EQ(testing::make_engine(5)->threads(), 5);
}

TEST(Engine, RefusesANumberOfThreadsThatCannotBe) {
  for (const int threads : {-1, 100'000}) {
    Engine::Options options;
    options.threads = threads;
    const auto engine = Engine::create(std::move(options));
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.status().reason(), Reason::bad_value);
    EXPECT_NE(engine.status().message().find(std::to_string(threads)), std::string::npos);
  }
}

TEST(Engine, RefusesATargetThatItDoesNotKnow) {
  const char* before = std::getenv("EAGLED_CPU_TARGET");
  const std::string saved = before ? before : "";
  ::setenv("EAGLED_CPU_TARGET", "pdp-11", 1);
  const auto engine = Engine::create({});
  if (before) {
    ::setenv("EAGLED_CPU_TARGET", saved.c_str(), 1);
  } else {
    ::unsetenv("EAGLED_CPU_TARGET");
  }
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().reason(), Reason::bad_value);
}

TEST(Engine, CountsWhatSucceeded) {
  auto engine = testing::make_engine(2);
  std::vector<std::int64_t> n(8, 0);
  EXPECT_EQ(engine->counters().graph_builds, 0u);
  const auto graph = testing::build(*engine, counting(n));
  ASSERT_TRUE(graph);
  testing::launch(*graph, 3);
  const Engine::Counters counters = engine->counters();
  EXPECT_EQ(counters.graph_builds, 1u);
  EXPECT_EQ(counters.launches, 3u);
  EXPECT_EQ(counters.compiler.misses, 1u);

  const GraphScene bad = racing(n);
  EXPECT_FALSE(engine->build(bad.message, bad.memory).ok());
  EXPECT_EQ(engine->counters().graph_builds, 1u);
}

TEST(Engine, RefusesARaceByName) {
  auto engine = testing::make_engine(2);
  std::vector<std::int64_t> n(8, 0);
  const GraphScene scene = racing(n);
  const auto graph = engine->build(scene.message, scene.memory);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().reason(), Reason::racing_siblings);
  EXPECT_NE(graph.status().message().find("left"), std::string::npos) << graph.status().message();
}

TEST(Engine, RefusesMemoryThatDoesNotFitTheDeclarations) {
  auto engine = testing::make_engine(1);
  std::vector<std::int64_t> n(8, 0);
  GraphScene scene = counting(n);
  scene.memory[0].bytes = 63;
  const auto small = engine->build(scene.message, scene.memory);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.status().reason(), Reason::malformed_graph);
  EXPECT_NE(small.status().message().find("'array0'"), std::string::npos) << small.status().message();
  EXPECT_EQ(engine->build(scene.message, std::span<const run::PlaneMemory>()).status().reason(),
            Reason::malformed_graph);
}

TEST(Engine, RefusesAKernelOverMemoryOutOfReach) {
  auto engine = testing::make_engine(1);
  std::vector<std::int64_t> n(8, 0);
  GraphScene scene = counting(n);
  scene.memory[0].data = nullptr;
  const auto graph = engine->build(scene.message, scene.memory);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().reason(), Reason::private_array);
  EXPECT_NE(graph.status().message().find("argument 'n'"), std::string::npos) << graph.status().message();
}

TEST(Engine, RefusesPrivatePlanesUnlessItIsAllowedToRunThem) {
  Engine::Options options;
  options.threads = 1;
  auto engine = Engine::create(std::move(options));
  ASSERT_TRUE(engine.ok());
  std::vector<std::int64_t> n(8, 0);
  const GraphScene scene = counting(n);
  const auto graph = (*engine)->build(scene.message, scene.memory);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().reason(), Reason::private_array);
}

// Kernels of their own, over arrays of different lengths: none is fused with another.
struct Apart {
  static constexpr std::int64_t kernels = 6;
  std::vector<std::vector<std::int64_t>> arrays;
  GraphScene scene;

  Apart() {
    for (std::int64_t i = 0; i < kernels; ++i) {
      kernel::KernelBuilder k("add" + std::to_string(i));
      const auto n = k.state("n", {kernel::Scalar::i64});
      k.commit("n", k.add(n, k.integer(1'000'003 + i)));
      std::vector<std::int64_t>& array = arrays.emplace_back(static_cast<std::size_t>(8 + i), 0);
      testing::fill(*testing::add_node(scene.message, "node").mutable_kernel(),
                    scene.kernel(testing::finish(k)), {{"n", scene.array(array)}});
    }
  }
};

// Given up once the compiler has made so many.
GivenUp after_kernels(Engine& engine, std::uint64_t kernels) {
  return [&engine, kernels] { return engine.counters().compiler.misses >= kernels; };
}

TEST(Engine, ABuildThatIsGivenUpCompilesNoMore) {
  auto engine = testing::make_engine(1);
  const Apart apart;
  const auto given_up = engine->build(apart.scene.message, apart.scene.memory, {}, after_kernels(*engine, 2));
  EXPECT_EQ(given_up.status().reason(), Reason::cancelled) << given_up.status().to_string();
  EXPECT_EQ(engine->counters().compiler.misses, 2u);
  EXPECT_EQ(engine->counters().graph_builds, 0u);
  const auto built = testing::build(*engine, apart.scene);
  ASSERT_TRUE(built);
  EXPECT_EQ(engine->counters().compiler.misses, static_cast<std::uint64_t>(Apart::kernels));
  testing::launch(*built, 1);
  EXPECT_EQ(apart.arrays[5][12], 1'000'008);
}

TEST(Engine, ARebindThatIsGivenUpLeavesTheGraphAsItWas) {
  auto engine = testing::make_engine(1);
  const Apart apart;
  const auto built = testing::build(*engine, apart.scene);
  ASSERT_TRUE(built);
  const auto given_up =
      engine->rebind(*built, apart.scene.message, apart.scene.memory, {}, [] { return true; });
  EXPECT_EQ(given_up.status().reason(), Reason::cancelled);
  testing::launch(*built, 1);
  EXPECT_EQ(apart.arrays[0][7], 1'000'003);
}

TEST(Engine, ARunThatIsStoppedWhileItIsCompiledHasEnded) {
  auto engine = testing::make_engine(1);
  constexpr std::int64_t kernels = 40;
  std::vector<std::vector<std::int64_t>> arrays(kernels, std::vector<std::int64_t>(8, 0));
  std::vector<std::uint8_t> done(8, 0);
  testing::RunScene scene;
  for (std::int64_t i = 0; i < kernels; ++i) {
    kernel::KernelBuilder k("add" + std::to_string(i));
    const auto n = k.state("n", {kernel::Scalar::i64});
    if (i == 0) k.terminated("done");
    k.commit("n", k.add(n, k.integer(2'000'003 + i)));
    if (i == 0) k.commit("done", k.boolean(false));
    v1::KernelLaunch& launch = *scene.message.add_model();
    const testing::Array array = scene.array(arrays[static_cast<std::size_t>(i)]);
    const std::uint32_t kernel = scene.kernel(testing::finish(k));
    if (i == 0) {
      testing::fill(launch, kernel, {{"n", array}, {"done", scene.array(done)}});
    } else {
      testing::fill(launch, kernel, {{"n", array}});
    }
  }
  scene.message.set_max_steps(10);
  const auto control = std::make_shared<run::Control>();
  std::jthread stopper([&] {
    while (engine->counters().compiler.misses == 0) std::this_thread::yield();
    control->cancel = true;
  });
  const auto run = engine->simulate(scene.message, scene.memory, control);
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_TRUE((*run)->ended());
  EXPECT_EQ((*run)->result().status, step::RunStatus::cancelled);
  EXPECT_LT(engine->counters().compiler.misses, static_cast<std::uint64_t>(kernels));
  EXPECT_EQ(arrays[0][0], 0);
}

TEST(Engine, WhatItBuiltOutlivesIt) {
  auto engine = testing::make_engine(1);
  std::vector<std::int64_t> n(8, 0);
  const auto graph = testing::build(*engine, counting(n));
  ASSERT_TRUE(graph);
  engine.reset();
  testing::launch(*graph, 2);
  EXPECT_EQ(n[7], 2);
}

}  // namespace
}  // namespace eagle
