#include "engine/step/simulation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <stop_token>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "engine/kernel/interpret.h"
#include "engine/run/testing.h"
#include "engine/step/pace.h"

namespace eagle::step {
namespace {

using eagle::testing::RunScene;

// The planes of an ensemble of oscillators.
struct Ensemble {
  explicit Ensemble(std::size_t n)
      : x(n, 1.0), v(n, 0.0), t(n, 0.0), omega(n, 2.0), t_end(n, 1.0), done(n, 0) {}

  double dt = 1e-3;
  std::vector<double> x, v, t, omega, t_end;
  std::vector<std::uint8_t> done;

  [[nodiscard]] std::size_t size() const { return x.size(); }

  RunScene scene(std::int64_t max_steps) {
    RunScene scene;
    scene.message.set_max_steps(max_steps);
    const std::uint32_t kernel = scene.kernel(eagle::testing::oscillator());
    eagle::testing::fill(*scene.message.add_model(), kernel,
                         {{"x", scene.array(x)},
                          {"v", scene.array(v)},
                          {"t", scene.array(t)},
                          {"omega", scene.array(omega)},
                          {"dt", dt},
                          {"t_end", scene.array(t_end)},
                          {"done", scene.array(done)}});
    return scene;
  }

  // The same in plain C++ (compiled without contraction): the number of the last step taken.
  std::int64_t step_plainly(std::int64_t max_steps) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      for (std::int64_t step = 1; step <= max_steps && !done[i]; ++step) {
        const double next_x = x[i] + dt * v[i];
        v[i] = v[i] - dt * omega[i] * omega[i] * x[i];
        x[i] = next_x;
        t[i] = t[i] + dt;
        done[i] = t[i] >= t_end[i] ? 1 : 0;
        last = std::max(last, step);
      }
    }
    return last;
  }

  kernel::InterpreterResult interpret(std::int64_t max_steps) {
    const auto plane = [](auto& values) {
      return kernel::InterpreterPlane{reinterpret_cast<std::byte*>(values.data()), 0};
    };
    const kernel::InterpreterPlane planes[] = {
        plane(x),     plane(v),   plane(t), plane(omega), {reinterpret_cast<std::byte*>(&dt), 0},
        plane(t_end), plane(done)};
    return kernel::interpret_launch(eagle::testing::oscillator(), planes, static_cast<std::int64_t>(size()),
                                    max_steps);
  }
};

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void expect_same_bits(const Ensemble& a, const Ensemble& b) {
  EXPECT_TRUE(same_bits(a.x, b.x));
  EXPECT_TRUE(same_bits(a.v, b.v));
  EXPECT_TRUE(same_bits(a.t, b.t));
  EXPECT_EQ(a.done, b.done);
}

std::unique_ptr<Simulation> start(Engine& engine, Ensemble& ensemble, std::int64_t max_steps,
                                  std::shared_ptr<const run::Control> control = nullptr) {
  const RunScene scene = ensemble.scene(max_steps);
  auto simulation = engine.simulate(scene.message, scene.memory, std::move(control));
  EXPECT_TRUE(simulation.ok()) << simulation.status().to_string();
  return simulation.ok() ? *std::move(simulation) : nullptr;
}

RunResult run(Engine& engine, Ensemble& ensemble, std::int64_t max_steps) {
  const auto simulation = start(engine, ensemble, max_steps);
  if (!simulation) return {};
  while (simulation->advance() != Simulation::Next::done) {
  }
  EXPECT_TRUE(simulation->ended());
  return simulation->result();
}

// The first of a million samples with omega = linspace(1, 3, 10^6), as numpy computes it.
Ensemble first_of_a_million(std::size_t n) {
  Ensemble ensemble(n);
  const double step = 2.0 / 999'999.0;
  for (std::size_t i = 0; i < n; ++i) ensemble.omega[i] = static_cast<double>(i) * step + 1.0;
  return ensemble;
}

