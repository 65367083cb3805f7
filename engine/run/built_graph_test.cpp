#include "engine/run/built_graph.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>

#include "engine/kernel/interpret.h"
#include "engine/run/testing.h"

namespace eagle::run {
namespace {

using eagle::testing::Array;
using eagle::testing::GraphScene;

std::vector<double> ramp(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// y = a*x + b as one node.
GraphScene affine_scene(std::vector<double>& x, std::vector<double>& y, double a, double b) {
  GraphScene scene;
  const std::uint32_t kernel = scene.kernel(eagle::testing::affine());
  const Array in = scene.array(x);
  const Array out = scene.array(y);
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "line").mutable_kernel(), kernel,
                       {{"a", a}, {"b", b}, {"x", in}, {"y", out}});
  return scene;
}

TEST(BuiltGraph, AffineOfEightSamples) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<double> x = ramp(8);
  std::vector<double> y(8);
  const auto graph = eagle::testing::build(*engine, affine_scene(x, y, 2.0, 1.0));
  ASSERT_TRUE(graph);
  eagle::testing::launch(*graph);
  EXPECT_EQ(y, (std::vector<double>{1, 3, 5, 7, 9, 11, 13, 15}));  // docs/manual/kernels.md, acceptance
  EXPECT_EQ(graph->node_labels(), std::vector<std::string>{"line"});
  EXPECT_EQ(graph->schedule(), std::vector{graph::StageSchedule::work_share});
  EXPECT_EQ(graph->threads(), 2);
  EXPECT_TRUE(graph->compiled());
}

TEST(BuiltGraph, AnUpdateChangesTheNumbersOfParams) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<double> x = ramp(8);
  std::vector<double> y(8);
  const auto graph = eagle::testing::build(*engine, affine_scene(x, y, 2.0, 1.0));
  ASSERT_TRUE(graph);
  ASSERT_TRUE(graph->update({{{"", {}, "a"}, 10.0}, {{"line", {}, "b"}, std::int64_t{7}}}).ok());
  eagle::testing::launch(*graph);
  EXPECT_EQ(y[3], 37.0);
  const Status refused = graph->update({{{"", {}, "a"}, 0.0}, {{"", {}, "q"}, 0.0}});
  EXPECT_EQ(refused.reason(), Reason::unknown_name);
  eagle::testing::launch(*graph);
  EXPECT_EQ(y[3], 37.0) << "a refused update changes nothing";
}

TEST(BuiltGraph, ARebindKeepsCodeScheduleAndNumbers) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<double> x = ramp(8);
  std::vector<double> y(8);
  const auto graph = eagle::testing::build(*engine, affine_scene(x, y, 2.0, 1.0));
  ASSERT_TRUE(graph);
  ASSERT_TRUE(graph->update({{{"", {}, "a"}, 10.0}}).ok());
  std::vector<double> x2(8, 1.0);
  std::vector<double> y2(8);
  const GraphScene other = affine_scene(x2, y2, 0.0, 1.0);
  const auto rebound = engine->rebind(*graph, other.message, other.memory);
  ASSERT_TRUE(rebound.ok()) << rebound.status().to_string();
  eagle::testing::launch(**rebound);
  EXPECT_EQ(y2[0], 11.0);
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(engine->counters().graph_builds, 1U);
  EXPECT_EQ(engine->counters().rebinds, 1U);
}

TEST(BuiltGraph, AnotherGraphIsNoRebind) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<double> x = ramp(8);
  std::vector<double> y(8);
  const auto graph = eagle::testing::build(*engine, affine_scene(x, y, 2.0, 1.0));
  ASSERT_TRUE(graph);
  std::vector<double> longer = ramp(9);
  std::vector<double> out(9);
  const GraphScene other = affine_scene(longer, out, 2.0, 1.0);
  EXPECT_EQ(engine->rebind(*graph, other.message, other.memory).status().reason(), Reason::wrong_shape);
}

TEST(BuiltGraph, AKernelBuiltBeforeComesFromTheCache) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<double> x = ramp(8);
  std::vector<double> y(8);
  EXPECT_TRUE(eagle::testing::build(*engine, affine_scene(x, y, 2.0, 1.0))->compiled());
  EXPECT_FALSE(eagle::testing::build(*engine, affine_scene(x, y, 3.0, 1.0))->compiled());
}

