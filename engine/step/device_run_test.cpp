// Runs until samples are done, on the GPU of tests/fake_cuda and on the CPU, from the same bytes. Each test
// has a process of its own (ctest): what the driver pretends is read once.
#include "engine/step/device_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "engine/step/testing.h"

namespace eagle::step {
namespace {

using testing::add_call;
using testing::DeviceRuns;
using testing::Ensemble;
using ::testing::HasSubstr;
using testing::pretend;
using testing::RunScene;

TEST_F(DeviceRuns, OneKernelTakesManyStepsABodyAndEndsWhereTheCpuDoes) {
  for (const std::int64_t max_steps : {0, 1, 15, 16, 17, 257, 300, 2000})
    expect_as_on_the_cpu(max_steps, false);
}

TEST_F(DeviceRuns, SamplesThatMeetTakeOneStepABody) {
  for (const std::int64_t max_steps : {0, 1, 17, 2000}) expect_as_on_the_cpu(max_steps, true);
}

TEST_F(DeviceRuns, PassesAreAsShortAsTheCallerWantsAndGiveTheSameBits) {
  options_.piece_s = eagle::testing::least_pieces;
  for (const std::int64_t max_steps : {1, 40}) {
    expect_as_on_the_cpu(max_steps, false);
    expect_as_on_the_cpu(max_steps, true);
  }
  Ensemble some(5);
  const RunScene scene = some.scene(10, false);
  const auto there = simulate(scene, on_device(scene));
  EXPECT_EQ(run(*there), 10) << "a turn each step";
  EXPECT_EQ(there->result().report.launches, 10);
}

TEST_F(DeviceRuns, PassesThatAreAskedForByStepsHaveSoMany) {
  Ensemble some(5);
  RunScene scene = some.scene(10, false);
  scene.message.set_steps_per_pass(4);
  const auto there = simulate(scene, on_device(scene));
  run(*there);
  EXPECT_EQ(there->result().report.launches, 3);
  EXPECT_EQ(there->result().report.fused_steps, 4);
  EXPECT_EQ(there->result().report.steps, 10);
}

TEST_F(DeviceRuns, AnOldDriversLoopIsTheHostsAndTheScheduleSaysSo) {
  EAGLE_PRETEND_OR_SKIP("version=12010");
  for (const std::int64_t max_steps : {0, 65, 2000}) expect_as_on_the_cpu(max_steps, false);
  for (const std::int64_t max_steps : {0, 17}) expect_as_on_the_cpu(max_steps, true);
  Ensemble some(3);
  const RunScene scene = some.scene(10, false);
  const auto there = simulate(scene, on_device(scene));
  EXPECT_THAT(there->result().report.schedule, HasSubstr("host_loop: "));
  EXPECT_THAT(there->result().report.schedule, HasSubstr("driver for CUDA 12.1"));
}

TEST_F(DeviceRuns, ASecondRunGoesOnFromThereAndFindsItsKernelsOnTheDevice) {
  Ensemble some(5);
  const RunScene scene = some.scene(10, false);
  const auto planes = on_device(scene);
  for (int again = 0; again < 3; ++again) {
    const auto there = simulate(scene, planes);
    run(*there);
    EXPECT_EQ(there->result().report.schedule, "cuda_graph");
    EXPECT_EQ(there->result().report.compiled, again == 0);
  }
  double wanted = 0;
  for (int step = 0; step < 30; ++step) wanted += 1e-3;
  EXPECT_EQ(values<double>(planes, 2)[1], wanted);  // its end is at 0.38
}

// ---- rows and callables

RunScene recording(RunScene scene, std::vector<double>& rows, std::int64_t samples, std::int64_t every,
                   bool initial) {
  v1::Record& record = *scene.message.mutable_record();
  record.set_every(every);
  record.set_initial(initial);
  v1::RecordedPlane& plane = *record.add_planes();
  plane.set_argument("x");
  v1::View& view = *plane.mutable_rows();
  eagle::testing::set_view(view, scene.array(rows));
  const auto count = static_cast<std::int64_t>(rows.size()) / samples;
  view.clear_shape();
  view.clear_strides();
  view.add_shape(count);
  view.add_shape(samples);
  view.add_strides(8 * samples);
  view.add_strides(8);
  return scene;
}

TEST_F(DeviceRuns, RowsAreTheCpusAlsoWhereTheyGoRound) {
  struct Case {
    std::int64_t max_steps, every, rows;
    bool initial, looks;
  };
  for (const Case& one : {Case{20, 1, 21, true, false}, Case{2000, 100, 21, true, false},
                          Case{50, 7, 3, false, false}, Case{20, 3, 8, true, true}}) {
    SCOPED_TRACE(one.max_steps);
    Ensemble some(23);
    std::vector<double> rows(static_cast<std::size_t>(23 * one.rows));
    expect_as_on_the_cpu(recording(some.scene(one.max_steps, one.looks), rows, 23, one.every, one.initial));
  }
}

TEST_F(DeviceRuns, CallablesComeAfterTheStepsThatTheyAskedFor) {
  Ensemble some(5);
  RunScene scene = some.scene(100, false);
  add_call(scene, 1, 30, 7);
  const auto planes = on_device(scene);
  const auto there = simulate(scene, planes);
  std::vector<double> seen;
  run(*there, [&](std::uint32_t call) {
    EXPECT_EQ(call, 7u);
    seen.push_back(values<double>(planes, 2)[1]);
    return seen.size() == 2;
  });
  ASSERT_EQ(seen.size(), 2u);
  double wanted = 0;
  for (int step = 0; step < 30; ++step) wanted += 1e-3;
  EXPECT_EQ(seen[0], wanted);
  EXPECT_EQ(name_of(there->result().status), "finished");
  EXPECT_EQ(there->result().report.steps, 60);
}

// One that finishes samples itself, between the two kernels of a step.
TEST_F(DeviceRuns, CallablesWithinAStepSeeWhatTheKernelsBeforeThemDid) {
  Ensemble some(5);
  some.done.assign(5, 0);
  RunScene scene = some.scene(20, true);
  add_call(scene, 1, 1, 3);
  const auto planes = on_device(scene);
  const auto there = simulate(scene, planes);
  int calls = 0;
  run(*there, [&](std::uint32_t) {
    EXPECT_TRUE(there->part_way());
    if (++calls == 4) {
      std::vector<std::uint8_t> done = values<std::uint8_t>(planes, 5);
      done[0] = done[2] = 1;
      EXPECT_TRUE(planes.memory[5]->write(std::as_bytes(std::span(done))).ok());
    }
    return false;
  });
  const RunReport& report = there->result().report;
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(report.mode, "stepwise");
  EXPECT_THAT(report.schedule, HasSubstr("the client has a part"));
  EXPECT_GE(report.finished, 2);
  EXPECT_EQ(values<double>(planes, 2)[2], 1e-3 + 1e-3 + 1e-3 + 1e-3);
}

// ---- stopping

TEST_F(DeviceRuns, ARunThatIsToStopBeforeItBeginsStoresNothing) {
  Ensemble some(5);
  std::vector<double> rows(5 * 11, 4);
  const RunScene scene = recording(some.scene(10, false), rows, 5, 1, true);
  const auto planes = on_device(scene);
  for (const bool built : {false, true}) {
    const auto control = std::make_shared<run::Control>();
    control->cancel = !built;
    const auto there = simulate(scene, planes, control);
    control->cancel = true;
    run(*there);
    const RunResult& result = there->result();
    EXPECT_EQ(name_of(result.status), "cancelled");
    EXPECT_EQ(result.report.steps, 0);
    EXPECT_EQ(result.report.records, 0);
    EXPECT_EQ(result.report.ranges, (std::vector<StepRange>{{5, 0}}));
    expect_same_planes(scene, planes);
  }
}

class DeviceRunsThatAreStopped : public DeviceRuns {
protected:
  void expect_whole_steps() {
    Ensemble some(5);
    some.t_end.assign(5, 1e300);
    some.done.assign(5, 0);
    const RunScene scene = some.scene(std::int64_t{1} << 60, false);
    const auto planes = on_device(scene);
    const auto control = std::make_shared<run::Control>();
    const auto there = simulate(scene, planes, control);
    std::jthread canceller([&] {
      while (values<double>(planes, 2)[0] == 0) std::this_thread::yield();
      control->cancel = true;
    });
    run(*there);
    const RunReport& report = there->result().report;
    EXPECT_EQ(name_of(there->result().status), "cancelled");
    EXPECT_GT(report.steps, 0);
    EXPECT_EQ(report.ranges, (std::vector<StepRange>{{5, report.steps}}));
    double wanted = 0;
    for (std::int64_t step = 0; step < report.steps; ++step) wanted += 1e-3;
    EXPECT_EQ(values<double>(planes, 2), std::vector<double>(5, wanted));
  }
  // Counts to ten, and then, from the fourth step on, never ends a step.
  void expect_undone(bool calls) {
    kernel::KernelBuilder count("count");
    const auto n = count.state("n", {});
    count.terminated("done");
    count.declare_reduction("total", {}, kernel::ReduceOp::sum);
    const auto next = count.add(n, count.real(1));
    count.commit("n", next);
    count.commit("total", next);
    count.commit("done", count.ge(next, count.real(10)));

    std::vector<double> ns = {6, 8, 0, 6, 8}, xs(5, 1), total = {7};
    std::vector<std::uint8_t> done(5, 0);
    RunScene scene;
    scene.message.set_max_steps(1'000);
    const auto N = scene.array(ns), D = scene.array(done);
    eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::finish(count)),
                         {{"n", N}, {"done", D}, {"total", scene.array(total)}});
    eagle::testing::fill(*scene.message.add_model(), scene.kernel(testing::endless_from_the_fourth_step()),
                         {{"x", scene.array(xs)}});
    if (calls) add_call(scene, 1, 1, 3);
    const auto planes = on_device(scene);
    const auto control = std::make_shared<run::Control>();
    const auto there = simulate(scene, planes, control);
    // The fourth step is under way once its first kernel has counted.
    std::jthread canceller([&] {
      while (values<double>(planes, 0)[2] < 4) std::this_thread::yield();
      control->cancel = true;
    });
    run(*there);
    const RunReport& report = there->result().report;
    EXPECT_EQ(name_of(there->result().status), "cancelled");
    EXPECT_EQ(report.steps, 3);
    EXPECT_EQ(report.finished, 2);
    EXPECT_EQ(report.ranges, (std::vector<StepRange>{{5, 3}}));
    EXPECT_EQ(values<double>(planes, 0), (std::vector<double>{9, 10, 3, 9, 10}));
    EXPECT_EQ(values<std::uint8_t>(planes, 1), (std::vector<std::uint8_t>{0, 1, 0, 0, 1}));
    EXPECT_EQ(values<double>(planes, 2), (std::vector<double>{21}));
    EXPECT_EQ(values<double>(planes, 3), std::vector<double>(5, 1));
  }
};

TEST_F(DeviceRunsThatAreStopped, EndAtAWholeStep) { expect_whole_steps(); }
TEST_F(DeviceRunsThatAreStopped, EndAtAWholeStepWhereTheHostLoops) {
  pretend("version=12010");
  expect_whole_steps();
}
TEST_F(DeviceRunsThatAreStopped, UndoTheStepThatALoopOfAKernelWasLeftIn) { expect_undone(false); }
TEST_F(DeviceRunsThatAreStopped, UndoTheStepThatALoopOfAKernelWasLeftInWhereTheHostLoops) {
  pretend("version=12010");
  expect_undone(false);
}
TEST_F(DeviceRunsThatAreStopped, UndoTheStepInWhichTheClientHasAPart) { expect_undone(true); }

// ---- shards

TEST_F(DeviceRuns, ShardsComeToTheRunOfTheWhole) {
  kernel::KernelBuilder k("numbered");
  const auto x = k.state("x", {});
  k.terminated("done");
  k.declare_reduction("total", {}, kernel::ReduceOp::sum);
  const auto number = k.convert(k.add(k.sample_index(), k.n_samples()), kernel::Scalar::f64);
  const auto next = k.add(x, k.div(k.real(1), number));
  k.commit("x", next);
  k.commit("total", next);
  k.commit("done", k.ge(next, k.real(0.01)));
  const kernel::Kernel numbered = eagle::testing::finish(k);
  constexpr std::int64_t n = 600;
  struct One {
    std::vector<double> x, total = {0};
    std::vector<std::uint8_t> done;
    RunScene scene;
    One(const kernel::Kernel& kernel, std::int64_t count)
        : x(static_cast<std::size_t>(count)), done(static_cast<std::size_t>(count)) {
      scene.message.set_max_steps(7);
      eagle::testing::fill(
          *scene.message.add_model(), scene.kernel(kernel),
          {{"x", scene.array(x)}, {"done", scene.array(done)}, {"total", scene.array(total)}});
    }
  };
  One whole(numbered, n);
  const auto here = engine().simulate(whole.scene.message, whole.scene.memory, nullptr);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  run(**here);
  std::vector<RunResult> results;
  for (const Shard& shard : shards_of(n, 2)) {
    One part(numbered, shard.count);
    part.scene.message.mutable_shard()->set_base(shard.base);
    part.scene.message.mutable_shard()->set_count(shard.count);
    part.scene.message.mutable_shard()->set_of(shard.of);
    const auto planes = on_device(part.scene);
    const auto there = simulate(part.scene, planes);
    run(*there);
    const std::vector<double> found = values<double>(planes, 0);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], whole.x[static_cast<std::size_t>(shard.base) + i])
          << "sample " << shard.base << "+" << i;
    results.push_back(there->result());
  }
  const StatusOr<RunResult> all = combine(results);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  double total = 0;
  all->report.reductions.at(0).store(reinterpret_cast<std::byte*>(&total));
  EXPECT_EQ(total, whole.total[0]);
}