TEST(Simulation, TheOscillatorsOfTheManual) {
  constexpr std::size_t n = 20'000;
  Ensemble expected = first_of_a_million(n);
  EXPECT_EQ(expected.step_plainly(2000), 1000);
  for (const int team : {1, 2, 3, 7}) {
    SCOPED_TRACE(team);
    auto engine = eagle::testing::make_engine(team);
    Ensemble ensemble = first_of_a_million(n);
    const RunResult result = run(*engine, ensemble, 2000);
    EXPECT_EQ(result.status, RunStatus::finished);
    EXPECT_EQ(result.report.steps, 1000);
    EXPECT_EQ(result.report.finished, static_cast<std::int64_t>(n));
    EXPECT_EQ(result.report.threads, team);
    // docs/manual/kernels.md, acceptance kernels
    EXPECT_EQ(ensemble.x[0], 0.5405728050653854);
    EXPECT_EQ(ensemble.x[1], 0.5405711223621569);
    EXPECT_EQ(ensemble.x[2], 0.540569439656762);
    expect_same_bits(ensemble, expected);
  }
}

TEST(Simulation, OneOscillatorOfTheManual) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble one(1);
  const RunResult result = run(*engine, one, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.launches, 1);  // so small a run is one pass
  // docs/manual/kernels.md, acceptance kernels
  EXPECT_EQ(one.t[0], 1.0000000000000007);
  EXPECT_EQ(one.x[0], -0.41697753175791447);
  EXPECT_EQ(one.v[0], -1.8222378995667639);
}

// End times spread over (0, 0.04], some masks set beforehand.
Ensemble random_ensemble(std::size_t n, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  Ensemble ensemble(n);
  for (std::size_t i = 0; i < n; ++i) {
    ensemble.x[i] = unit(random);
    ensemble.omega[i] = 1.0 + 2.0 * unit(random);
    ensemble.t_end[i] = 0.04 * unit(random);
    ensemble.done[i] = unit(random) < 0.2 ? 1 : 0;
  }
  return ensemble;
}

TEST(Simulation, TheBitsAreTheInterpretersForAnySizeTeamAndMask) {
  constexpr std::uint64_t seed = 20'240'611;
  std::mt19937_64 random(seed);
  for (const int team : {1, 3}) {
    auto engine = eagle::testing::make_engine(team);
    for (const std::size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 1023, 1025, 5000}) {
      for (const std::int64_t max_steps : {1, 20, 60}) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", team " << team << ", " << n
                                          << " samples, max_steps " << max_steps);
        Ensemble ensemble = random_ensemble(n, random);
        Ensemble expected = ensemble;
        const RunResult result = run(*engine, ensemble, max_steps);
        const kernel::InterpreterResult reference = expected.interpret(max_steps);
        expect_same_bits(ensemble, expected);
        EXPECT_EQ(result.report.finished, reference.finished);
        EXPECT_EQ(result.report.steps, reference.steps);
        const bool all = std::count(expected.done.begin(), expected.done.end(), 0) == 0;
        EXPECT_EQ(result.status, all ? RunStatus::finished : RunStatus::max_steps);
      }
    }
  }
}

TEST(Simulation, ManyPassesGiveTheBitsOfOne) {
  // 30 million sample steps, over the bound of one pass; end times spread over (0, 3].
  constexpr std::size_t n = 10'000;
  Ensemble ensemble = first_of_a_million(n);
  for (std::size_t i = 0; i < n; ++i) ensemble.t_end[i] = 3.0 * static_cast<double>(i + 1) / n;
  Ensemble expected = ensemble;
  const std::int64_t last = expected.step_plainly(5000);
  auto engine = eagle::testing::make_engine(2);
  const RunResult result = run(*engine, ensemble, 5000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, last);
  EXPECT_EQ(result.report.finished, static_cast<std::int64_t>(n));
  EXPECT_GE(result.report.launches, 1);
  EXPECT_EQ(engine->counters().launches, static_cast<std::uint64_t>(result.report.launches));
  expect_same_bits(ensemble, expected);
}

// In passes that are shorter than a window nothing is packed between two windows.
TEST(Simulation, ShortPassesBeginWithTheLiveSamplesTogether) {
  constexpr std::size_t n = 10'000;
  constexpr std::uint64_t seed = 20'261'201;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Ensemble ensemble = first_of_a_million(n);
  for (double& end : ensemble.t_end) end = std::uniform_real_distribution<double>(0.0, 1.0)(random);
  Ensemble expected = ensemble;
  const std::int64_t last = expected.step_plainly(2000);
  auto engine = eagle::testing::make_engine(1);
  RunScene scene = ensemble.scene(2000);
  scene.message.set_steps_per_pass(first_window - 1);
  const auto simulation = engine->simulate(scene.message, scene.memory, nullptr);
  ASSERT_TRUE(simulation.ok()) << simulation.status().to_string();
  while ((*simulation)->advance() != Simulation::Next::done) {
  }
  const RunResult result = (*simulation)->result();
  EXPECT_EQ(result.report.steps, last);
  EXPECT_GT(result.report.compactions, 0);
  expect_same_bits(ensemble, expected);
}

