// Models on the GPU of tests/fake_cuda and on the CPU, from the same bytes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/graph_backend.h"
#include "engine/run/cuda/pretend.h"
#include "engine/run/testing.h"

namespace eagle::step::testing {

using eagle::run::cuda::testing::pretend;
using eagle::testing::RunScene;

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
  // `looks`: with a second kernel, so that samples meet.
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

// Leaves x as it is; from the fourth step on its loop never ends.
inline kernel::Kernel endless_from_the_fourth_step() {
  kernel::KernelBuilder days("days");
  const auto x = days.state("x", {});
  auto carried = days.begin_while({days.integer(0)}, std::uint64_t{1} << 40);
  carried = days.while_condition(days.ge(days.step_index(), days.integer(3)));
  carried = days.end_while({days.add(carried[0], days.integer(1))});
  days.commit("x", days.add(x, days.convert(carried[0], kernel::Scalar::f64)));
  return eagle::testing::finish(days);
}

class DeviceRuns : public ::testing::Test {
protected:
  Engine& engine() {
    if (engine_ == nullptr) engine_ = eagle::testing::make_engine(1, options_);
    return *engine_;
  }
  // The planes of a scene on the GPU, with their bytes. `without`: one that stays on the host.
  run::cuda::PlanesOnDevice on_device(const RunScene& scene, std::optional<std::uint32_t> without = {}) {
    if (devices_ == nullptr) devices_ = std::make_unique<run::cuda::Devices>(compiler_);
    run::cuda::PlanesOnDevice planes;
    const auto unit = devices_->find("cuda:0");
    EXPECT_TRUE(unit.ok()) << unit.status().to_string();
    planes.unit = *unit;
    for (std::uint32_t i = 0; i < scene.memory.size(); ++i) {
      const run::PlaneMemory& from = scene.memory[i];
      auto made = run::cuda::DeviceMemory::create(planes.unit->device, from.bytes);
      EXPECT_TRUE(made.ok() && made->write({from.data, from.bytes}).ok());
      planes.memory.push_back(i == without ? nullptr
                                           : std::make_shared<run::cuda::DeviceMemory>(*std::move(made)));
    }
    return planes;
  }
  std::unique_ptr<Simulation> simulate(const RunScene& scene, const run::cuda::PlanesOnDevice& planes,
                                       std::shared_ptr<run::Control> control = nullptr) {
    auto made = engine().simulate(scene.message, planes, std::move(control));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *std::move(made) : nullptr;
  }
  // To its end. `called`: the client's part, which may want the run to end. How many turns it took.
  static int run(Simulation& simulation, const std::function<bool(std::uint32_t)>& called = {}) {
    for (int turns = 1;; ++turns) {
      const Simulation::Next next = simulation.advance();
      if (next == Simulation::Next::host_call) simulation.answer(called && called(simulation.call()));
      if (next == Simulation::Next::failed) ADD_FAILURE() << simulation.failure().to_string();
      if (next == Simulation::Next::done || next == Simulation::Next::failed) return turns;
    }
  }
  template <typename T>
  static std::vector<T> values(const run::cuda::PlanesOnDevice& planes, std::uint32_t plane) {
    std::vector<T> found(planes.memory[plane]->bytes() / sizeof(T));
    EXPECT_TRUE(planes.memory[plane]->read(std::as_writable_bytes(std::span(found))).ok());
    return found;
  }
  static void expect_same_planes(const RunScene& scene, const run::cuda::PlanesOnDevice& planes) {
    for (std::uint32_t i = 0; i < scene.memory.size(); ++i) {
      const std::vector<std::byte> bytes = values<std::byte>(planes, i);
      EXPECT_EQ(std::memcmp(bytes.data(), scene.memory[i].data, scene.memory[i].bytes), 0) << "plane " << i;
    }
  }
  static void expect_same(const RunResult& found, const RunResult& wanted) {
    EXPECT_EQ(name_of(found.status), name_of(wanted.status));
    EXPECT_EQ(found.report.samples, wanted.report.samples);
    EXPECT_EQ(found.report.finished, wanted.report.finished);
    EXPECT_EQ(found.report.steps, wanted.report.steps);
    EXPECT_EQ(found.report.counts.dropped, wanted.report.counts.dropped);
    EXPECT_EQ(found.report.ranges, wanted.report.ranges);
    EXPECT_EQ(found.report.records, wanted.report.records);
    EXPECT_EQ(found.report.kernels, wanted.report.kernels);
    EXPECT_EQ(found.report.backend, "cuda:0");
    EXPECT_EQ(wanted.report.backend, "cpu");
  }
  void expect_as_on_the_cpu(std::int64_t max_steps, bool looks) {
    SCOPED_TRACE("max_steps " + std::to_string(max_steps));
    Ensemble some(23);
    expect_as_on_the_cpu(some.scene(max_steps, looks));
  }
  void expect_as_on_the_cpu(const RunScene& scene) {
    const auto planes = on_device(scene);
    const auto there = simulate(scene, planes);
    run(*there);
    const auto here = engine().simulate(scene.message, scene.memory, nullptr);
    ASSERT_TRUE(here.ok()) << here.status().to_string();
    run(**here);
    expect_same_planes(scene, planes);
    expect_same(there->result(), (*here)->result());
  }

  Engine::Options options_;
  codegen::Compiler compiler_;
  std::unique_ptr<run::cuda::Devices> devices_;
  std::unique_ptr<Engine> engine_;
};

inline void add_call(RunScene& scene, std::uint32_t before, std::int64_t every, std::uint32_t call,
                     v1::HostTier tier = v1::HOST_TIER_CAPTURED) {
  v1::HostStep& host = *scene.message.add_host_steps();
  host.mutable_node()->set_call(call);
  host.mutable_node()->set_tier(tier);
  host.set_before(before);
  host.set_every(every);
}

}  // namespace eagle::step::testing
