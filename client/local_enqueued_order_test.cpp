// What an enqueued launch is waited for by, what stops it, and what may go meanwhile, on the GPU of
// tests/fake_cuda, whose work begins when somebody waits or asks for it. Each test has a process of its own
// (ctest).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/local_enqueued.h"
#include "client/local_enqueued_testing.h"
#include "eagle/client/graph.h"
#include "eagle/client/kept_run.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "engine/run/cuda/pretend.h"

namespace eagle {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

using run::cuda::testing::pretend;
using testing::finished;
using testing::for_ever;
using testing::gpu;
using testing::line;
using testing::spin;

// x += 1 until x >= 1000
const std::shared_ptr<const Kernel>& climbing() {
  static const auto kernel = [] {
    KernelBuilder k("climbing");
    const auto x = k.state("x", {});
    k.terminated("done");
    const auto next = k.add(x, k.real(1));
    k.commit("x", next);
    k.commit("done", k.ge(next, k.real(1000)));
    return finished(k);
  }();
  return kernel;
}

// A node that says when the GPU has come to it, and holds it up there; for one replay.
class Gate {
public:
  Opaque node(const Array<double>& x) {
    auto work = std::make_shared<GpuWork>();
    work->enqueue = [this](std::uint64_t stream) {
      void* const driver = ::dlopen(std::getenv("EAGLE_CUDA_DRIVER"), RTLD_NOW);
      using Launch = int (*)(std::uint64_t, void (*)(void*), void*);
      const auto launch = reinterpret_cast<Launch>(::dlsym(driver, "cuLaunchHostFunc"));
      const bool well = launch != nullptr && launch(stream, &Gate::pass, this) == 0;
      return well ? Status() : Status(Reason::system, "cuLaunchHostFunc");
    };
    Opaque made{[] { return Status(); }, {{"x", x}}, {{"y", x}}, HostTier::recorded};
    made.on_gpu = std::move(work);
    return made;
  }
  void wait_for_the_gpu() { reached_.get_future().wait(); }
  void open() { opened_.set_value(); }

private:
  static void pass(void* self) {
    auto& gate = *static_cast<Gate*>(self);
    gate.reached_.set_value();
    gate.opened_.get_future().wait();
  }
  std::promise<void> reached_, opened_;
};

// What is there, by an address that was asked for before: no call of the session looks.
class Watched {
public:
  Watched(const Session& session, const Array<double>& x) {
    const auto there = session.on_device(x.view());
    EXPECT_TRUE(there.ok()) << there.status().to_string();
    if (there.ok()) address_ = *there;
  }
  [[nodiscard]] double now() const { return reinterpret_cast<const double*>(address_.pointer)[3]; }

private:
  DeviceAddress address_;
};

class LocalEnqueuedOrder : public ::testing::Test {
protected:
  Session& session() {
    if (!session_) {
      auto opened = local({.threads = 1});
      EXPECT_TRUE(opened.ok()) << opened.status().to_string();
      session_.emplace(*std::move(opened));
    }
    return *session_;
  }
  Array<double> array(double value = 0.0) {
    auto made = session().full<double>({4}, value, gpu);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return *std::move(made);
  }
  double value_of(const Array<double>& x) {
    std::array<double, 4> values{};
    const Status fetched = session().fetch_packed(x.view(), std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(fetched.ok()) << fetched.to_string();
    return values[3];
  }
  std::unique_ptr<Graph> graph(const std::vector<NodeKind>& nodes) {
    auto made = std::make_unique<Graph>(session());
    for (const NodeKind& node : nodes) {
      const Status added = made->add_node(node);
      EXPECT_TRUE(added.ok()) << added.to_string();
    }
    const Status built = made->build();
    EXPECT_TRUE(built.ok()) << built.to_string();
    return made;
  }
  static void enqueue(Graph& graph, std::int64_t n = 1) {
    const Status enqueued = graph.enqueue(n);
    EXPECT_TRUE(enqueued.ok()) << enqueued.to_string();
  }
  static std::int64_t synchronize(Graph& graph) {
    const auto report = graph.synchronize();
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? report->launches : -1;
  }

  std::optional<Session> session_;
};

TEST_F(LocalEnqueuedOrder, EnqueueReturnsBeforeTheGpuHasWorked) {
  const auto x = array();
  const Watched there(session(), x);
  const auto g = graph({line(x, x)});
  enqueue(*g, 300);
  EXPECT_EQ(there.now(), 0.0);
  EXPECT_EQ(synchronize(*g), 300);
  EXPECT_EQ(there.now(), 300.0);
}

TEST_F(LocalEnqueuedOrder, WhatIsHeldUpHoldsUpNothingElse) {
  Gate gate;
  const auto x = array(), y = array();
  const auto g = graph({gate.node(x), line(x, x)});
  const auto other = graph({line(y, y)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_EQ(synchronize(*g), 1); });
  gate.wait_for_the_gpu();
  enqueue(*other, 3);
  EXPECT_EQ(synchronize(*other), 3);
  EXPECT_EQ(value_of(y), 3.0);
  gate.open();
}

TEST_F(LocalEnqueuedOrder, ReadersOfOneArrayWaitForNobody) {
  const auto x = array(5.0), y = array(), z = array();
  const Watched y_there(session(), y), z_there(session(), z);
  const auto one = graph({line(x, y)}), other = graph({line(x, z)});
  enqueue(*one);
  enqueue(*other);
  EXPECT_EQ(value_of(x), 5.0);
  EXPECT_EQ(z_there.now(), 0.0);
  EXPECT_EQ(synchronize(*other), 1);
  EXPECT_EQ(z_there.now(), 6.0);
  EXPECT_EQ(y_there.now(), 0.0);
  EXPECT_EQ(synchronize(*one), 1);
}

TEST_F(LocalEnqueuedOrder, AChainRunsInTheOrderOfItsCalls) {
  const auto x = array(), y = array(), z = array();
  const auto first = graph({line(x, y)}), second = graph({line(y, z, 10.0, 0.0)}),
             third = graph({line(z, x)});
  for (int round = 0; round < 5; ++round) {
    enqueue(*first);
    enqueue(*second);
    ASSERT_TRUE(third->launch().ok());
    EXPECT_EQ(synchronize(*second), 1);
    EXPECT_EQ(synchronize(*first), 1);
  }
  EXPECT_EQ(value_of(x), 122'221.0);  // from 0, five times 10 (x + 1) + 1
}

TEST_F(LocalEnqueuedOrder, ItKeepsTheGraphBusyUntilItIsCollected) {
  const auto x = array();
  const auto g = graph({line(x, x)});
  enqueue(*g);
  EXPECT_EQ(g->enqueue().reason(), Reason::busy);
  EXPECT_EQ(g->launch().status().reason(), Reason::busy);
  EXPECT_EQ(g->update({{{"", {}, "b"}, 2.0}}).reason(), Reason::busy);
  EXPECT_EQ(synchronize(*g), 1);
  EXPECT_TRUE(g->launch().ok());
}

// ---- what touches the same arrays

struct Touch {
  const char* name;
  std::function<Status(const Session&, const Array<double>& x)> call;
  double after;  // what x is then
};

Status launch_over(const Session& session, const Array<double>& x, bool enqueued) {
  EAGLE_ASSIGN_OR_RETURN(const auto y, session.zeros<double>({4}, gpu));
  Graph g(session);
  EAGLE_RETURN_IF_ERROR(g.add(line(x, y)));
  EAGLE_RETURN_IF_ERROR(g.build());
  if (enqueued) EAGLE_RETURN_IF_ERROR(g.enqueue());
  EAGLE_RETURN_IF_ERROR(enqueued ? g.synchronize().status() : g.launch().status());
  EAGLE_RETURN_IF_ERROR(session.fetch(y));
  EXPECT_EQ(y[3], 41.0);
  return {};
}

StatusOr<BoundPlan> climb(const Session& session, const Array<double>& x) {
  EAGLE_ASSIGN_OR_RETURN(const auto done, session.zeros<bool>({4}, gpu));
  return BoundPlan{climbing(), {{"x", x}, {"done", done}}};
}

Status run_over(const Session& session, const Array<double>& x) {
  EAGLE_ASSIGN_OR_RETURN(const BoundPlan plan, climb(session, x));
  return session.simulate(plan, {.max_steps = 3}).status();
}

Status submit_over(const Session& session, const Array<double>& x) {
  EAGLE_ASSIGN_OR_RETURN(const BoundPlan plan, climb(session, x));
  const std::vector<ModelStep> steps{plan};
  EAGLE_ASSIGN_OR_RETURN(const KeptRun run, submit(session, steps, {.max_steps = 3}));
  return run.wait().status();
}

Status fetch_of(const Session& session, const Array<double>& x) {
  EAGLE_RETURN_IF_ERROR(session.fetch(x));
  EXPECT_EQ(x[3], 40.0);
  return {};
}

Status send_to(const Session& session, const Array<double>& x) {
  for (double& value : x.span()) value = 7.0;
  return session.send(x);
}

Status fill_of(const Session& session, const Array<double>& x) {
  const double nine = 9.0;
  return session.fill(x, std::as_bytes(std::span(&nine, 1)));
}

std::vector<Touch> touches() {
  return {
      {"Fetch", fetch_of, 40.0},
      {"Send", send_to, 7.0},
      {"Fill", fill_of, 9.0},
      {"Address", [](const auto& session, const auto& x) { return session.on_device(x).status(); }, 40.0},
      {"Launch", [](const auto& session, const auto& x) { return launch_over(session, x, false); }, 40.0},
      {"Enqueue", [](const auto& session, const auto& x) { return launch_over(session, x, true); }, 40.0},
      {"Run", run_over, 43.0},
      {"SubmittedRun", submit_over, 43.0},
  };
}

class LocalEnqueuedTouched : public LocalEnqueuedOrder, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(LocalEnqueuedTouched, ComesBehindAllOfWhatWritesThere) {
  const Touch touch = touches()[GetParam()];
  const auto x = array();
  const Watched there(session(), x);
  const auto g = graph({line(x, x)});
  enqueue(*g, 40);
  ASSERT_EQ(there.now(), 0.0);
  const Status touched = touch.call(session(), x);
  ASSERT_TRUE(touched.ok()) << touched.to_string();
  EXPECT_EQ(there.now(), touch.after);
  EXPECT_EQ(synchronize(*g), 40);
}

INSTANTIATE_TEST_SUITE_P(By, LocalEnqueuedTouched, ::testing::Range<std::size_t>(0, touches().size()),
                         [](const auto& touch) { return std::string(touches()[touch.param].name); });

TEST_F(LocalEnqueuedOrder, SeveralThreadsMayWaitForOne) {
  const auto x = array();
  const auto g = graph({line(x, x)});
  enqueue(*g, 50);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(value_of(x), 50.0); });
  }
  EXPECT_EQ(synchronize(*g), 50);
}