// One plane under two names: each step reads what the one before it wrote.
TEST(Simulation, AnInputThatIsAlsoTheOutputIsReadAnewInEachStep) {
  kernel::KernelBuilder k("doubling");
  const auto x = k.scalar("x");
  const auto t = k.state("t", {});
  k.terminated("done");
  const auto later = k.add(t, k.real(1.0));
  k.output("y", k.add(x, x));
  k.commit("t", later);
  k.commit("done", k.ge(later, k.real(5.0)));
  auto engine = eagle::testing::make_engine(1);
  std::vector<double> values(41, 1.0), times(41, 0.0);
  std::vector<std::uint8_t> done(41, 0);
  RunScene scene;
  scene.message.set_max_steps(100);
  const std::uint32_t kernel = scene.kernel(eagle::testing::finish(k));
  const eagle::testing::Array both = scene.array(values);
  eagle::testing::fill(*scene.message.add_model(), kernel,
                       {{"x", both}, {"y", both}, {"t", scene.array(times)}, {"done", scene.array(done)}});
  auto simulation = engine->simulate(scene.message, scene.memory, nullptr);
  ASSERT_TRUE(simulation.ok()) << simulation.status().to_string();
  while ((*simulation)->advance() != Simulation::Next::done) {
  }
  EXPECT_EQ(values, std::vector<double>(41, 32.0));  // doubled five times
  EXPECT_EQ((*simulation)->result().report.steps, 5);
  EXPECT_EQ((*simulation)->result().report.finished, 41);
}

TEST(Simulation, MaxStepsIsAnExactCap) {
  auto engine = eagle::testing::make_engine(2);
  for (const std::int64_t cap : {0, 1, 37, 999}) {
    SCOPED_TRACE(cap);
    Ensemble ensemble(100);
    Ensemble expected = ensemble;
    expected.step_plainly(cap);
    const RunResult result = run(*engine, ensemble, cap);
    EXPECT_EQ(result.status, RunStatus::max_steps);
    EXPECT_EQ(result.report.steps, cap);
    EXPECT_EQ(result.report.finished, 0);
    expect_same_bits(ensemble, expected);
  }
}

TEST(Simulation, MaxStepsIsExactAcrossPasses) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(3000);
  for (double& end : ensemble.t_end) end = 1e9;
  Ensemble expected = ensemble;
  expected.step_plainly(3001);  // 9 million sample steps
  const RunResult result = run(*engine, ensemble, 3001);
  EXPECT_EQ(result.status, RunStatus::max_steps);
  EXPECT_EQ(result.report.steps, 3001);
  EXPECT_EQ(result.report.finished, 0);
  expect_same_bits(ensemble, expected);
}

TEST(Simulation, ARunInTwoHalvesGivesTheBitsOfOne) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble halves = first_of_a_million(500);
  Ensemble whole = halves;
  EXPECT_EQ(run(*engine, halves, 400).status, RunStatus::max_steps);
  EXPECT_EQ(run(*engine, halves, 2000).report.steps, 600);
  EXPECT_EQ(run(*engine, whole, 2000).report.steps, 1000);
  expect_same_bits(halves, whole);
}

TEST(Simulation, WithEverySampleFinishedDoesNothing) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(2000);
  run(*engine, ensemble, 2000);
  const Ensemble before = ensemble;
  const RunResult result = run(*engine, ensemble, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_EQ(result.report.launches, 0);
  EXPECT_EQ(result.report.finished, 0);
  expect_same_bits(ensemble, before);
}

TEST(Simulation, OfNoSamplesIsFinished) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble none(0);
  const RunResult result = run(*engine, none, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.samples, 0);
  EXPECT_EQ(result.report.steps, 0);
  EXPECT_EQ(result.report.launches, 0);
}

