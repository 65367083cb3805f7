// Models of several parts, and what a run can be asked for beside the state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/run/testing.h"
#include "engine/step/dispatch_rule.h"
#include "engine/step/simulation.h"

namespace eagle::step {
namespace {

using eagle::testing::fill;
using eagle::testing::RunScene;
using kernel::KernelBuilder;
using kernel::Scalar;

// x <- x + 1
kernel::Kernel increment() {
  KernelBuilder k("increment");
  const auto x = k.state("x", {});
  k.commit("x", k.add(x, k.real(1)));
  return eagle::testing::finish(k);
}
// y = x * x
kernel::Kernel square() {
  KernelBuilder k("square");
  const auto x = k.scalar("x");
  k.output("y", k.mul(x, x));
  return eagle::testing::finish(k);
}
// finished when x >= limit
kernel::Kernel at_limit() {
  KernelBuilder k("at_limit");
  const auto x = k.scalar("x");
  const auto limit = k.scalar("limit");
  k.terminated("done");
  k.commit("done", k.ge(x, limit));
  return eagle::testing::finish(k);
}
// x <- (x + neighbours' mean of the step before), through a table of what `square` wrote
kernel::Kernel neighbours() {
  KernelBuilder k("neighbours");
  const auto x = k.state("x", {});
  k.table("all", {});
  const auto left = k.gather("all", {k.sub(k.sample_index(), k.integer(1))});
  k.commit("x", k.add(k.mul(x, k.real(0.5)), k.mul(left, k.real(0.01))));
  return eagle::testing::finish(k);
}

struct Planes {
  explicit Planes(std::size_t n) : x(n), y(n), limit(n), done(n), stop(n) {
    kernel::Random random(20'261'129 + n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<double>(random.below(7)) / 2;
      limit[i] = 1 + static_cast<double>(random.below(300));
      done[i] = random.chance(10) ? 1 : 0;
    }
  }
  std::vector<double> x, y, limit;
  std::vector<std::uint8_t> done;
  std::vector<std::int64_t> stop;

  friend bool operator==(const Planes&, const Planes&) = default;
};

struct Trial {
  RunScene scene;
  eagle::testing::Array x, y, limit, done, stop;
  explicit Trial(Planes& planes, std::int64_t max_steps)
      : x(scene.array(planes.x)),
        y(scene.array(planes.y)),
        limit(scene.array(planes.limit)),
        done(scene.array(planes.done)),
        stop(scene.array(planes.stop)) {
    scene.message.set_max_steps(max_steps);
  }
  void add(const kernel::Kernel& kernel, eagle::testing::Arguments arguments) {
    fill(*scene.message.add_model(), scene.kernel(kernel), arguments);
  }
  void add_three() {
    add(increment(), {{"x", x}});
    add(square(), {{"x", x}, {"y", y}});
    add(at_limit(), {{"x", x}, {"limit", limit}, {"done", done}});
  }
  void stop_steps() { set_view(*scene.message.mutable_stop_steps(), stop); }
  // Runs to the end; `called` answers host steps.
  RunResult go(Engine& engine, const std::function<bool(std::uint32_t)>& called = {}) {
    auto simulation = engine.simulate(scene.message, scene.memory, nullptr);
    EXPECT_TRUE(simulation.ok()) << simulation.status().to_string();
    if (!simulation.ok()) return {};
    for (;;) {
      switch ((*simulation)->advance()) {
        case Simulation::Next::again:
          break;
        case Simulation::Next::host_call:
          (*simulation)->answer(called((*simulation)->call()));
          break;
        case Simulation::Next::done:
        case Simulation::Next::failed:
          return (*simulation)->result();
      }
    }
  }
};

// The step as a loop: a sample that has finished is skipped by all of it.
std::int64_t step_plainly(Planes& p, std::int64_t max_steps) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    for (std::int64_t step = 1; step <= max_steps && p.done[i] == 0; ++step) {
      p.x[i] = p.x[i] + 1;
      p.y[i] = p.x[i] * p.x[i];
      if (p.x[i] >= p.limit[i]) {
        p.done[i] = 1;
        p.stop[i] = step;
      }
      last = std::max(last, step);
    }
  }
  return last;
}