TEST_F(LocalEnqueuedOrder, OfSeveralThreadsThatEnqueueOneGraphOneDoes) {
  const auto x = array();
  const auto g = graph({line(x, x)});
  std::atomic<int> enqueued = 0, busy = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Status one = g->enqueue();
        enqueued += one.ok() ? 1 : 0;
        busy += one.reason() == Reason::busy ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(enqueued, 1);
  EXPECT_EQ(busy, 3);
  EXPECT_EQ(synchronize(*g), 1);
  EXPECT_EQ(value_of(x), 1.0);
}

// ---- stops

TEST_F(LocalEnqueuedOrder, TheDeadlineOfSynchronizeStopsIt) {
  const auto x = array();
  const auto g = graph({spin(x)});
  enqueue(*g);
  LaunchOptions options;
  options.timeout = 20ms;
  const Status stopped = g->synchronize(options).status();
  EXPECT_EQ(stopped.reason(), Reason::deadline) << stopped.to_string();
  EXPECT_THAT(stopped.message(), HasSubstr("0 of 1 replays were whole"));
}

TEST_F(LocalEnqueuedOrder, TheFlagOfSynchronizeStopsIt) {
  const auto x = array();
  const auto g = graph({spin(x)});
  enqueue(*g);
  LaunchOptions options;
  options.cancel = std::make_shared<std::atomic<bool>>(true);
  EXPECT_EQ(g->synchronize(options).status().reason(), Reason::cancelled);
}