TEST(BuiltGraph, TheBitsAreTheInterpretersForAnyTeamAndSize) {
  const kernel::Kernel kernel = eagle::testing::affine();
  for (const int team : {1, 2, 3, 7}) {
    auto engine = eagle::testing::make_engine(team);
    for (const std::size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 1023, 1025, 4096, 4097, 100'003}) {
      SCOPED_TRACE(::testing::Message() << "team " << team << ", " << n << " samples");
      std::vector<double> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = 1.0 / (static_cast<double>(i) + 3.0);
      std::vector<double> y(n, -1.0);
      const auto graph = eagle::testing::build(*engine, affine_scene(x, y, 1.0 / 3.0, 0.1));
      ASSERT_TRUE(graph);
      eagle::testing::launch(*graph);

      double a = 1.0 / 3.0;
      double b = 0.1;
      std::vector<double> expected(n, -1.0);
      const auto bytes = [](double* values) { return reinterpret_cast<std::byte*>(values); };
      const kernel::InterpreterPlane planes[] = {
          {bytes(&a), 0}, {bytes(&b), 0}, {bytes(x.data()), 0}, {bytes(expected.data()), 0}};
      kernel::interpret_launch(kernel, planes, static_cast<std::int64_t>(n), 1);
      EXPECT_TRUE(same_bits(y, expected));
    }
  }
}

TEST(BuiltGraph, ALaunchOfManyReplaysRunsAllOfThem) {
  auto engine = eagle::testing::make_engine(2);
  GraphScene scene;
  std::vector<std::int64_t> n(5000, 0);
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(),
                       scene.kernel(eagle::testing::counter()),
                       {{"step", std::int64_t{1}}, {"n", scene.array(n)}});
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  eagle::testing::launch(*graph, 1000);
  EXPECT_EQ(n, std::vector<std::int64_t>(5000, 1000));
  eagle::testing::launch(*graph, 0);
  EXPECT_EQ(n, std::vector<std::int64_t>(5000, 1000));
  EXPECT_EQ(engine->counters().launches, 1000u);
}

// ---- host nodes ----

// counter, host node 7, counter over one array.
struct HostScene {
  explicit HostScene(std::vector<std::int64_t>& n) {
    const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
    const Array array = scene.array(n);
    const auto count = [&](const char* name, std::int64_t step) {
      eagle::testing::fill(*eagle::testing::add_node(scene.message, name).mutable_kernel(), kernel,
                           {{"step", step}, {"n", array}});
    };
    count("before", 1);
    v1::HostNode& host = *eagle::testing::add_node(scene.message, "mine").mutable_host();
    host.set_call(7);
    host.set_tier(v1::HOST_TIER_CAPTURED);
    v1::NamedView& view = *host.add_reads();
    view.set_name("n");
    eagle::testing::set_view(*view.mutable_view(), array);
    count("after", 100);
  }
  GraphScene scene;
};

TEST(Replay, StopsAtAHostNodeAndGoesOn) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(3, 0);
  const auto graph = eagle::testing::build(*engine, HostScene(n).scene);
  ASSERT_TRUE(graph);
  Replay replay(*graph, 2, nullptr);
  for (const std::int64_t seen : {1, 102}) {
    const StatusOr<Replay::Next> next = eagle::testing::advance(replay);
    ASSERT_TRUE(next.ok()) << next.status().to_string();
    ASSERT_EQ(*next, Replay::Next::host_call);
    EXPECT_EQ(replay.call(), 7u);
    EXPECT_EQ(n, std::vector<std::int64_t>(3, seen));
  }
  EXPECT_EQ(replay.launches(), 1);
  const StatusOr<Replay::Next> last = eagle::testing::advance(replay);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(*last, Replay::Next::done);
  EXPECT_EQ(replay.launches(), 2);
  EXPECT_EQ(n, std::vector<std::int64_t>(3, 202));
}