TEST(SeveralKernels, AreTheHandWrittenLoop) {
  for (const int team : {1, 3}) {
    auto engine = eagle::testing::make_engine(team);
    for (const std::size_t n : {0, 1, 33, 1000, 5000}) {
      for (const std::int64_t cap : {0, 1, 100, 1000}) {
        SCOPED_TRACE(::testing::Message() << team << " threads, " << n << " samples, cap " << cap);
        Planes found(n);
        Planes expected = found;
        Trial run(found, cap);
        run.add_three();
        run.stop_steps();
        const RunResult result = run.go(*engine);
        EXPECT_EQ(result.report.steps, step_plainly(expected, cap));
        EXPECT_EQ(found, expected);
        EXPECT_EQ(result.report.mode, "tiled");
        const bool all = std::count(expected.done.begin(), expected.done.end(), 0) == 0;
        EXPECT_EQ(result.status, all ? RunStatus::finished : RunStatus::max_steps);
        EXPECT_EQ(result.report.finished,
                  n - static_cast<std::size_t>(std::count(expected.stop.begin(), expected.stop.end(), 0)));
      }
    }
  }
}

TEST(SeveralKernels, AKernelBehindTheOneThatFinishesASampleSkipsItInTheSameStep) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(1);
  planes.x = {0};
  planes.limit = {2};
  planes.done = {0};
  Trial run(planes, 10);
  run.add(at_limit(), {{"x", run.x}, {"limit", run.limit}, {"done", run.done}});
  run.add(increment(), {{"x", run.x}});
  EXPECT_EQ(run.go(*engine).report.steps, 3);
  EXPECT_EQ(planes.x[0], 2);
}

// Samples that look at others' values of the same step: each kernel runs over all samples first.
// Whose pieces of work last so long.
std::unique_ptr<Engine> engine_of_pieces(int team, double piece_s) {
  Engine::Options options;
  options.piece_s = piece_s;
  return eagle::testing::make_engine(team, std::move(options));
}

TEST(SeveralKernels, ThatMixSamplesRunOneAfterTheOther) {
  for (const int team : {1, 3}) {
    for (const double piece_s : {eagle::testing::least_pieces, eagle::testing::whole_pieces}) {
      auto engine = engine_of_pieces(team, piece_s);
      Planes found(5000);
      std::fill(found.limit.begin(), found.limit.end(), 1e300);
      Planes expected = found;
      Trial run(found, 20);
      run.add(square(), {{"x", run.x}, {"y", run.y}});
      run.add(neighbours(), {{"x", run.x}, {"all", run.y}});
      run.add(at_limit(), {{"x", run.x}, {"limit", run.limit}, {"done", run.done}});
      const RunResult result = run.go(*engine);
      EXPECT_EQ(result.report.mode, "stepwise");
      EXPECT_EQ(result.report.steps, 20);
      for (int step = 0; step < 20; ++step) {
        for (std::size_t i = 0; i < 5000; ++i) {
          if (expected.done[i] == 0) expected.y[i] = expected.x[i] * expected.x[i];
        }
        for (std::size_t i = 0; i < 5000; ++i) {
          if (expected.done[i] == 0)
            expected.x[i] = expected.x[i] * 0.5 + expected.y[i == 0 ? 0 : i - 1] * 0.01;
        }
      }
      EXPECT_EQ(found.x, expected.x);
      EXPECT_EQ(found.y, expected.y);
    }
  }
}

TEST(SeveralKernels, TwoMasksAreRefusedByName) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(8);
  std::vector<std::uint8_t> other(8);
  Trial run(planes, 10);
  run.add_three();
  run.add(at_limit(), {{"x", run.x}, {"limit", run.limit}, {"done", run.scene.array(other)}});
  const auto refused = engine->simulate(run.scene.message, run.scene.memory, nullptr);
  EXPECT_EQ(refused.status().reason(), Reason::bad_binding);
  EXPECT_NE(refused.status().message().find("two masks, 'done' and 'done'"), std::string::npos)
      << refused.status().message();
}

