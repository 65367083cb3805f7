// Changing a built graph, and running it without waiting: update, rebind, enqueue, launch_async, cancel.
#include <poll.h>

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "eagle/client/counters.h"
#include "eagle/client/kernel_builder.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class Changes : public OnEveryHost {
protected:
  [[nodiscard]] BoundPlan line(const ArrayView& x, const ArrayView& y, double a = 1.0, double b = 0.0) const {
    return {affine_, {{"x", x}, {"y", y}, {"a", a}, {"b", b}}};
  }
  static void build(Graph& g) {
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
  }
  // A loop that goes on until `live` is 0, counting in x.
  [[nodiscard]] NodeKind endless(const Array<std::int64_t>& live, const Array<double>& x) const {
    return repeat_while({{"", line(x, x, 1.0, 1.0)}}, {{"live", live}, std::nullopt, false},
                        std::int64_t{1} << 62);
  }
  const std::shared_ptr<const Kernel> affine_ = affine();
};
EAGLE_ON_EVERY_HOST(Changes);

TEST_P(Changes, AnUpdateChangesNumbersAndNothingElse) {
  const auto x = full<double>(100, 2.0);
  const auto y = zeros<double>({100});
  Graph g(session());
  ASSERT_TRUE(g.add(line(x, y), "one").ok());
  expect_refused(g.update({{{"", {}, "a"}, 3.0}}), Reason::graph_state, {"update", "build()"});
  build(g);
  const Counters before = counters();
  ASSERT_TRUE(g.update({{{"", {}, "a"}, 3.0}, {{"one", {}, "b"}, std::int64_t{1}}}).ok());
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[99], 7.0);
  expect_refused(g.update({{{"", {}, "a"}, 0.0}, {{"", {}, "q"}, 0.0}}), Reason::unknown_name,
                 {"update", "'q'", "'one.a'"});
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[99], 7.0);
  EXPECT_EQ(counters().graph_builds, before.graph_builds);
  EXPECT_EQ(counters().updates, before.updates + 1);
}

TEST_P(Changes, ARebindKeepsNumbersAndIsRefusedWhole) {
  const auto x = full<double>(8, 1.0);
  const auto y = zeros<double>({8});
  const auto z = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add_group({{{{"left", line(x, y)}}}, {{{"right", line(x, z)}}}}).ok());
  build(g);
  ASSERT_TRUE(g.update({{{"", {}, "a"}, 5.0}}).ok());
  const auto other = zeros<double>({8});
  ASSERT_TRUE(g.rebind({{{"left", {}, "y"}, other}}).ok());
  expect_refused(g.rebind({{{"left", {}, "y"}, z}}), Reason::racing_siblings, {"rebind", "left", "right"});
  expect_refused(g.rebind({{{"left", {}, "x"}, zeros<double>({9})}}), Reason::sample_mismatch,
                 {"rebind", "'x'", "9"});
  expect_refused(g.rebind({{{"left", {}, "x"}, zeros<float>({8})}}), Reason::wrong_dtype, {"float32"});
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(other[0], 5.0);
  EXPECT_EQ(z[0], 5.0);
  EXPECT_EQ(must(g.host_picture()), must(g.show()));
}

TEST_P(Changes, ARebindOfWhatACallableHoldsNamesTheNode) {
  const auto x = full<double>(8, 1.0);
  const auto y = zeros<double>({8});
  const auto flag = full<std::int64_t>(1, 1);
  const auto nothing = [] { return Status(); };
  Graph g(session());
  ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 1.0}, {"b", 0.0}}}, "plan").ok());
  ASSERT_TRUE(g.add_node(opaque(nothing, {{{"seen", y}}, {}}), "look").ok());
  ASSERT_TRUE(g.add_node(skippable({{"inner", opaque(nothing, {{{"deep", y}}, {}})}},
                                   {{"flag", flag}, std::nullopt, false}),
                         "maybe")
                  .ok());
  ASSERT_TRUE(g.build().ok());
  for (const Address& address : {Address{"look", {}, "seen"}, Address{"", {}, "look.seen"},
                                 Address{"", {}, "seen"}, Address{"", 1, "seen"}}) {
    expect_refused(g.rebind({{address, x}}), Reason::unknown_name,
                   {"rebind", "seen'", "node 1 'look'", "callable", "another graph"});
  }
  expect_refused(g.rebind({{{"inner", {}, "deep"}, x}}), Reason::unknown_name, {"node 2 'inner'", "'deep'"});
  expect_refused(g.rebind({{{"maybe", {}, "flag"}, x}}), Reason::unknown_name, {"node 2 'maybe'", "'flag'"});
  expect_refused(g.rebind({{{"nobody", {}, "seen"}, x}}), Reason::unknown_name,
                 {"there is no plane", "'plan.x'"});
}

