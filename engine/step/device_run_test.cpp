// Runs until samples are done, on the GPU of tests/fake_cuda and on the CPU, from the same bytes. Each test
// has a process of its own (ctest): what the driver pretends is read once.
#include "engine/step/device_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/run/testing.h"

namespace eagle::step {
namespace {

using eagle::testing::RunScene;
using ::testing::HasSubstr;

// Oscillators of different ends, some of which are done before the run begins.
struct Ensemble {
  std::vector<double> x, v, t, omega, t_end;
  std::vector<std::uint8_t> done;
  std::vector<double> energy = {7}, bins = std::vector<double>(4, 0.5);
  std::vector<std::int64_t> stop;

  explicit Ensemble(std::size_t n) : x(n, 1.0), v(n, 0.0), t(n, 0.0), stop(n, -1) {
    for (std::size_t i = 0; i < n; ++i) {
      omega.push_back(1 + 0.1 * static_cast<double>(i));
      t_end.push_back(0.01 * static_cast<double>(1 + (i * 37) % 100));
      done.push_back(i % 7 == 3 ? 1 : 0);
    }
  }
  // What samples make together: the energy of all, and where they are.
  static kernel::Kernel looking() {
    kernel::KernelBuilder k("look");
    const auto x = k.scalar("x"), v = k.scalar("v");
    k.accumulator("bins", {});
    k.declare_reduction("energy", {}, kernel::ReduceOp::sum);
    k.commit("energy", k.add(k.mul(x, x), k.mul(v, v)));
    k.accum_add("bins", k.real(0.1),
                {k.convert(k.mul(k.add(x, k.real(1.5)), k.real(1.5)), kernel::Scalar::i64)});
    return eagle::testing::finish(k);
  }
  RunScene scene(std::int64_t max_steps, bool looks) {
    RunScene scene;
    scene.message.set_max_steps(max_steps);
    const auto X = scene.array(x), V = scene.array(v);
    eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::oscillator()),
                         {{"x", X},
                          {"v", V},
                          {"t", scene.array(t)},
                          {"omega", scene.array(omega)},
                          {"dt", 1e-3},
                          {"t_end", scene.array(t_end)},
                          {"done", scene.array(done)}});
    if (looks) {
      eagle::testing::fill(
          *scene.message.add_model(), scene.kernel(looking()),
          {{"x", X}, {"v", V}, {"bins", scene.array(bins)}, {"energy", scene.array(energy)}});
    }
    eagle::testing::set_view(*scene.message.mutable_stop_steps(), scene.array(stop));
    return scene;
  }
};

class DeviceRuns : public ::testing::Test {
protected:
  static void pretend(const std::string& what) { ::setenv("EAGLE_FAKE_CUDA", what.c_str(), 1); }
  run::cuda::DeviceModules& modules() {
    if (modules_ == nullptr) {
      const auto driver = run::cuda::Driver::open();
      EXPECT_TRUE(driver.ok()) << driver.status().to_string();
      const auto device = run::cuda::Device::open(*driver, 0);
      EXPECT_TRUE(device.ok()) << device.status().to_string();
      modules_ = std::make_unique<run::cuda::DeviceModules>(*device, compiler_);
    }
    return *modules_;
  }
  StatusOr<std::unique_ptr<DeviceRun>> build(const RunScene& scene, const DeviceRun::Options& options = {}) {
    const auto model = read_model(scene.message, graph::PrivateKernelPlanes::allowed, {});
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    auto made = DeviceRun::build(modules(), *model, options);
    for (std::uint32_t i = 0; made.ok() && i < scene.memory.size(); ++i)
      EXPECT_TRUE((*made)->write(i, {scene.memory[i].data, scene.memory[i].bytes}).ok());
    return made;
  }
  void expect_same(std::int64_t max_steps, bool looks, const DeviceRun::Options& options = {}) {
    SCOPED_TRACE("max_steps " + std::to_string(max_steps));
    Ensemble cpu(23);
    const RunScene scene = cpu.scene(max_steps, looks);
    const auto there = build(scene, options);
    ASSERT_TRUE(there.ok()) << there.status().to_string();
    const auto found = (*there)->run();
    ASSERT_TRUE(found.ok()) << found.status().to_string();

    if (engine_ == nullptr) engine_ = eagle::testing::make_engine(1);
    const auto simulation = engine_->simulate(scene.message, scene.memory, nullptr);
    ASSERT_TRUE(simulation.ok()) << simulation.status().to_string();
    while ((*simulation)->advance() != Simulation::Next::done) {
    }
    const RunResult& wanted = (*simulation)->result();
    for (std::uint32_t i = 0; i < scene.memory.size(); ++i) {
      std::vector<std::byte> bytes(scene.memory[i].bytes);
      ASSERT_TRUE((*there)->read(i, bytes).ok());
      EXPECT_EQ(std::memcmp(bytes.data(), scene.memory[i].data, bytes.size()), 0) << "plane " << i;
    }
    EXPECT_EQ(name_of(found->status), name_of(wanted.status));
    EXPECT_EQ(found->report.finished, wanted.report.finished);
    EXPECT_EQ(found->report.steps, wanted.report.steps);
    EXPECT_EQ(found->report.counts.dropped, wanted.report.counts.dropped);
    EXPECT_EQ(found->report.ranges, wanted.report.ranges);
  }