TEST(SeveralKernels, OfDifferentSizesAreRefused) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(8);
  std::vector<double> other(9);
  Trial run(planes, 10);
  run.add_three();
  run.add(increment(), {{"x", run.scene.array(other)}});
  const auto refused = engine->simulate(run.scene.message, run.scene.memory, nullptr);
  EXPECT_EQ(refused.status().reason(), Reason::sample_mismatch);
  EXPECT_NE(refused.status().message().find("'increment'"), std::string::npos);
}

TEST(Pace, StepsOfAPassAreAsAskedFor) {
  auto engine = eagle::testing::make_engine(2);
  Planes found(5000);
  Planes expected = found;
  Trial run(found, 1000);
  run.add_three();
  run.scene.message.set_steps_per_pass(7);
  const RunResult result = run.go(*engine);
  EXPECT_EQ(result.report.steps, step_plainly(expected, 1000));
  EXPECT_EQ(found.x, expected.x);
  EXPECT_EQ(result.report.fused_steps, 7);
  EXPECT_EQ(result.report.launches, (result.report.steps + 6) / 7);
}

// ---- the client's part

void host_step(Trial& run, std::uint32_t call, std::uint32_t before, std::int64_t every) {
  v1::HostStep& step = *run.scene.message.add_host_steps();
  step.mutable_node()->set_call(call);
  step.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
  step.set_before(before);
  step.set_every(every);
}

TEST(HostSteps, ComeOnceAStepInTheirPlace) {
  auto engine = eagle::testing::make_engine(2);
  Planes planes(3);
  planes.x = {0, 1, 2.5};
  planes.limit = {3, 3, 3};
  planes.done = {0, 0, 0};
  Trial run(planes, 10);
  host_step(run, 5, 0, 1);
  run.add_three();
  host_step(run, 6, 3, 1);
  std::vector<std::pair<std::uint32_t, double>> seen;
  const RunResult result = run.go(*engine, [&](std::uint32_t call) {
    seen.emplace_back(call, planes.x[0]);
    return false;
  });
  const std::vector<std::pair<std::uint32_t, double>> expected = {{5, 0}, {6, 1}, {5, 1},
                                                                  {6, 2}, {5, 2}, {6, 3}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(planes.x, (std::vector<double>{3, 3, 3.5}));
  EXPECT_EQ(result.report.launches, 3);
  EXPECT_EQ(result.report.finished, 3);
}

TEST(HostSteps, MayFinishSamplesThemselves) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(4);
  std::fill(planes.limit.begin(), planes.limit.end(), 1e300);
  std::fill(planes.done.begin(), planes.done.end(), 0);
  Trial run(planes, 100);
  run.add_three();
  host_step(run, 0, 3, 1);
  int steps = 0;
  const RunResult result = run.go(*engine, [&](std::uint32_t) {
    if (++steps == 5) std::fill(planes.done.begin(), planes.done.end(), 1);
    return false;
  });
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 5);
  EXPECT_EQ(result.report.finished, 4);
}

TEST(HostSteps, BetweenStepsAreCalledAtTheirMultiplesAndMayEndTheRun) {
  auto engine = eagle::testing::make_engine(2);
  Planes planes(2000);
  std::fill(planes.limit.begin(), planes.limit.end(), 1e300);
  Trial run(planes, 1000);
  run.add_three();
  host_step(run, 0, 3, 10);
  int calls = 0;
  const RunResult result = run.go(*engine, [&](std::uint32_t) { return ++calls == 4; });
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 40);
  EXPECT_EQ(calls, 4);
}

TEST(HostSteps, OfStreamsAreRefusedWithTheWayOut) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(4);
  Trial run(planes, 10);
  run.add_three();
  host_step(run, 0, 3, 1);
  run.scene.message.mutable_host_steps(0)->mutable_node()->set_tier(v1::HOST_TIER_STREAM);
  const auto refused = engine->simulate(run.scene.message, run.scene.memory, nullptr);
  EXPECT_NE(refused.status().message().find("a loop of your own"), std::string::npos);
}

// ---- recording

