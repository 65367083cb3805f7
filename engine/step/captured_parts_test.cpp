// Steps with parts that were captured from the client, on the GPU of tests/fake_cuda, against the CPU, which
// calls them. Each test has a process of its own (ctest): what the driver pretends is read once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/run/cuda/captured_graph.h"
#include "engine/run/cuda/device_nodes.h"
#include "engine/step/model.h"
#include "engine/step/testing.h"

namespace eagle::step {
namespace {

using eagle::testing::Array;
using run::cuda::CapturedGraph;
using testing::DeviceRuns;
using testing::Ensemble;
using ::testing::HasSubstr;
using testing::RunScene;

// Of an Ensemble's scene.
constexpr std::uint32_t x_plane = 0, v_plane = 1, done_plane = 5;

// x <- factor * x + v of live samples, which end where that is over the limit.
struct Push {
  double factor = 1;
  double limit = 1e300;

  static kernel::Kernel kernel() {
    kernel::KernelBuilder k("push");
    const auto x = k.state("x", {}), v = k.scalar("v"), factor = k.param("factor"), limit = k.param("limit");
    k.terminated("done");
    const auto next = k.add(k.mul(factor, x), v);
    k.commit("x", next);
    k.commit("done", k.ge(next, limit));
    return eagle::testing::finish(k);
  }
  void call(Ensemble& some) const {
    for (std::size_t i = 0; i < some.x.size(); ++i) {
      if (some.done[i] != 0) continue;
      some.x[i] = factor * some.x[i] + some.v[i];
      some.done[i] = some.x[i] >= limit ? 1 : 0;
    }
  }
};

class CapturedParts : public DeviceRuns {
protected:
  // What a package would enqueue: a kernel over planes of the scene.
  void capture(const RunScene& scene, run::cuda::PlanesOnDevice& planes, std::uint32_t call,
               const kernel::Kernel& kernel, eagle::testing::Arguments arguments) {
    v1::RunDescription alone;
    alone.mutable_planes()->CopyFrom(scene.message.planes());
    kernel::to_message(kernel, *alone.add_kernels());
    eagle::testing::fill(*alone.add_model(), 0, arguments);
    auto* const host = alone.add_host_steps();  // so that nobody asks how it ends
    host->mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
    host->set_every(1);
    const auto model = read_model(alone, graph::PrivateKernelPlanes::allowed, {});
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    auto beside = run::cuda::DeviceMemory::create(planes.unit->device, sizeof(run::cuda::Beside));
    ASSERT_TRUE(beside.ok() && beside->fill(0).ok());
    run::cuda::DeviceNodes nodes(*planes.unit->modules, beside->address());
    beside_.push_back(*std::move(beside));
    const StepKernel& part = model->kernels[0];
    auto chain = nodes.launch(part.kernel, part.launch);
    ASSERT_TRUE(chain.ok()) << chain.status().to_string();
    std::vector<run::cuda::api::DevicePointer> addresses;
    for (const auto& memory : planes.memory) addresses.push_back(memory->address());
    auto graph = CapturedGraph::capture(planes.unit->device, [&](run::cuda::api::Stream stream) {
      const auto& driver = planes.unit->device->driver().call();
      for (run::cuda::DeviceNode& node : *chain) {
        node.place(addresses);
        void* words = node.words.data();
        EXPECT_EQ(driver.cuLaunchKernel(node.module->function(), node.grid.blocks, 1, 1, node.grid.threads, 1,
                                        1, 0, stream, &words, nullptr),
                  run::cuda::api::success);
      }
      return Status();
    });
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    planes.works[call].graph = *std::move(graph);
  }

  static void add_part(RunScene& scene, std::uint32_t before, std::uint32_t call,
                       std::initializer_list<Array> writes) {
    testing::add_call(scene, before, 1, call, v1::HOST_TIER_RECORDED);
    for (const Array& array : writes) {
      v1::HostNode& node =
          *scene.message.mutable_host_steps(scene.message.host_steps_size() - 1)->mutable_node();
      v1::NamedView& view = *node.add_writes();
      view.set_name("plane" + std::to_string(array.plane));
      eagle::testing::set_view(*view.mutable_view(), array);
    }
  }