// ---- refusals and faults

TEST_F(DeviceRuns, AnArrayOfTheHostIsRefusedByTheNamesOfBoth) {
  Ensemble some(5);
  const RunScene scene = some.scene(10, false);
  const auto refused = engine().simulate(scene.message, on_device(scene, 3), nullptr);
  EXPECT_EQ(refused.status().reason(), Reason::mixed_devices);
  for (const char* words : {"kernel 'oscillator', 'omega'", "plane 'array3'", "plane 'array0' lies on cuda:0",
                            "device=\"cuda:0\""})
    EXPECT_THAT(refused.status().message(), HasSubstr(words));
}

TEST_F(DeviceRuns, AFaultOfTheDeviceEndsThemWithWhatItsDriverSays) {
  EAGLE_PRETEND_OR_SKIP("fail_launch=12");
  Ensemble some(5);
  some.t_end.assign(5, 1e300);
  const RunScene scene = some.scene(1'000'000, true);
  const auto there = simulate(scene, on_device(scene));
  Simulation::Next next = Simulation::Next::again;
  while (next == Simulation::Next::again) next = there->advance();
  EXPECT_EQ(next, Simulation::Next::failed);
  EXPECT_EQ(there->failure().reason(), Reason::system);
  EXPECT_THAT(there->failure().message(), HasSubstr("CUDA_ERROR"));
  EXPECT_TRUE(there->ended());
  EXPECT_EQ(there->advance(), Simulation::Next::failed) << "it stays so";
}

}  // namespace
}  // namespace eagle::step