eagle::testing::Array record(Trial& run, std::vector<double>& rows, std::uint32_t launch,
                             const char* argument, std::int64_t n) {
  const eagle::testing::Array array = run.scene.array(rows);
  v1::RecordedPlane& plane = *run.scene.message.mutable_record()->add_planes();
  plane.set_launch(launch);
  plane.set_argument(argument);
  v1::View& view = *plane.mutable_rows();
  view.set_plane(array.plane);
  view.set_dtype(v1::DTYPE_F64);
  view.set_item_bytes(8);
  view.add_shape(static_cast<std::int64_t>(rows.size()) / n);
  view.add_shape(n);
  view.add_strides(8 * n);
  view.add_strides(8);
  return array;
}

TEST(Recording, IsTheStateAfterEachOfThoseStepsWhateverThePacking) {
  for (const int team : {1, 3}) {
    for (const std::int64_t every : {1, 3, 64, 100}) {
      for (const std::int64_t cap : {5, 250, 1000}) {
        SCOPED_TRACE(::testing::Message() << team << " threads, every " << every << ", cap " << cap);
        auto engine = engine_of_pieces(
            team, every == 3 && cap < 1000 ? eagle::testing::least_pieces : eagle::testing::whole_pieces);
        constexpr std::size_t n = 3000;
        Planes found(n);
        const Planes start = found;
        std::vector<double> rows(n * static_cast<std::size_t>(cap / every + 1), -1.0);
        Trial run(found, cap);
        run.add_three();
        record(run, rows, 1, "x", n);
        run.scene.message.mutable_record()->set_every(every);
        run.scene.message.mutable_record()->set_initial(true);
        const RunResult result = run.go(*engine);
        ASSERT_EQ(result.report.records, 1 + result.report.steps / every);
        for (std::int64_t row = 0; row < result.report.records; ++row) {
          Planes then = start;
          step_plainly(then, row * every);
          ASSERT_EQ(std::memcmp(then.x.data(), rows.data() + static_cast<std::size_t>(row) * n, n * 8), 0)
              << "row " << row;
        }
      }
    }
  }
}

TEST(Recording, KeepsTheLastRowsWhereThereIsNotRoomForAll) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(2);
  planes.x = {0, 0};
  planes.limit = {1e300, 3};
  planes.done = {0, 0};
  std::vector<double> rows(2 * 4);
  Trial run(planes, 10);
  run.add_three();
  record(run, rows, 0, "x", 2);
  run.scene.message.mutable_record()->set_every(1);
  EXPECT_EQ(run.go(*engine).report.records, 10);  // without the start: row r is the state after step r + 1
  EXPECT_EQ(rows, (std::vector<double>{9, 3, 10, 3, 7, 3, 8, 3}));
}

TEST(Recording, IntoAPlaneOfTheModelIsRefused) {
  auto engine = eagle::testing::make_engine(1);
  Planes planes(4);
  std::vector<double> rows(8);
  Trial run(planes, 10);
  run.add_three();
  record(run, rows, 0, "x", 4);
  run.scene.message.mutable_record()->set_every(1);
  run.scene.message.mutable_record()->mutable_planes(0)->mutable_rows()->set_plane(run.y.plane);
  run.scene.message.mutable_record()->mutable_planes(0)->mutable_rows()->set_shape(0, 1);
  const auto refused = engine->simulate(run.scene.message, run.scene.memory, nullptr);
  EXPECT_EQ(refused.status().reason(), Reason::plane_overlap) << refused.status().to_string();
}

// ---- dispatch

// x <- one of three branches by `kind`; t counts steps; reads its own number, which must survive reordering.
kernel::Kernel branching(kernel::DispatchPolicy policy) {
  KernelBuilder k("branching");
  const auto x = k.state("x", {});
  const auto kind = k.index("kind");
  const auto t = k.state("t", {Scalar::i64});
  const auto limit = k.index("limit");
  k.terminated("done");
  k.begin_switch(kind, kernel::Dispatch{"force", policy});
  k.next_case({k.mul(x, k.real(0.5))});
  const auto number = k.convert(k.sample_index(), Scalar::f64);
  k.next_case({k.add(x, number)});
  const auto next = k.end_switch({k.div(k.real(1), k.add(x, k.real(2)))});
  k.commit("x", next[0]);
  const auto later = k.add(t, k.integer(1));
  k.commit("t", later);
  k.commit("done", k.ge(later, limit));
  return eagle::testing::finish(k);
}