  // Pushes by their places in the step, on both sides. `called`: those which the client is called for.
  void expect_as_on_the_cpu(std::int64_t max_steps, const std::vector<std::pair<std::uint32_t, Push>>& pushes,
                            const std::string& schedule, const std::vector<std::uint32_t>& called = {}) {
    SCOPED_TRACE("max_steps " + std::to_string(max_steps));
    constexpr std::int64_t n = 23;
    Ensemble some(n);
    RunScene scene = some.scene(max_steps, true);
    const Array X{x_plane, v1::DTYPE_F64, n, 8}, V{v_plane, v1::DTYPE_F64, n, 8},
        D{done_plane, v1::DTYPE_BOOL, n, 1};
    for (std::uint32_t i = 0; i < pushes.size(); ++i) add_part(scene, pushes[i].first, i, {X, D});
    run::cuda::PlanesOnDevice planes = on_device(scene);
    for (std::uint32_t i = 0; i < pushes.size(); ++i) {
      if (std::find(called.begin(), called.end(), i) != called.end()) continue;
      const Push& push = pushes[i].second;
      capture(scene, planes, i, Push::kernel(),
              {{"x", X}, {"v", V}, {"factor", push.factor}, {"limit", push.limit}, {"done", D}});
    }
    const std::vector<std::uint8_t> done_before = some.done;
    const std::vector<double> x_before = some.x;
    const auto there = simulate(scene, planes);
    ASSERT_NE(there, nullptr);
    std::vector<std::uint32_t> calls;
    run(*there, [&](std::uint32_t call) {
      calls.push_back(call);
      Ensemble copy = some;
      copy.x = values<double>(planes, x_plane);
      copy.v = values<double>(planes, v_plane);
      copy.done = values<std::uint8_t>(planes, done_plane);
      pushes[call].second.call(copy);
      EXPECT_TRUE(planes.memory[x_plane]->write(std::as_bytes(std::span(copy.x))).ok());
      EXPECT_TRUE(planes.memory[done_plane]->write(std::as_bytes(std::span(copy.done))).ok());
      return false;
    });
    const auto here = engine().simulate(scene.message, scene.memory, nullptr);
    ASSERT_TRUE(here.ok()) << here.status().to_string();
    std::vector<std::uint32_t> calls_here;
    run(**here, [&](std::uint32_t call) {
      pushes[call].second.call(some);
      if (std::find(called.begin(), called.end(), call) != called.end()) calls_here.push_back(call);
      return false;
    });
    expect_same_planes(scene, planes);
    expect_same(there->result(), (*here)->result());
    const RunReport& report = there->result().report;
    EXPECT_THAT(report.schedule, HasSubstr(schedule));
    EXPECT_EQ(report.mode, "stepwise");
    EXPECT_EQ(calls, calls_here);
    for (std::size_t i = 0; i < done_before.size(); ++i) {
      if (done_before[i] == 0) continue;
      EXPECT_EQ(some.x[i], x_before[i]) << "finished before: " << i;
    }
    launches_ = report.launches;
  }

  std::int64_t launches_ = 0;

private:
  std::vector<run::cuda::DeviceMemory> beside_;
};

// At the begin, between the kernels and at the end, two of them at one place, whose order shows.
const std::vector<std::pair<std::uint32_t, Push>> everywhere = {
    {0, {0.5}}, {0, {1.25}}, {1, {1.001}}, {2, {0.99}}, {2, {1.01}}};

TEST_F(CapturedParts, RunInTheOrderOfTheListWithinOneCudaGraph) {
  for (const std::int64_t max_steps : {0, 1, 17, 2000})
    expect_as_on_the_cpu(max_steps, everywhere, "cuda_graph");
  expect_as_on_the_cpu(200, everywhere, "cuda_graph");
  EXPECT_EQ(launches_, 1) << "the host looks once for all of these steps";
}

TEST_F(CapturedParts, FinishSamplesThemselves) {
  for (const std::uint32_t before : {0u, 1u, 2u}) {
    for (const std::int64_t max_steps : {1, 40, 2000})
      expect_as_on_the_cpu(max_steps, {{before, {1.01, 1.5}}}, "cuda_graph");
  }
}

TEST_F(CapturedParts, OfAnOldDriverAreLaunchedByTheHost) {
  EAGLE_PRETEND_OR_SKIP("version=12010");
  for (const std::int64_t max_steps : {0, 17, 2000})
    expect_as_on_the_cpu(max_steps, everywhere, "host_loop: ");
  expect_as_on_the_cpu(2000, {{1, {1.01, 1.5}}}, "driver for CUDA 12.1");
}

TEST_F(CapturedParts, MayStandBesideOnesThatAreCalled) {
  for (const std::int64_t max_steps : {1, 17, 2000}) {
    expect_as_on_the_cpu(max_steps, everywhere, "host_loop: the client has a part in the step", {1, 3});
    expect_as_on_the_cpu(max_steps, {{0, {1.01, 1.5}}, {2, {0.999}}}, "the client has a part", {1});
  }
}

// From the fourth step on a kernel behind the captured part never ends; what that wrote is put back, too.
TEST_F(CapturedParts, AreUndoneWithTheStepThatALoopOfAKernelWasLeftIn) {
  std::vector<double> marks(5, 1), xs(5, 1);
  RunScene scene;
  scene.message.set_max_steps(1'000);
  const Array M = scene.array(marks);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(testing::endless_from_the_fourth_step()),
                       {{"x", scene.array(xs)}});
  add_part(scene, 0, 3, {M});
  run::cuda::PlanesOnDevice planes = on_device(scene);
  capture(scene, planes, 3, eagle::testing::affine_in_place(), {{"x", M}, {"a", 2.0}, {"b", 0.0}});
  const auto control = std::make_shared<run::Control>();
  const auto there = simulate(scene, planes, control);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->result().report.schedule, "cuda_graph");
  std::jthread canceller([&] {
    while (values<double>(planes, 0)[2] < 16) std::this_thread::yield();
    control->cancel = true;
  });
  run(*there);
  EXPECT_EQ(name_of(there->result().status), "cancelled");
  EXPECT_EQ(there->result().report.steps, 3);
  EXPECT_EQ(values<double>(planes, 0), std::vector<double>(5, 8));
}

}  // namespace
}  // namespace eagle::step