TEST_P(Changes, ACopyConvertsBetweenAnyStrides) {
  const auto m = zeros<double>({3, 4});
  for (std::int64_t i = 0; i < 12; ++i) m[i] = static_cast<double>(i) + 0.75;
  const auto out = zeros<std::int64_t>({4, 3});
  ArrayView transposed = m;
  transposed.shape = {4, 3};
  transposed.strides = {8, 32};
  Graph g(session());
  ASSERT_TRUE(g.add_node(copy(transposed, out), "turn").ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_THAT(out.span(), ::testing::ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_EQ(must(g.host_picture()), must(g.show()));
  expect_refused(g.add_node(copy(m, m)), Reason::graph_state, {"add_node"});
  Graph bad(session());
  expect_refused(bad.add_node(copy(m, m), "same"), Reason::plane_overlap, {"'same'", "share bytes"});
}

TEST_P(Changes, ScratchPlanesTakeTurnsAndBelongToOneGraph) {
  const auto x = full<double>(1000, 1.0);
  const auto y = zeros<double>({1000});
  Graph g(session());
  ArrayView from = x;
  for (const char* name : {"a", "b", "c"}) {
    const ArrayView to = must(g.scratch({1000}, DType::f64, name));
    ASSERT_TRUE(g.add(line(from, to, 2.0)).ok());
    from = to;
  }
  ASSERT_TRUE(g.add(line(from, y, 2.0)).ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[999], 16.0);
  const graph::ScratchLayout layout = g.scratch_layout();
  ASSERT_EQ(layout.uses.size(), 3U);
  // Where the chain is one function its values stay in registers; else planes take turns.
  if (layout.uses[0].in_memory) {
    EXPECT_EQ(layout.uses[0].offset, layout.uses[2].offset);
  } else {
    EXPECT_EQ(layout.bytes, 0U);
  }
  EXPECT_EQ(layout.uses[0].name, "a");
  Graph other(session());
  expect_refused(other.add(line(from, y)), Reason::scratch_plane, {"'c'", "another graph"});
  expect_refused(other.add_node(opaque([] { return Status(); },
                                       {{{"s", must(other.scratch({3}, DType::f64, "mine"))}}, {}}),
                                "look"),
                 Reason::scratch_plane, {"'look'", "'mine'"});
}

TEST_P(Changes, GroupsAreStepsOfConditionals) {
  const auto live = full<std::int64_t>(1, 1);
  const auto x = full<double>(8, 1.0);
  const auto y = zeros<double>({8});
  const auto z = zeros<double>({8});
  const Group both{{{{{"left", line(x, y, 2.0)}}}, {{{"right", line(x, z, 3.0)}}}}};
  Graph g(session());
  expect_refused(g.add_node(both), Reason::wrong_type, {"add_group"});
  ASSERT_TRUE(
      g.add_node(skippable({{"", both}, {"after", line(z, z, 1.0, 1.0)}}, {{"live", live}, {}, false})).ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y[0], 2.0);
  EXPECT_EQ(z[0], 4.0);
  Graph racing(session());
  const Group race{{{{{"left", line(x, y)}}}, {{{"right", line(x, y)}}}}};
  ASSERT_TRUE(racing.add_node(skippable({{"", race}}, {{"live", live}, {}, false})).ok());
  expect_refused(racing.build(), Reason::racing_siblings, {"left", "right", "body"});
}

// ---- without waiting

TEST_P(Changes, EnqueueAndSynchronizeAreALaunch) {
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add(line(x, x, 1.0, 1.0)).ok());
  build(g);
  ASSERT_TRUE(g.synchronize().ok()) << "nothing is in flight";
  ASSERT_TRUE(g.enqueue(4).ok());
  EXPECT_EQ(must(g.synchronize()).launches, 4);
  EXPECT_EQ(x[7], 4.0);
  ASSERT_TRUE(g.launch().ok());
  expect_refused(g.enqueue(-1), Reason::bad_value, {"enqueue", "-1"});
}

TEST_P(Changes, AnEnqueuedLaunchKeepsTheGraphBusyUntilItIsCollected) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  if (!remote()) GTEST_SKIP() << "in process enqueue is launch";
  const auto live = full<std::int64_t>(1, 1);
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add_node(endless(live, x)).ok());
  build(g);
  ASSERT_TRUE(g.enqueue().ok());
  expect_refused(g.enqueue(), Reason::busy, {"enqueue"});
  expect_refused(g.launch().status(), Reason::busy, {"launch"});
  expect_refused(g.update({{{"", {}, "a"}, 1.0}}), Reason::busy, {"update"});
  live[0] = 0;
  EXPECT_TRUE(g.synchronize().ok());
  EXPECT_TRUE(g.launch().ok());
}