TEST(Simulation, SamplesFinishedBeforehandAreUntouchedAndNotCounted) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(3000);
  for (std::size_t i = 0; i < 1500; ++i) ensemble.done[i] = 1;  // whole tiles, and half of one
  const RunResult result = run(*engine, ensemble, 2000);
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.finished, 1500);
  EXPECT_EQ(ensemble.x[1499], 1.0);
  EXPECT_EQ(ensemble.t[1499], 0.0);
  EXPECT_NE(ensemble.x[1500], 1.0);
}

TEST(Simulation, ANaNNeverFinishes) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(10);
  ensemble.t[3] = std::numeric_limits<double>::quiet_NaN();
  const RunResult result = run(*engine, ensemble, 1500);
  EXPECT_EQ(result.status, RunStatus::max_steps);
  EXPECT_EQ(result.report.steps, 1500);
  EXPECT_EQ(result.report.finished, 9);
  EXPECT_EQ(ensemble.done[3], 0);
}

TEST(Simulation, CancelEndsItAtAWholeStep) {
  auto engine = eagle::testing::make_engine(1);
  Ensemble ensemble(2);
  for (double& end : ensemble.t_end) end = std::numeric_limits<double>::infinity();
  Ensemble expected = ensemble;
  const auto control = std::make_shared<run::Control>();
  // So many steps that one pass cannot be all of them.
  const auto simulation = start(*engine, ensemble, std::int64_t{1} << 60, control);
  ASSERT_TRUE(simulation);
  ASSERT_EQ(simulation->advance(), Simulation::Next::again);
  control->cancel = true;
  ASSERT_EQ(simulation->advance(), Simulation::Next::done);
  ASSERT_TRUE(simulation->ended());
  const RunResult& result = simulation->result();
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_EQ(result.report.launches, 1);
  EXPECT_EQ(result.report.finished, 0);
  EXPECT_GT(result.report.steps, 0);
  expected.step_plainly(result.report.steps);
  expect_same_bits(ensemble, expected);
  EXPECT_EQ(simulation->advance(), Simulation::Next::done) << "an ended run stays ended";
}

// ---- where a stopped run leaves its samples ----

// Counts its steps in n and ends at its limit; x takes some rounds of arithmetic a step.
kernel::Kernel counting(int rounds) {
  kernel::KernelBuilder k("counting");
  const auto n = k.state("n", {});
  auto x = k.state("x", {});
  const auto limit = k.scalar("limit");
  k.terminated("done");
  for (int i = 0; i < rounds; ++i) x = k.add(k.mul(x, k.real(0.5)), n);
  const auto next = k.add(n, k.real(1));
  k.commit("n", next);
  k.commit("x", x);
  k.commit("done", k.ge(next, limit));
  return eagle::testing::finish(k);
}

// Every unfinished sample has taken the steps that its range says, and finished ones theirs.
void expect_ranges(const std::vector<double>& n, const std::vector<double>& limit,
                   const std::vector<std::uint8_t>& done, const RunReport& report) {
  std::size_t i = 0;
  for (const StepRange& range : report.ranges) {
    EXPECT_LE(range.steps, report.steps);
    for (; i < static_cast<std::size_t>(range.end); ++i) {
      ASSERT_EQ(n[i], done[i] != 0 ? limit[i] : static_cast<double>(range.steps)) << "sample " << i;
    }
  }
  const bool all = std::count(done.begin(), done.end(), 0) == 0;
  ASSERT_EQ(i, all ? 0 : n.size());
}