TEST(Replay, GoesOnInAnotherThread) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<std::int64_t> n(10'000, 0);
  const auto graph = eagle::testing::build(*engine, HostScene(n).scene);
  ASSERT_TRUE(graph);
  Replay replay(*graph, 1, nullptr);
  ASSERT_TRUE(eagle::testing::advance(replay).ok());
  std::thread([&] { EXPECT_TRUE(eagle::testing::advance(replay).ok()); }).join();
  EXPECT_EQ(replay.launches(), 1);
  EXPECT_EQ(n, std::vector<std::int64_t>(10'000, 101));
}

TEST(Replay, GivenUpAtAHostNodeLeavesTheGraphLaunchable) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(1, 0);
  const auto graph = eagle::testing::build(*engine, HostScene(n).scene);
  ASSERT_TRUE(graph);
  {
    Replay replay(*graph, 3, nullptr);
    ASSERT_TRUE(eagle::testing::advance(replay).ok());
  }
  EXPECT_EQ(n[0], 1);
  Replay again(*graph, 1, nullptr);
  ASSERT_TRUE(eagle::testing::advance(again).ok());
  ASSERT_TRUE(eagle::testing::advance(again).ok());
  EXPECT_EQ(n[0], 102);
  EXPECT_EQ(engine->counters().launches, 1u);
}

// ---- conditionals ----

void count_in(v1::Stage& stage, std::uint32_t kernel, const Array& array, std::int64_t step) {
  eagle::testing::fill(*stage.mutable_node()->mutable_kernel(), kernel, {{"step", step}, {"n", array}});
}

TEST(Skippable, RunsWhereItsFlagIsSet) {
  auto engine = eagle::testing::make_engine(1);
  GraphScene scene;
  std::vector<std::uint8_t> flag(1, 1);
  std::vector<std::int64_t> ran(1, 0);
  const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
  v1::Skippable& skippable = *eagle::testing::add_node(scene.message, "maybe").mutable_skippable();
  eagle::testing::set_cell(*skippable.mutable_guard()->mutable_count(), "flag", scene.array(flag), 0);
  count_in(*skippable.add_body(), kernel, scene.array(ran), 1);
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  std::vector<std::int64_t> seen;
  for (const std::uint8_t set : {1, 0, 1}) {
    flag[0] = set;
    eagle::testing::launch(*graph);
    seen.push_back(ran[0]);
  }
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 1, 2}));  // docs/manual/graph_model.md
}

TEST(Skippable, SeesWhatEarlierNodesWrote) {
  auto engine = eagle::testing::make_engine(1);
  GraphScene scene;
  std::vector<std::int64_t> count(4, 0);
  std::vector<std::int64_t> ran(1, 0);
  const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
  const Array counts = scene.array(count);
  count_in(*scene.message.add_stages(), kernel, counts, 1);
  v1::Skippable& skippable = *eagle::testing::add_node(scene.message, "maybe").mutable_skippable();
  eagle::testing::set_cell(*skippable.mutable_guard()->mutable_count(), "count", counts, 3);
  eagle::testing::set_cell(*skippable.mutable_guard()->mutable_baseline(), "base", counts, 0);
  skippable.mutable_guard()->set_negated(true);  // runs while the two are equal
  count_in(*skippable.add_body(), kernel, scene.array(ran), 1);
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  eagle::testing::launch(*graph);
  EXPECT_EQ(ran[0], 1);
  count[3] = 5;
  eagle::testing::launch(*graph);
  EXPECT_EQ(ran[0], 1);
}

// live counts down by one in each of at most 64 bodies.
struct LoopScene {
  explicit LoopScene(std::vector<std::int64_t>& live) {
    const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
    const Array array = scene.array(live);
    v1::RepeatWhile& loop = *eagle::testing::add_node(scene.message, "loop").mutable_repeat_while();
    loop.set_max_iterations(64);
    eagle::testing::set_cell(*loop.mutable_guard()->mutable_count(), "live", array, 0);
    count_in(*loop.add_body(), kernel, array, -1);
  }
  GraphScene scene;
};

TEST(RepeatWhile, StopsWhenItsGuardNoLongerHolds) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> live(1, 5);
  const auto graph = eagle::testing::build(*engine, LoopScene(live).scene);
  ASSERT_TRUE(graph);
  EXPECT_EQ(eagle::testing::launch(*graph), std::vector<std::int64_t>{5});
  EXPECT_EQ(live[0], 0);
  EXPECT_EQ(eagle::testing::launch(*graph), std::vector<std::int64_t>{0});  // checked first
}