  codegen::Compiler compiler_;
  std::unique_ptr<run::cuda::DeviceModules> modules_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(DeviceRuns, OneKernelTakesManyStepsABodyAndEndsWhereTheCpuDoes) {
  for (const std::int64_t max_steps : {0, 1, 63, 64, 65, 300, 2000})
    expect_same(max_steps, false, {true, 64});
}

TEST_F(DeviceRuns, SamplesThatMeetTakeOneStepABody) {
  for (const std::int64_t max_steps : {0, 1, 17, 2000}) expect_same(max_steps, true);
}

TEST_F(DeviceRuns, AnOldDriversLoopIsTheHostsAndTheScheduleSaysSo) {
  pretend("version=12010");
  for (const std::int64_t max_steps : {0, 65, 2000}) expect_same(max_steps, false, {true, 64});
  for (const std::int64_t max_steps : {0, 17}) expect_same(max_steps, true);
  Ensemble some(3);
  const auto there = build(some.scene(10, false));
  ASSERT_TRUE(there.ok());
  EXPECT_THAT((*there)->schedule(), HasSubstr("host_loop: "));
  EXPECT_THAT((*there)->schedule(), HasSubstr("driver for CUDA 12.1"));
}

TEST_F(DeviceRuns, ARunCanBeDoneAgainFromWhereItIs) {
  Ensemble some(5);
  const RunScene scene = some.scene(10, false);
  const auto there = build(scene, {true, 4});
  ASSERT_TRUE(there.ok());
  EXPECT_EQ((*there)->schedule(), "cuda_graph");
  for (int again = 0; again < 3; ++again) {
    const auto result = (*there)->run();
    ASSERT_TRUE(result.ok()) << result.status().to_string();
  }
  std::vector<double> t(5);
  ASSERT_TRUE((*there)->read(2, std::as_writable_bytes(std::span(t))).ok());
  double wanted = 0;
  for (int step = 0; step < 30; ++step) wanted += 1e-3;
  EXPECT_EQ(t[1], wanted);  // its end is at 0.38
}

TEST_F(DeviceRuns, ACancelledRunEndsAtAWholeStep) {
  Ensemble some(5);
  const auto there = build(some.scene(1'000, false));
  ASSERT_TRUE(there.ok());
  ASSERT_TRUE((*there)->cancel().ok());
  const auto result = (*there)->run();
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->status, RunStatus::cancelled);
  EXPECT_EQ(result->report.steps, 0);
  const auto later = (*there)->run();
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->status, RunStatus::finished);
}

TEST_F(DeviceRuns, WhatTheyDoNotHaveIsRefusedByName) {
  Ensemble some(5);
  RunScene scene = some.scene(10, false);
  v1::HostStep& host = *scene.message.add_host_steps();
  host.mutable_node()->set_call(1);
  host.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
  host.set_before(1);
  host.set_every(5);
  const auto refused = build(scene);
  EXPECT_EQ(refused.status().reason(), Reason::bad_value);
  EXPECT_THAT(refused.status().message(), HasSubstr("callables of the client"));
}

}  // namespace
}  // namespace eagle::step