// Stopped at any moment of passes of any length, and gone on with.
TEST(StoppedSimulation, SaysHowManyStepsEverySampleHasTaken) {
  constexpr std::uint64_t first_seed = 20'261'130;
  constexpr double cap = 1e9;
  for (std::uint64_t seed = first_seed; seed < first_seed + 24; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    auto engine = eagle::testing::make_engine(1 + static_cast<int>(random() % 3));
    const std::size_t size = 1 + random() % 20'000;
    std::vector<double> n(size), x(size, 1.0), limit(size, cap);
    std::vector<std::uint8_t> done(size);
    for (double& some : limit) {
      if (random() % 2 == 0) some = 1 + static_cast<double>(random() % 5000);
    }
    RunScene scene;
    scene.message.set_max_steps(std::int64_t{1} << 60);
    if (random() % 2 == 0) scene.message.set_steps_per_pass(std::int64_t{1} << 40);  // has to be left
    eagle::testing::fill(*scene.message.add_model(),
                         scene.kernel(counting(1 + static_cast<int>(random() % 200))),
                         {{"n", scene.array(n)},
                          {"x", scene.array(x)},
                          {"limit", scene.array(limit)},
                          {"done", scene.array(done)}});
    const auto run_to = [&](double step) {
      const auto control = std::make_shared<run::Control>();
      auto simulation = engine->simulate(scene.message, scene.memory, control);
      EXPECT_TRUE(simulation.ok()) << simulation.status().to_string();
      // The last sample to move, so that some tile of each pass has.
      std::jthread canceller([&](const std::stop_token& ended) {
        while (std::atomic_ref<double>(n[0]).load() < step && !ended.stop_requested())
          std::this_thread::yield();
        control->cancel = true;
      });
      while ((*simulation)->advance() != Simulation::Next::done) {
      }
      return (*simulation)->result();
    };
    limit[0] = cap;
    const RunResult first = run_to(1);
    EXPECT_EQ(first.status, RunStatus::cancelled);
    expect_ranges(n, limit, done, first.report);
    if (first.report.ranges.size() > 1) continue;  // the steps of a second run would be from several starts
    std::vector<double> before = n;
    const RunResult second = run_to(n[0] + 1);
    for (std::size_t i = 0; i < size; ++i) {
      if (before[i] < limit[i]) {
        limit[i] -= before[i];
        n[i] -= before[i];
      } else {
        n[i] = limit[i] = 0;
      }
    }
    expect_ranges(n, limit, done, second.report);
  }
}

// A pass that is short is finished, whoever wants the run to stop meanwhile.
TEST(StoppedSimulation, IsAtOneStepAfterShortPasses) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(5000);
  for (double& end : ensemble.t_end) end = std::numeric_limits<double>::infinity();
  const auto control = std::make_shared<run::Control>();
  const auto simulation = start(*engine, ensemble, 1'000'000, control);
  ASSERT_TRUE(simulation);
  while (simulation->result().report.launches < 3) ASSERT_EQ(simulation->advance(), Simulation::Next::again);
  control->cancel = true;
  ASSERT_EQ(simulation->advance(), Simulation::Next::done);
  const RunReport& report = simulation->result().report;
  EXPECT_EQ(report.ranges, (std::vector<StepRange>{{5000, report.steps}}));
}

// ---- pieces of passes ----

// End times all over the run, so that tiles are packed and dropped on the way.
Ensemble spread_ensemble(std::size_t n) {
  Ensemble ensemble = first_of_a_million(n);
  for (std::size_t i = 0; i < n; ++i)
    ensemble.t_end[i] = 0.05 * static_cast<double>(i * 7919 % n) / static_cast<double>(n);
  return ensemble;
}

std::unique_ptr<Engine> engine_of_pieces(int team, double piece_s) {
  Engine::Options options;
  options.piece_s = piece_s;
  return eagle::testing::make_engine(team, std::move(options));
}