TEST_P(Changes, HostNodesOfAnEnqueuedLaunchRunInSynchronize) {
  std::vector<std::thread::id> threads;
  bool broken = false;
  Graph g(session());
  ASSERT_TRUE(g.add_node(opaque(
                             [&]() -> Status {
                               threads.push_back(std::this_thread::get_id());
                               if (broken) throw std::runtime_error("the user's own");
                               return {};
                             },
                             {}))
                  .ok());
  build(g);
  ASSERT_TRUE(g.enqueue(2).ok());
  ASSERT_TRUE(g.synchronize().ok());
  EXPECT_THAT(threads, ::testing::ElementsAre(std::this_thread::get_id(), std::this_thread::get_id()));
  broken = true;
  const auto both = [&] {
    static_cast<void>(g.enqueue());
    static_cast<void>(g.synchronize());
  };
  EXPECT_THROW(both(), std::runtime_error);
  broken = false;
  EXPECT_TRUE(g.launch().ok());
}

TEST_P(Changes, AFutureIsWaitedForPolledAndContinued) {
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add(line(x, x, 1.0, 1.0)).ok());
  build(g);
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t told = 0;
  {
    const Future<LaunchReport> launched = g.launch_async(3);
    launched.then([](const std::function<void()>& run) { run(); },
                  [&](const StatusOr<LaunchReport>& report) {
                    const std::scoped_lock lock(mutex);
                    told = report.ok() ? report->launches : -1;
                    changed.notify_all();
                  });
    pollfd poll{launched.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&poll, 1, 60'000), 1);
    EXPECT_TRUE(launched.ready());
    EXPECT_EQ(must(launched.wait()).launches, 3);
    EXPECT_TRUE(launched.wait_until(std::chrono::steady_clock::now()).has_value());
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return told != 0; }));
  }
  EXPECT_EQ(told, 3);
  EXPECT_EQ(x[0], 3.0);
}

TEST_P(Changes, AFutureThatGoesStopsItsLaunch) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  const auto live = full<std::int64_t>(1, 1);
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add_node(endless(live, x)).ok());
  build(g);
  {
    const Future<LaunchReport> launched = g.launch_async();
    EXPECT_FALSE(launched.wait_until(std::chrono::steady_clock::now()).has_value());
    while (x[0] == 0.0) std::this_thread::yield();
    expect_refused(g.launch().status(), Reason::busy, {"launch"});
    launched.cancel();
    expect_refused(launched.wait().status(), Reason::cancelled, {});
  }
  ASSERT_TRUE(session().accept(x).ok());
  { const Future<LaunchReport> dropped = g.launch_async(); }
  ASSERT_TRUE(session().accept(x).ok());
  live[0] = 0;
  EXPECT_TRUE(g.launch().ok());
}

TEST_P(Changes, CallablesOfAwaitedLaunchesRunOneAtATimeInAnotherThread) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<bool> mine = false;
  const auto caller = std::this_thread::get_id();
  const auto note = [&] {
    most = std::max(most.load(), ++inside);
    mine = mine || std::this_thread::get_id() == caller;
    std::this_thread::yield();
    --inside;
    return Status();
  };
  Graph a(session());
  Graph b(session());
  for (Graph* g : {&a, &b}) {
    ASSERT_TRUE(g->add_node(opaque(note, {})).ok());
    build(*g);
  }
  const Future<LaunchReport> first = a.launch_async(50);
  const Future<LaunchReport> second = b.launch_async(50);
  EXPECT_TRUE(first.wait().ok());
  EXPECT_TRUE(second.wait().ok());
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(mine);
}