struct Branching {
  std::vector<double> x;
  std::vector<std::int64_t> kind, t, limit;
  std::vector<std::uint8_t> done;

  Branching(std::size_t n, const std::function<std::int64_t(std::size_t)>& kind_of)
      : x(n, 1.0), kind(n), t(n), limit(n), done(n) {
    kernel::Random random(n);
    for (std::size_t i = 0; i < n; ++i) {
      kind[i] = kind_of(i);
      limit[i] = 40 + static_cast<std::int64_t>(random.below(100));
    }
  }
  RunResult run(Engine& engine, kernel::DispatchPolicy authors,
                v1::DispatchPolicy forced = v1::DISPATCH_POLICY_UNSPECIFIED) {
    RunScene scene;
    scene.message.set_max_steps(1000);
    fill(*scene.message.add_model(), scene.kernel(branching(authors)),
         {{"x", scene.array(x)},
          {"kind", scene.array(kind)},
          {"t", scene.array(t)},
          {"limit", scene.array(limit)},
          {"done", scene.array(done)}});
    if (forced != v1::DISPATCH_POLICY_UNSPECIFIED) scene.message.add_dispatch()->set_policy(forced);
    auto simulation = engine.simulate(scene.message, scene.memory, nullptr);
    EXPECT_TRUE(simulation.ok()) << simulation.status().to_string();
    while ((*simulation)->advance() != Simulation::Next::done) {
    }
    return (*simulation)->result();
  }
};

// An engine for which the branches of every group cost that much.
std::unique_ptr<Engine> engine_with_costs(int threads, const BranchCosts& costs) {
  Engine::Options options;
  options.threads = threads;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  options.branch_costs = [costs](const std::string&) { return std::optional(costs); };
  auto engine = Engine::create(std::move(options));
  EXPECT_TRUE(engine.ok());
  return *std::move(engine);
}
const BranchCosts unequal{1e-9, {1e-9, 50e-9, 100e-9}, 1e-12};