TEST_F(LocalEnqueuedOrder, ACancelBeforeSynchronizeStopsIt) {
  const auto x = array();
  const auto g = graph({spin(x)});
  enqueue(*g);
  g->cancel();
  EXPECT_EQ(g->synchronize().status().reason(), Reason::cancelled);
}

TEST_F(LocalEnqueuedOrder, ACancelWhileAnotherThreadSynchronizesStopsIt) {
  Gate gate;
  const auto x = array();
  const auto g = graph({gate.node(x), spin(x)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_EQ(g->synchronize().status().reason(), Reason::cancelled); });
  gate.wait_for_the_gpu();
  gate.open();
  g->cancel();
}

TEST_F(LocalEnqueuedOrder, WhatWasStoppedCanBeLaunchedAgain) {
  const auto x = array();
  const auto g = graph({line(x, x)});
  enqueue(*g, for_ever);
  g->cancel();
  ASSERT_EQ(g->synchronize().status().reason(), Reason::cancelled);
  const double before = value_of(x);
  ASSERT_TRUE(g->launch().ok());
  EXPECT_EQ(value_of(x), before + 1.0);
}

// ---- what goes wrong

TEST_F(LocalEnqueuedOrder, AFaultThatSomebodyElseFoundIsStillItsOwn) {
  pretend("fail_launch=3");
  const auto x = array();
  const auto g = graph({line(x, x)});
  enqueue(*g, 10);
  EXPECT_THAT(session().fetch(x).message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(g->synchronize().status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(LocalEnqueuedOrder, AfterAFaultWhateverIsEnqueuedOnThatGpuIsRefused) {
  pretend("fail_launch=1");
  const auto x = array(), y = array();
  const auto g = graph({line(x, x)}), other = graph({line(y, y)});
  enqueue(*g);
  ASSERT_FALSE(g->synchronize().ok());
  EXPECT_THAT(other->enqueue().message(), HasSubstr("is lost to this process"));
  EXPECT_THAT(other->launch().status().message(), HasSubstr("is lost to this process"));
}

TEST_F(LocalEnqueuedOrder, AnArrayThatFindsNoMemoryMeanwhileIsRefusedAlone) {
  pretend("bytes=16000000");
  const auto x = array();
  const auto g = graph({line(x, x)});
  enqueue(*g, 5);
  EXPECT_EQ(session().zeros<double>({4'000'000}, gpu).status().reason(), Reason::out_of_memory);
  EXPECT_EQ(synchronize(*g), 5);
  EXPECT_EQ(value_of(x), 5.0);
}

// ---- what goes meanwhile

TEST_F(LocalEnqueuedOrder, MemoryThatTheProgramDroppedStaysUntilTheGpuIsDone) {
  Gate gate;
  std::optional<Array<double>> x = array();
  const auto g = graph({gate.node(*x), line(*x, *x)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_EQ(synchronize(*g), 1); });
  gate.wait_for_the_gpu();
  x.reset();
  const auto fresh = array(3.0);
  gate.open();
  waits.join();
  EXPECT_EQ(value_of(fresh), 3.0);
}

TEST_F(LocalEnqueuedOrder, OneWhoseGraphGoesIsStopped) {
  const auto x = array(), y = array();
  auto g = graph({spin(x)});
  const auto next = graph({line(x, y, 0.0, 2.0)});
  enqueue(*g, for_ever);
  g.reset();
  ASSERT_TRUE(next->launch().ok());
  EXPECT_EQ(value_of(y), 2.0);
}

TEST_F(LocalEnqueuedOrder, OneWhoseGraphGoesIsStoppedThoughAnotherThreadWaitsForIt) {
  Gate gate;
  const auto x = array();
  auto g = graph({gate.node(x), spin(x)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_TRUE(session().fetch(x).ok()); });
  gate.wait_for_the_gpu();  // so that thread is at it
  gate.open();
  g.reset();
}

// What packages gave a graph goes with it.
TEST_F(LocalEnqueuedOrder, AGraphGoesOnceTheGpuIsDoneThoughAnotherThreadWaitsForIt) {
  Gate gate;
  const auto x = array();
  auto g = graph({gate.node(x), line(x, x)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_EQ(value_of(x), 1.0); });
  gate.wait_for_the_gpu();
  std::atomic<bool> opened = false, gone = false;
  std::jthread goes([&] {
    g.reset();
    EXPECT_TRUE(opened);
    gone = true;
  });
  for (int looks = 0; looks < 100'000 && !gone; ++looks) std::this_thread::yield();
  opened = true;
  gate.open();
}

TEST_F(LocalEnqueuedOrder, WhoWaitsForItMayBeTheLastToHaveAnythingOfIt) {
  Gate gate;
  std::optional<Array<double>> x = array();
  const GpuTouches all = {{session().on_device(*x)->pointer, 4 * sizeof(double), true}};
  auto g = graph({gate.node(*x), line(*x, *x)});
  enqueue(*g);
  std::jthread waits([&] { EXPECT_TRUE(LocalEnqueued::settle(all).ok()); });
  gate.wait_for_the_gpu();
  std::jthread goes([&] {
    g.reset();
    x.reset();
    session_.reset();
  });
  gate.open();
}

TEST_F(LocalEnqueuedOrder, GraphsMayGoWithWhatOtherThreadsWaitFor) {
  const auto x = array();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 10; ++round) {
          const auto g = graph({line(x, x), line(x, x)});
          enqueue(*g, i == 0 ? for_ever : i);
        }
      });
    }
  }
  const auto g = graph({line(x, x, 0.0, 1.0)});
  ASSERT_TRUE(g->launch().ok());
  EXPECT_EQ(value_of(x), 1.0);
}

TEST_F(LocalEnqueuedOrder, ClosingTheSessionReturnsOnceTheGpuHasStopped) {
  const auto x = array(4.0);
  const Watched there(session(), x);
  const auto g = graph({line(x, x)});
  enqueue(*g, for_ever);
  ASSERT_TRUE(session().close().ok());
  const double then = there.now();
  EXPECT_EQ(g->synchronize().status().reason(), Reason::session_closed);
  EXPECT_EQ(there.now(), then);
}

}  // namespace
}  // namespace eagle