TEST(PiecesOfARun, LeaveTheSameBitsAndCounts) {
  for (const std::size_t n : {100u, 2'001u}) {
    Ensemble expected = spread_ensemble(n);
    const std::int64_t last = expected.step_plainly(35);
    for (const int team : {1, 2, 3, 7}) {
      SCOPED_TRACE(::testing::Message() << n << " samples, team " << team);
      auto engine = engine_of_pieces(team, eagle::testing::least_pieces);
      Ensemble ensemble = spread_ensemble(n);
      const auto simulation = start(*engine, ensemble, 35);
      ASSERT_TRUE(simulation);
      std::int64_t pieces = 1;
      for (; simulation->advance() != Simulation::Next::done; ++pieces)
        EXPECT_EQ(simulation->result().status, RunStatus::finished) << "not ended yet";
      const RunReport& report = simulation->result().report;
      EXPECT_EQ(report.steps, last);
      EXPECT_EQ(report.finished, std::count(expected.done.begin(), expected.done.end(), 1));
      EXPECT_GE(pieces, 35 / least_window / team) << "a window of a tile a thread and piece";
      expect_same_bits(ensemble, expected);
    }
  }
}

// The pass in hand is brought to one step of all samples by the call that finds the wish to stop.
// Cancelled in the middle of a pass. Whether its samples are at one step then; their bits are those of the
// steps that each has taken.
bool cancelled_at_one_step(int team) {
  auto engine = engine_of_pieces(team, eagle::testing::least_pieces);
  Ensemble ensemble(5000);
  for (double& end : ensemble.t_end) end = std::numeric_limits<double>::infinity();
  const auto control = std::make_shared<run::Control>();
  RunScene scene = ensemble.scene(1'000'000);
  scene.message.set_steps_per_pass(20);
  const auto made = engine->simulate(scene.message, scene.memory, control);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  Simulation& simulation = **made;
  do {
    EXPECT_EQ(simulation.advance(), Simulation::Next::again);
  } while (!simulation.part_way() || simulation.result().report.steps < 5);
  control->cancel = true;
  EXPECT_EQ(simulation.advance(), Simulation::Next::done);
  EXPECT_FALSE(simulation.part_way());
  const RunReport& report = simulation.result().report;
  EXPECT_EQ(simulation.result().status, RunStatus::cancelled);
  std::int64_t begin = 0;
  for (const StepRange& range : report.ranges) {
    Ensemble expected(5000);
    expected.t_end = ensemble.t_end;
    expected.step_plainly(range.steps);
    for (std::int64_t i = begin; i < range.end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(ensemble.x[at]), std::bit_cast<std::uint64_t>(expected.x[at]));
    }
    begin = range.end;
  }
  EXPECT_EQ(begin, 5000);
  return report.ranges == std::vector<StepRange>{{5000, report.steps}};
}

// They are brought to one step where that is soon done, which a machine that is busy elsewhere may hide: then
// the run is tried again.
TEST(PiecesOfARun, AreFinishedTogetherWhenItIsCancelled) {
  for (const int team : {1, 2, 3, 7}) {
    SCOPED_TRACE(team);
    int tries = 1;
    while (!cancelled_at_one_step(team) && tries < 50) ++tries;
    EXPECT_LT(tries, 50);
  }
}

TEST(StoppedSimulation, HasNoRangesWhereAllHaveFinished) {
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(100);
  EXPECT_TRUE(run(*engine, ensemble, 2000).report.ranges.empty());
  Ensemble capped(100);
  EXPECT_EQ(run(*engine, capped, 7).report.ranges, (std::vector<StepRange>{{100, 7}}));
}

TEST(StoppedSimulation, BeforeItBeganCompilesNothingAndHasItsResult) {
  for (const bool by_deadline : {false, true}) {
    auto engine = eagle::testing::make_engine(1);
    Ensemble ensemble(8);
    const auto control = std::make_shared<run::Control>();
    control->cancel = !by_deadline;
    if (by_deadline) control->deadline = std::chrono::steady_clock::now();
    const auto simulation = start(*engine, ensemble, 2000, control);
    ASSERT_TRUE(simulation);
    EXPECT_TRUE(simulation->ended());
    ASSERT_EQ(simulation->advance(), Simulation::Next::done);
    const RunResult& result = simulation->result();
    EXPECT_EQ(result.status, by_deadline ? RunStatus::deadline : RunStatus::cancelled);
    EXPECT_EQ(result.report.samples, 8);
    EXPECT_EQ(result.report.steps, 0);
    EXPECT_EQ(result.report.ranges, (std::vector<StepRange>{{8, 0}}));
    EXPECT_EQ(engine->counters().compiler.misses, 0u);
    EXPECT_EQ(engine->counters().runs, 1u);
    std::fill(ensemble.done.begin(), ensemble.done.end(), 1);
    EXPECT_EQ(start(*engine, ensemble, 2000, control)->result().status, RunStatus::finished);
  }
}

TEST(Simulation, ADeadlineInThePastStartsNothing) {
  auto engine = eagle::testing::make_engine(1);
  Ensemble ensemble(8);
  const auto control = std::make_shared<run::Control>();
  control->deadline = std::chrono::steady_clock::now();
  const auto simulation = start(*engine, ensemble, 2000, control);
  ASSERT_TRUE(simulation);
  ASSERT_EQ(simulation->advance(), Simulation::Next::done);
  EXPECT_EQ(simulation->result().status, RunStatus::deadline);
  EXPECT_EQ(simulation->result().report.launches, 0);
  EXPECT_EQ(simulation->result().report.steps, 0);
  EXPECT_EQ(ensemble.t[0], 0.0);
}