std::int64_t mixed(std::size_t i) { return static_cast<std::int64_t>((i * 2'654'435'761u) >> 7) % 3; }

TEST(Dispatching, CountsAreExact) {
  auto engine = engine_with_costs(2, unequal);
  Branching samples(1000, [](std::size_t i) { return i < 990 ? 0 : i < 996 ? 1 : 2; });
  const RunResult result = samples.run(*engine, kernel::DispatchPolicy::automatic);
  ASSERT_EQ(result.report.dispatch.size(), 1u);
  EXPECT_EQ(result.report.dispatch[0].group, "force");
  EXPECT_EQ(result.report.dispatch[0].counts, (std::vector<std::int64_t>{990, 6, 4}));
}

TEST(Dispatching, ASelectorOutsideIsClampedBeforeItIsCounted) {
  auto engine = engine_with_costs(1, unequal);
  Branching samples(10, [](std::size_t i) { return i < 4 ? -7 : 99; });
  EXPECT_EQ(samples.run(*engine, kernel::DispatchPolicy::automatic).report.dispatch[0].counts,
            (std::vector<std::int64_t>{4, 0, 6}));
}

TEST(Dispatching, MixedSamplesOfUnequalBranchesAreSplit) {
  auto engine = engine_with_costs(2, unequal);
  Branching samples(200'000, mixed);
  const GroupReport group = samples.run(*engine, kernel::DispatchPolicy::automatic).report.dispatch[0];
  EXPECT_EQ(group.policy, kernel::DispatchPolicy::segmented);
  EXPECT_GE(group.gain, split_gain);
}

// The same samples under other costs: branches of which none is worth the ordering.
TEST(Dispatching, WhatBranchesCostFlipsTheChoice) {
  for (const BranchCosts& cheap :
       {BranchCosts{1e-6, {1e-9, 1e-9, 1e-9}, 1e-12}, BranchCosts{1e-9, {1e-9, 50e-9, 100e-9}, 1e-6}}) {
    auto engine = engine_with_costs(2, cheap);
    Branching samples(20'000, mixed);
    const GroupReport group = samples.run(*engine, kernel::DispatchPolicy::automatic).report.dispatch[0];
    EXPECT_EQ(group.policy, kernel::DispatchPolicy::switch_);
    EXPECT_LT(group.gain, split_gain);
  }
}

TEST(Dispatching, UniformSamplesStayFused) {
  auto engine = engine_with_costs(2, unequal);
  Branching samples(20'000, [](std::size_t i) { return i < 10'000 ? 0 : 2; });
  const GroupReport group = samples.run(*engine, kernel::DispatchPolicy::automatic).report.dispatch[0];
  EXPECT_EQ(group.policy, kernel::DispatchPolicy::switch_);
  EXPECT_LT(group.gain, split_gain);
}

TEST(Dispatching, ForcedAndDeclaredPoliciesAreReported) {
  using kernel::DispatchPolicy;
  auto engine = eagle::testing::make_engine(2);
  for (const DispatchPolicy policy :
       {DispatchPolicy::switch_, DispatchPolicy::predicated, DispatchPolicy::segmented}) {
    Branching forced(500, mixed);
    const GroupReport group =
        forced.run(*engine, DispatchPolicy::automatic, static_cast<v1::DispatchPolicy>(policy))
            .report.dispatch[0];
    EXPECT_EQ(group.policy, policy);
    EXPECT_EQ(group.counts[0] + group.counts[1] + group.counts[2], 500);
    Branching declared(500, mixed);
    EXPECT_EQ(declared.run(*engine, policy, v1::DISPATCH_SWITCH).report.dispatch[0].policy, policy)
        << "never overridden";
  }
}

TEST(Dispatching, GivesTheSameBitsUnderEveryPolicyAndTeam) {
  using kernel::DispatchPolicy;
  Branching expected(7001, mixed);
  for (std::size_t i = 0; i < expected.x.size(); ++i) {
    while (expected.done[i] == 0) {
      double& x = expected.x[i];
      x = expected.kind[i] == 0 ? x * 0.5 : expected.kind[i] == 1 ? x + static_cast<double>(i) : 1 / (x + 2);
      if (++expected.t[i] >= expected.limit[i]) expected.done[i] = 1;
    }
  }
  for (const int team : {1, 3}) {
    auto engine = engine_with_costs(team, unequal);
    for (const DispatchPolicy policy : {DispatchPolicy::automatic, DispatchPolicy::switch_,
                                        DispatchPolicy::segmented, DispatchPolicy::predicated}) {
      SCOPED_TRACE(kernel::name_of(policy));
      Branching found(7001, mixed);
      const RunResult result =
          found.run(*engine, DispatchPolicy::automatic, static_cast<v1::DispatchPolicy>(policy));
      EXPECT_EQ(std::memcmp(found.x.data(), expected.x.data(), found.x.size() * 8), 0);
      EXPECT_EQ(found.t, expected.t);
      EXPECT_EQ(found.done, expected.done);
      EXPECT_EQ(result.report.finished, 7001);
    }
  }
}

TEST(Dispatching, AnUnknownGroupIsRefusedWithThoseThatThereAre) {
  auto engine = eagle::testing::make_engine(1);
  Branching samples(8, mixed);
  RunScene scene;
  scene.message.set_max_steps(1);
  fill(*scene.message.add_model(), scene.kernel(branching(kernel::DispatchPolicy::automatic)),
       {{"x", scene.array(samples.x)},
        {"kind", scene.array(samples.kind)},
        {"t", scene.array(samples.t)},
        {"limit", scene.array(samples.limit)},
        {"done", scene.array(samples.done)}});
  v1::DispatchChoice& choice = *scene.message.add_dispatch();
  choice.set_group("forces");
  choice.set_policy(v1::DISPATCH_SWITCH);
  const auto refused = engine->simulate(scene.message, scene.memory, nullptr);
  EXPECT_NE(refused.status().message().find("no group 'forces'; there is 'force'"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace eagle::step