// The inner launch's callables cannot wait for the thread that the outer one's callable is on.
TEST_P(Changes, ACallableMayAwaitALaunchOfItsOwn) {
  const auto x = zeros<double>({1});
  std::array<std::int64_t, 3> calls{};
  Graph inmost(session()), inner(session()), outer(session());
  const auto waits_for = [](Graph& g) { return g.launch_async(2).wait().status(); };
  const auto node = [&](std::size_t level, std::function<Status()> then) {
    return opaque(
        [&calls, level, then = std::move(then)] {
          ++calls[level];
          return then();
        },
        {});
  };
  ASSERT_TRUE(inmost.add_node(node(0, [] { return Status(); })).ok());
  ASSERT_TRUE(inner.add_node(node(1, [&] { return waits_for(inmost); })).ok());
  ASSERT_TRUE(outer.add_node(node(2, [&] { return waits_for(inner); })).ok());
  for (Graph* g : {&inmost, &inner, &outer}) build(*g);
  const Status launched = waits_for(outer);
  EXPECT_TRUE(launched.ok()) << launched.to_string();
  EXPECT_EQ(calls, (std::array<std::int64_t, 3>{8, 4, 2}));
}

// Whoever comes first: the launch is whole or cancelled, and no other one is.
TEST_P(Changes, ACancelMayMeetTheEndOfWhatWasEnqueued) {
  const auto x = zeros<double>({8});
  const auto y = zeros<double>({8});
  Graph g(session()), other(session());
  ASSERT_TRUE(g.add(line(x, x, 1.0, 1.0)).ok());
  ASSERT_TRUE(other.add(line(y, y, 1.0, 1.0)).ok());
  build(g);
  build(other);
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(session().accept(x).ok());
    ASSERT_TRUE(g.enqueue(3).ok());
    std::jthread canceller([&] { g.cancel(); });
    const Status ended = g.synchronize().status();
    EXPECT_TRUE(ended.ok() || ended.reason() == Reason::cancelled) << ended.to_string();
    const Status others = other.launch().status();
    ASSERT_TRUE(others.ok()) << others.to_string();
  }
  EXPECT_EQ(y[0], 50.0);
}

TEST_P(Changes, CancelStopsALaunchOfAnotherThread) {
  if (GetParam().has("copied")) GTEST_SKIP() << "it looks at the arrays while they change";
  const auto live = full<std::int64_t>(1, 1);
  const auto x = zeros<double>({8});
  Graph g(session());
  ASSERT_TRUE(g.add_node(endless(live, x)).ok());
  build(g);
  g.cancel();
  std::jthread stopper([&] {
    while (x[0] == 0.0) std::this_thread::yield();
    g.cancel();
  });
  expect_refused(g.launch().status(), Reason::cancelled, {"launch"});
  stopper.join();
  if (!remote()) return;
  ASSERT_TRUE(session().accept(x).ok());
  ASSERT_TRUE(g.enqueue().ok());
  g.cancel();
  expect_refused(g.synchronize().status(), Reason::cancelled, {"synchronize"});
}

TEST_P(Changes, AGraphThatGoesEndsWhatItEnqueued) {
  if (!remote() && !on_gpu()) GTEST_SKIP() << "in process enqueue is launch";
  const auto live = full<std::int64_t>(1, 1);
  const auto x = zeros<double>({8});
  {
    Graph g(session());
    ASSERT_TRUE(g.add_node(endless(live, x)).ok());
    build(g);
    ASSERT_TRUE(g.enqueue().ok());
  }
  expect_works();  // behind it in the queue
}

TEST_P(Changes, DerivativeKernelsDoNotEnterThroughAnyDoor) {
  KernelBuilder k("affine_vjp");
  k.derivative_of("affine");
  const auto x = k.scalar("x");
  k.output("bar_x", x);
  const auto kernel = std::make_shared<const Kernel>(must(k.finish()));
  const auto in = full<double>(8, 1.0);
  const BoundPlan plan{kernel, {{"x", in}, {"bar_x", zeros<double>({8})}}};
  const auto flag = full<std::int64_t>(1, 1);
  Graph g(session());
  expect_refused(g.add(plan, "direct"), Reason::derivative_kernel,
                 {"'direct'", "'affine_vjp'", "eagle.diff"});
  expect_refused(g.add_group({{{{"", plan}}}, {{{"", plan}}}}), Reason::derivative_kernel, {"eagle.diff"});
  expect_refused(g.add_node(skippable({{"", plan}}, {{"flag", flag}, {}, false})), Reason::derivative_kernel,
                 {"eagle.diff"});
  EXPECT_TRUE(g.node_labels().empty());
}

}  // namespace
}  // namespace eagle::conformance