TEST(Simulation, ReportsWhereAndHowItRan) {
  auto engine = eagle::testing::make_engine(3);
  Ensemble ensemble(100);
  const RunResult first = run(*engine, ensemble, 2000);
  EXPECT_EQ(first.report.host.pid, ::getpid());
  EXPECT_EQ(first.report.host.host_name, run::this_host().host_name);
  EXPECT_EQ(first.report.samples, 100);
  EXPECT_EQ(first.report.threads, 3);
  EXPECT_TRUE(first.report.compiled);
  EXPECT_EQ(first.report.kernels,
            std::vector<std::string>{kernel::content_hash(eagle::testing::oscillator())});
  EXPECT_GT(first.report.build_s, 0.0);
  EXPECT_GT(first.report.wall_s, 0.0);
  EXPECT_FALSE(run(*engine, ensemble, 2000).report.compiled);
  EXPECT_EQ(engine->counters().runs, 2u);
}

#if defined(__x86_64__)
TEST(Simulation, TheCallersFlushToZeroChangesNothing) {
  constexpr unsigned flush_to_zero_and_denormals_are_zero = 0x8040;
  auto engine = eagle::testing::make_engine(2);
  Ensemble ensemble(3000);
  for (double& x : ensemble.x) x = 3e-310;  // subnormal, and so is every product with it
  Ensemble expected = ensemble;
  expected.step_plainly(2000);
  const unsigned before = _mm_getcsr();
  const unsigned fast = before | flush_to_zero_and_denormals_are_zero;
  _mm_setcsr(fast);
  run(*engine, ensemble, 2000);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  constexpr unsigned control_bits = 0xFFC0;  // the lower ones are flags of the host's own arithmetic
  EXPECT_EQ(after & control_bits, fast & control_bits);
  expect_same_bits(ensemble, expected);
}
#endif

// ---- refusals ----

Reason refusal(const RunScene& scene, const std::string& part) {
  auto engine = eagle::testing::make_engine(1);
  const auto simulation = engine->simulate(scene.message, scene.memory, nullptr);
  EXPECT_FALSE(simulation.ok());
  EXPECT_NE(simulation.status().message().find(part), std::string::npos) << simulation.status().to_string();
  EXPECT_EQ(engine->counters().runs, 0u);
  return simulation.status().reason();
}

TEST(SimulationRefuses, AKernelWithoutAStopRule) {
  std::vector<double> x(8);
  RunScene scene;
  scene.message.set_max_steps(10);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::affine_in_place()),
                       {{"a", 1.0}, {"b", 1.0}, {"x", scene.array(x)}});
  EXPECT_EQ(refusal(scene, "'affine_in_place' has no stop rule"), Reason::bad_value);
}

TEST(SimulationRefuses, AnEmptyStep) {
  Ensemble ensemble(8);
  RunScene scene = ensemble.scene(10);
  scene.message.clear_model();
  EXPECT_EQ(refusal(scene, "a step without a kernel is empty"), Reason::malformed_graph);
}

TEST(SimulationRefuses, ANegativeCap) {
  Ensemble ensemble(8);
  EXPECT_EQ(refusal(ensemble.scene(-1), "max_steps must be at least 0, found -1"), Reason::bad_value);
}

TEST(SimulationRefuses, AKernelThatDoesNotExist) {
  Ensemble ensemble(8);
  RunScene scene = ensemble.scene(10);
  scene.message.mutable_model(0)->set_kernel(1);
  EXPECT_EQ(refusal(scene, "model[0]"), Reason::malformed_graph);
}

TEST(SimulationRefuses, MemoryThatIsSmallerThanDeclared) {
  Ensemble ensemble(8);
  RunScene scene = ensemble.scene(10);
  scene.memory[2].bytes -= 1;
  EXPECT_EQ(refusal(scene, "planes[2]"), Reason::malformed_graph);
  scene.memory.pop_back();
  EXPECT_EQ(refusal(scene, "declares 6 planes"), Reason::malformed_graph);
}

TEST(SimulationRefuses, MemoryOutOfReach) {
  Ensemble ensemble(8);
  RunScene scene = ensemble.scene(10);
  scene.memory[1].data = nullptr;
  EXPECT_EQ(refusal(scene, "argument 'v'"), Reason::private_array);
}

}  // namespace
}  // namespace eagle::step