TEST(RepeatWhile, StopsAtItsCap) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> live(1, 1000);
  const auto graph = eagle::testing::build(*engine, LoopScene(live).scene);
  ASSERT_TRUE(graph);
  EXPECT_EQ(eagle::testing::launch(*graph, 3), std::vector<std::int64_t>{64});
  EXPECT_EQ(live[0], 808);  // 1000 - 3*64
}

TEST(RepeatWhile, NestsAndCountsTheInnerLoopAfresh) {
  auto engine = eagle::testing::make_engine(1);
  GraphScene scene;
  std::vector<std::int64_t> outer(1, 3);
  std::vector<std::int64_t> inner(1, 0);
  std::vector<std::int64_t> total(1, 0);
  const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
  const Array outers = scene.array(outer);
  const Array inners = scene.array(inner);
  v1::RepeatWhile& loop = *eagle::testing::add_node(scene.message, "outer").mutable_repeat_while();
  loop.set_max_iterations(10);
  eagle::testing::set_cell(*loop.mutable_guard()->mutable_count(), "outer", outers, 0);
  count_in(*loop.add_body(), kernel, outers, -1);
  count_in(*loop.add_body(), kernel, inners, 4);
  v1::RepeatWhile& nested = *loop.add_body()->mutable_node()->mutable_repeat_while();
  nested.set_max_iterations(10);
  eagle::testing::set_cell(*nested.mutable_guard()->mutable_count(), "inner", inners, 0);
  count_in(*nested.add_body(), kernel, inners, -1);
  count_in(*nested.add_body(), kernel, scene.array(total), 1);
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  EXPECT_EQ(eagle::testing::launch(*graph), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(total[0], 12);
}

// ---- groups ----

// Three branches of five in-place nodes, each over its own array of `n` samples.
struct GroupScene {
  GroupScene(std::vector<std::vector<double>>& arrays) {
    const std::uint32_t kernel = scene.kernel(eagle::testing::affine_in_place());
    v1::Group& group = *scene.message.add_stages()->mutable_group();
    for (std::vector<double>& values : arrays) {
      const Array array = scene.array(values);
      v1::Branch& branch = *group.add_branches();
      for (int i = 0; i < 5; ++i) {
        eagle::testing::fill(*branch.add_nodes()->mutable_kernel(), kernel,
                             {{"a", 1.0 + 0.1 * i}, {"b", 0.3}, {"x", array}});
      }
    }
  }
  GraphScene scene;
};

TEST(Group, BothSchedulesGiveTheSameBits) {
  const std::vector<std::vector<double>> start(3, ramp(1000));
  std::vector<std::vector<double>> serial = start;
  auto one = eagle::testing::make_engine(1);
  const auto serial_graph = eagle::testing::build(*one, GroupScene(serial).scene);
  ASSERT_TRUE(serial_graph);
  EXPECT_EQ(serial_graph->schedule(), std::vector{graph::StageSchedule::work_share});
  eagle::testing::launch(*serial_graph, 10);
  EXPECT_NE(serial, start);
  for (const int team : {2, 3, 7}) {
    SCOPED_TRACE(team);
    std::vector<std::vector<double>> shared = start;
    auto engine = eagle::testing::make_engine(team);
    const auto graph = eagle::testing::build(*engine, GroupScene(shared).scene);
    ASSERT_TRUE(graph);
    EXPECT_EQ(graph->schedule(), std::vector{graph::StageSchedule::branch_tasks});
    eagle::testing::launch(*graph, 10);
    EXPECT_EQ(shared, serial);
  }
}

TEST(Group, OfManySamplesSharesItsWork) {
  const std::vector<std::vector<double>> start(3, ramp(4097));
  std::vector<std::vector<double>> values = start;
  std::vector<std::vector<double>> serial = start;
  auto engine = eagle::testing::make_engine(3);
  auto one = eagle::testing::make_engine(1);
  const auto graph = eagle::testing::build(*engine, GroupScene(values).scene);
  const auto serial_graph = eagle::testing::build(*one, GroupScene(serial).scene);
  ASSERT_TRUE(graph && serial_graph);
  EXPECT_EQ(graph->schedule(), std::vector{graph::StageSchedule::work_share});
  eagle::testing::launch(*graph);
  eagle::testing::launch(*serial_graph);
  EXPECT_EQ(values, serial);
}

// ---- threads ----

TEST(Team, InsideTheCallersParallelRegionWorkRunsInPlace) {
  auto engine = eagle::testing::make_engine(4);
  constexpr int callers = 2;
  std::vector<std::vector<double>> x(callers, ramp(20'000));
  std::vector<std::vector<double>> y(callers, std::vector<double>(20'000));
  std::vector<std::unique_ptr<BuiltGraph>> graphs;
  for (std::size_t i = 0; i < callers; ++i) {
    graphs.push_back(eagle::testing::build(*engine, affine_scene(x[i], y[i], 2.0, 1.0)));
    ASSERT_TRUE(graphs.back());
  }
#pragma omp parallel num_threads(callers)
  {
#pragma omp for schedule(static, 1)
    for (std::size_t i = 0; i < callers; ++i) eagle::testing::launch(*graphs[i], 3);
  }
  for (const std::vector<double>& result : y) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(result[i], 2.0 * static_cast<double>(i) + 1.0);
    }
  }
}

TEST(Team, TwoGraphsRunFromTwoThreadsAtTheSameTime) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<std::int64_t> a(30'000, 0);
  std::vector<std::int64_t> b(30'000, 0);
  const auto run = [&](std::vector<std::int64_t>& n, std::int64_t step) {
    GraphScene scene;
    eagle::testing::fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(),
                         scene.kernel(eagle::testing::counter()), {{"step", step}, {"n", scene.array(n)}});
    const auto graph = eagle::testing::build(*engine, scene);
    ASSERT_TRUE(graph);
    eagle::testing::launch(*graph, 200);
  };
  std::thread other(run, std::ref(a), 1);
  run(b, 2);
  other.join();
  EXPECT_EQ(a, std::vector<std::int64_t>(30'000, 200));
  EXPECT_EQ(b, std::vector<std::int64_t>(30'000, 400));
}

// ---- turns and stopping ----

// live <- live + 1 while live, for about ever.
std::unique_ptr<BuiltGraph> build_endless(Engine& engine, std::vector<std::int64_t>& live) {
  GraphScene scene;
  const Array array = scene.array(live);
  v1::RepeatWhile& loop = *eagle::testing::add_node(scene.message, "for ever").mutable_repeat_while();
  loop.set_max_iterations(std::numeric_limits<std::int64_t>::max());
  eagle::testing::set_cell(*loop.mutable_guard()->mutable_count(), "live", array, 0);
  count_in(*loop.add_body(), scene.kernel(eagle::testing::counter()), array, 1);
  return eagle::testing::build(engine, scene);
}

TEST(Replay, GivesWayInTheMiddleOfALongLoopAndGoesOn) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> live(1, 1);
  const auto graph = build_endless(*engine, live);
  ASSERT_TRUE(graph);
  Replay replay(*graph, 1, nullptr);
  std::int64_t before = live[0];
  for (int turn = 0; turn < 3; ++turn) {
    const StatusOr<Replay::Next> next = replay.advance();
    ASSERT_TRUE(next.ok()) << next.status().to_string();
    ASSERT_EQ(*next, Replay::Next::again);
    EXPECT_GT(live[0], before);
    // Nothing is lost or done twice in between; a body is counted before it runs.
    EXPECT_GE(replay.iterations()[0], live[0] - 1);
    EXPECT_LE(replay.iterations()[0], live[0]);
    before = live[0];
  }
  EXPECT_EQ(replay.launches(), 0);
}

TEST(Replay, GivesWayBetweenManyShortReplays) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(1, 0);
  GraphScene scene;
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(),
                       scene.kernel(eagle::testing::counter()),
                       {{"step", std::int64_t{1}}, {"n", scene.array(n)}});
  const auto graph = eagle::testing::build(*engine, scene);
  ASSERT_TRUE(graph);
  Replay replay(*graph, std::int64_t{1} << 62, nullptr);
  const StatusOr<Replay::Next> next = replay.advance();
  ASSERT_TRUE(next.ok()) << next.status().to_string();
  EXPECT_EQ(*next, Replay::Next::again);
  EXPECT_GT(replay.launches(), 0);
  EXPECT_EQ(n[0], replay.launches());
}

// x <- x + 1 over so many samples.
std::unique_ptr<BuiltGraph> build_counting(Engine& engine, std::vector<std::int64_t>& n) {
  GraphScene scene;
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(),
                       scene.kernel(eagle::testing::counter()),
                       {{"step", std::int64_t{1}}, {"n", scene.array(n)}});
  return eagle::testing::build(engine, scene);
}

TEST(Replay, ALaunchThatIsCutIntoBatchesRunsEachSampleOnce) {
  for (const int threads : {1, 2, 3}) {
    auto engine = eagle::testing::make_engine(threads);
    for (const std::size_t samples : {1u, 63u, 4096u, 4097u, 100'001u, 1'000'003u}) {
      std::vector<std::int64_t> n(samples, 0);
      const auto graph = build_counting(*engine, n);
      ASSERT_TRUE(graph);
      Replay replay(*graph, 7, nullptr);
      StatusOr<Replay::Next> next = replay.advance();
      while (next.ok() && *next == Replay::Next::again) next = replay.advance();
      ASSERT_TRUE(next.ok()) << next.status().to_string();
      EXPECT_EQ(*next, Replay::Next::done);
      EXPECT_FALSE(replay.part_way());
      EXPECT_EQ(std::count(n.begin(), n.end(), 7), static_cast<std::ptrdiff_t>(samples))
          << threads << " threads, " << samples << " samples";
    }
  }
}

TEST(Control, ALaunchThatIsStoppedWithinAKernelSaysThatItWas) {
  auto engine = eagle::testing::make_engine(2);
  std::vector<std::int64_t> n(2'000'000, 0);
  const auto graph = build_counting(*engine, n);
  ASSERT_TRUE(graph);
  const auto control = std::make_shared<Control>();
  Replay replay(*graph, std::int64_t{1} << 62, control);
  StatusOr<Replay::Next> next = replay.advance();  // ends when its turn is over, wherever that is
  ASSERT_TRUE(next.ok()) << next.status().to_string();
  control->cancel = true;
  next = replay.advance();
  ASSERT_EQ(next.status().reason(), Reason::cancelled);
  const auto whole = std::count(n.begin(), n.end(), replay.launches());
  const auto begun = std::count(n.begin(), n.end(), replay.launches() + 1);
  EXPECT_EQ(whole + begun, static_cast<std::ptrdiff_t>(n.size()));
  EXPECT_EQ(replay.part_way(), begun > 0);
}

TEST(Control, CancelStopsBetweenReplaysAndSaysHowFarItCame) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(1, 0);
  const auto graph = eagle::testing::build(*engine, HostScene(n).scene);
  ASSERT_TRUE(graph);
  const auto control = std::make_shared<Control>();
  Replay replay(*graph, 5, control);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(eagle::testing::advance(replay).ok());  // in the third replay's host node
  control->cancel = true;
  const StatusOr<Replay::Next> next = eagle::testing::advance(replay);
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().reason(), Reason::cancelled);
  EXPECT_NE(next.status().message().find("2 of 5 replays"), std::string::npos) << next.status().message();
  EXPECT_EQ(replay.launches(), 2);
  EXPECT_EQ(n[0], 203);  // the node after the third host call did not run
}

TEST(Control, ALaunchWhoseDeadlinePassedNeverStarts) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> n(1, 0);
  const auto graph = eagle::testing::build(*engine, HostScene(n).scene);
  ASSERT_TRUE(graph);
  const auto control = std::make_shared<Control>();
  control->deadline = std::chrono::steady_clock::now();
  Replay replay(*graph, 5, control);
  const StatusOr<Replay::Next> next = eagle::testing::advance(replay);
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().reason(), Reason::deadline);
  EXPECT_EQ(n[0], 0);
}

TEST(Control, CancelReachesALaunchThatAnotherThreadRuns) {
  auto engine = eagle::testing::make_engine(1);
  std::vector<std::int64_t> live(1, 1);
  const auto graph = build_endless(*engine, live);
  ASSERT_TRUE(graph);
  const auto control = std::make_shared<Control>();
  Replay replay(*graph, 1, control);
  std::thread canceller([&] { control->cancel = true; });
  const StatusOr<Replay::Next> next = eagle::testing::advance(replay);
  canceller.join();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().reason(), Reason::cancelled);
}

}  // namespace
}  // namespace eagle::run
