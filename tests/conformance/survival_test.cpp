// What survives what: real daemons whose workers, keepers and clients are killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/unique_fd.h"
#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

using ::testing::HasSubstr;

TEST_F(Survival, TheDeathOfAWorkerIsInvisibleToAClientThatIsIdle) {
  start();
  const auto x = must(session->full<double>({1000}, 1.5));
  const auto g = stepping(*session, x);
  must(g->launch(2));
  const auto before = held();
  const pid_t first = worker();
  kill_and_wait(first);
  EXPECT_EQ(x[999], 3.5) << "the memory is the same";
  const auto report = must(g->launch(3));
  EXPECT_EQ(x[0], 6.5);
  EXPECT_NE(report.host.pid, first);
  EXPECT_EQ(held(), before);
  const auto y = must(session->full<double>({1000}, 1.0));
  must(stepping(*session, y)->launch());
  EXPECT_EQ(y[5], 2.0);
}

TEST_F(Survival, LaunchesOverGrpcSurviveAsThoseOfTheRing) {
  start();
  ConnectOptions options;
  options.ring = false;
  const Session other = connected(options);
  const auto x = must(other.full<double>({10}, 0.0));
  const auto g = stepping(other, x);
  must(g->launch());
  kill_worker();
  must(g->launch());
  EXPECT_EQ(x[9], 2.0);
}

TEST_F(Survival, ALaunchInFlightIsAbortedAndTheNextOneRuns) {
  start();
  for (const bool ring : {true, false}) {
    SCOPED_TRACE(ring);
    ConnectOptions options;
    options.ring = ring;
    const Session mine = connected(options);
    const auto x = must(mine.full<double>({16}, 0.0));
    const auto g = stepping(mine, x, ring ? "ring" : "grpc");
    std::jthread killer([&, first = worker()] {
      wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
      kill_and_wait(first);
    });
    const auto launched = g->launch(endless);
    killer.join();
    EXPECT_EQ(launched.status().reason(), Reason::worker_restarted) << launched.status().to_string();
    EXPECT_THAT(launched.status().message(), HasSubstr(process->endpoint()));
    // The array is as the dead worker left it; start it anew.
    EXPECT_EQ(g->launch(5).status().reason(), Reason::plane_torn);
    for (double& value : x.span()) value = 0;
    must(mine.accept(x));
    must(g->launch(5));
    EXPECT_EQ(x[7], 5.0);
  }
}

TEST_F(Survival, ALaunchThatWasEnqueuedIsAbortedOnce) {
  start();
  const auto x = must(session->full<double>({16}, 0.0));
  const auto g = stepping(*session, x);
  must(g->enqueue(endless));
  wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
  kill_worker();
  EXPECT_EQ(g->synchronize().status().reason(), Reason::worker_restarted);
  for (double& value : x.span()) value = 0;
  must(session->accept(x));
  must(g->launch(2));
  EXPECT_EQ(x[0], 2.0);
}

TEST_F(Survival, ARunInFlightIsAborted) {
  start();
  const auto n = must(session->zeros<double>({64}));
  const auto done = must(session->zeros<bool>({64}));
  const BoundPlan model{counter(), {{"n", n}, {"limit", 1e300}, {"done", done}}};
  std::jthread killer([&, first = worker()] {
    wait_until([&] { return std::atomic_ref<double>(n.span()[0]).load() > 0; });
    kill_and_wait(first);
  });
  EXPECT_EQ(session->simulate(model, {endless, {}, {}}).status().reason(), Reason::worker_restarted);
}

TEST_F(Survival, AWorkerKilledDuringAHostCallAbortsThatLaunchOnly) {
  start();
  const auto x = must(session->full<double>({4}, 0.0));
  int calls = 0;
  Graph g(*session);
  must(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}));
  must(g.add_node(opaque(
      [&] {
        if (++calls == 1) kill_worker();
        return Status();
      },
      {{{"x", x}}, {}})));
  must(g.build());
  EXPECT_EQ(g.launch(3).status().reason(), Reason::worker_restarted);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(x[0], 1.0) << "nothing of it ran again";
  must(session->accept(x));
  must(g.launch(2));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(x[0], 3.0);
}

// Each launch adds 1. What was acknowledged has run once; what was aborted ran once or not at all.
TEST_F(Survival, UnderLoadNoAcknowledgedLaunchIsLostOrDoubled) {
  start();
  constexpr int clients = 6;
  constexpr int deaths = 4;
  std::atomic<bool> enough = false;
  std::atomic<std::int64_t> launches = 0;
  struct Count {
    double value = 0;
    std::int64_t acknowledged = 0, aborted = 0;
    std::string other;
  };
  std::vector<Count> counts(clients);
  std::vector<std::jthread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&, i] {
      ConnectOptions options;
      options.ring = i % 2 == 0;
      const Session mine = connected(options);
      const auto x = must(mine.full<double>({1}, 0.0));
      auto g = stepping(mine, x, "client " + std::to_string(i));
      Count& count = counts[static_cast<std::size_t>(i)];
      while (!enough && count.other.empty()) {
        const auto launched = g->launch();
        ++launches;
        if (launched.ok()) {
          ++count.acknowledged;
        } else if (launched.status().reason() == Reason::worker_restarted) {
          ++count.aborted;
          must(mine.accept(x));
          g = stepping(mine, x, "client " + std::to_string(i) + " after " + std::to_string(count.aborted));
        } else {
          count.other = launched.status().to_string();
        }
      }
      count.value = x[0];
    });
  }
  for (int death = 0; death < deaths; ++death) {
    const std::int64_t before = launches;
    wait_until([&] { return launches > before + 200; });
    kill_worker();
  }
  const std::int64_t before = launches;
  wait_until([&] { return launches > before + 200; });
  enough = true;
  threads.clear();
  for (const Count& count : counts) {
    EXPECT_EQ(count.other, "");
    EXPECT_GE(count.value, static_cast<double>(count.acknowledged));
    EXPECT_LE(count.value, static_cast<double>(count.acknowledged + count.aborted));
    EXPECT_LE(count.aborted, deaths);
  }
}

TEST_F(Survival, NumbersAndPlanesThatAGraphWasGivenLaterAreStillItsOwn) {
  start();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto y = must(session->full<double>({8}, 10.0));
  const auto g = stepping(*session, x);
  must(g->update({{{"", {}, "b"}, 2.0}}));
  must(g->update({{{"", {}, "step.b"}, 5.0}}));
  must(g->rebind({{{"", {}, "x"}, y}, {{"", {}, "y"}, y}}));
  kill_worker();
  must(g->launch());
  EXPECT_EQ(y[0], 15.0);
  EXPECT_EQ(x[0], 1.0);
  must(g->update({{{"", {}, "a"}, 2.0}}));
  kill_worker();
  must(g->launch());
  EXPECT_EQ(y[0], 35.0);
}

TEST_F(Survival, TwoDeathsInARow) {
  start();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  const Session observer = connected();
  const auto worker_of = [](const Session& s) { return static_cast<pid_t>(must(s.info()).host.pid); };
  kill_and_wait(worker_of(observer));
  kill_and_wait(worker_of(observer));
  must(g->launch());
  EXPECT_EQ(x[3], 2.0);
}

TEST_F(Survival, AThousandPlanesAreHandedOver) {
  start();
  std::vector<Array<double>> arrays;
  for (int i = 0; i < 1000; ++i) {
    arrays.push_back(must(session->full<double>({33'000}, i)));  // each a plane of its own
  }
  const auto before = held();
  ASSERT_GE(before.first, 1000u);
  kill_worker();
  EXPECT_EQ(held(), before);
  const auto g = stepping(*session, arrays[777]);
  must(g->launch());
  EXPECT_EQ(arrays[777][32'999], 778.0);
  EXPECT_EQ(arrays[999][0], 999.0);
  arrays.clear();
  EXPECT_LE(held().first, 1u);
}

// The second one waits for the first, which writes the same bytes.
TEST_F(Survival, ALaunchThatHadNotBegunRunsOnTheNextWorker) {
  start();
  for (const bool ring : {true, false}) {
    SCOPED_TRACE(ring);
    ConnectOptions options;
    options.ring = ring;
    const Session mine = connected(options);
    const auto x = must(mine.full<double>({16}, 0.0));
    const auto z = must(mine.full<double>({16}, 5.0));
    const auto first = stepping(mine, x, ring ? "first by ring" : "first by grpc");
    Graph second(mine);
    must(second.add({affine(), {{"x", z}, {"y", x}, {"a", 2.0}, {"b", 1.0}}}));
    must(second.build());
    std::jthread runs([&] { EXPECT_EQ(first->launch(endless).status().reason(), Reason::worker_restarted); });
    wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
    std::jthread waits([&] { EXPECT_EQ(second.launch().status().to_string(), "OK"); });
    kill_worker();
    runs.join();
    waits.join();
    EXPECT_EQ(x[7], 11.0);
  }
}

TEST_F(Survival, HalfWrittenArraysStayMarkedOverMoreDeaths) {
  start();
  const auto x = must(session->full<double>({16}, 0.0));
  const auto g = stepping(*session, x);
  std::jthread killer([&] {
    wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
    kill_worker();
  });
  EXPECT_EQ(g->launch(endless).status().reason(), Reason::worker_restarted);
  killer.join();
  kill_worker();
  EXPECT_EQ(g->launch().status().reason(), Reason::plane_torn);
  for (double& value : x.span()) value = 0;
  must(session->accept(x));
  kill_worker();
  must(g->launch());
  EXPECT_EQ(x[0], 1.0);
}

TEST_F(Survival, WhatARunWroteWhenItsWorkerDiedIsMarked) {
  start();
  const auto n = must(session->zeros<double>({64}));
  const auto done = must(session->zeros<bool>({64}));
  const BoundPlan model{counter(), {{"n", n}, {"limit", 1e300}, {"done", done}}};
  std::jthread killer([&] {
    wait_until([&] { return std::atomic_ref<double>(n.span()[0]).load() > 0; });
    kill_worker();
  });
  EXPECT_EQ(session->simulate(model, {endless, {}, {}}).status().reason(), Reason::worker_restarted);
  killer.join();
  EXPECT_EQ(session->simulate(model, {3, {}, {}}).status().reason(), Reason::plane_torn);
  must(session->accept(n));
  must(session->accept(done));
  must(session->simulate(model, {3, {}, {}}).status());
}

// The second worker dies while it writes down what the first one left half written.
class TornFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(TornFault, ForgetsNoMark) {
  start_to_fail_at(GetParam());
  const auto x = must(session->full<double>({16}, 0.0));
  const auto g = stepping(*session, x);
  std::jthread killer([&] {
    wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
    kill_worker();
  });
  EXPECT_EQ(g->launch(endless).status().reason(), Reason::worker_restarted);
  killer.join();
  EXPECT_EQ(g->launch().status().reason(), Reason::plane_torn);
  must(session->accept(x));
  must(g->launch());
}
INSTANTIATE_TEST_SUITE_P(Each, TornFault,
                         ::testing::Values("1@torn.before", "1@torn.after", "1@restore.torn",
                                           "1@torn.before,2@torn.after,3@restore.torn"),
                         name_of_fault);

// ---- fault points: the worker dies between any two steps of writing down what a client is told

class FaultPoint : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(FaultPoint, LosesNothingThatWasAcknowledgedAndLeavesNothingBehind) {
  start_to_fail_at(GetParam());
  const pid_t first = worker();
  const Session mine = connected();
  {
    const auto kept = must(mine.full<double>({40'000}, 1.0));
    const auto other = must(mine.full<double>({40'000}, 2.0));
    const auto g = stepping(mine, kept);
    {
      const auto gone = must(mine.full<double>({40'000}, 3.0));
      const auto gone_too = stepping(mine, gone);
    }
    must(g->update({{{"", {}, "b"}, 4.0}}));
    must(g->rebind({{{"", {}, "x"}, other}, {{"", {}, "y"}, other}}));
    must(g->launch());
    EXPECT_EQ(kept[39'999], 1.0);
    EXPECT_EQ(other[39'999], 6.0);
    // Ending the session is the one step that no client sees the end of.
    const auto later = must(mine.full<double>({40'000}, 5.0));
    must(g->launch());
    EXPECT_EQ(other[0], 10.0);
    EXPECT_EQ(must(mine.info()).planes, 3u);
    EXPECT_EQ(must(mine.info()).graphs, 1u);
  }
  must(mine.close());
  {
    const Session brief = connected();  // its end is one, too
    must(brief.close());
  }
  wait_until([&] { return must(session->info()).sessions == 1; });
  wait_until([&] {
    return held() == std::pair<std::uint64_t, std::uint64_t>{0, 0};
  });  // memory goes after the names
  EXPECT_NE(worker(), first) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, FaultPoint,
                         ::testing::Values("session.open.before:2", "session.open.after:2",
                                           "plane.create.before:2", "plane.create.after:2",
                                           "plane.release.before", "plane.release.after",
                                           "graph.build.before", "graph.build.after", "graph.release.before",
                                           "graph.release.after", "graph.update.before", "graph.update.after",
                                           "graph.rebind.before", "graph.rebind.after",
                                           "session.leave.before", "session.leave.after",
                                           "session.end.before", "session.end.after", "log.between:2",
                                           "log.between:3"),
                         name_of_fault);

// A description too long for one packet to the keeper, cut off in the middle.
TEST_F(Survival, AGraphThatWasHalfWrittenDownIsBuiltAgain) {
  start_to_fail_at("log.part:2");
  const pid_t first = worker();
  const auto x = must(session->full<double>({4}, 0.0));
  constexpr int nodes = 3000;
  Graph g(*session);
  for (int i = 0; i < nodes; ++i) {
    must(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}, "node " + std::to_string(i)));
  }
  must(g.build());
  EXPECT_NE(worker(), first) << "the fault point was never reached";
  must(g.launch());
  kill_worker();
  must(g.launch());
  EXPECT_EQ(x[0], 2.0 * nodes);
  EXPECT_EQ(held().second, 1u);
}

// ---- clients

// A child of this process that does something with a session and then waits to be killed.
class ForkedClient {
public:
  explicit ForkedClient(const std::function<void()>& work) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      work();
      const char done = 1;
      static_cast<void>(::write(ends[1], &done, 1));
      for (;;) ::pause();
    }
    char done = 0;
    EXPECT_EQ(::read(ends[0], &done, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~ForkedClient() { kill(); }
  ForkedClient(const ForkedClient&) = delete;
  ForkedClient& operator=(const ForkedClient&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

private:
  pid_t pid_ = -1;
};

// These start their daemon before the test's own process has a session: gRPC does not go through a fork.
class Clients : public Survival {
protected:
  void SetUp() override { process = must(DaemonProcess::start(1)); }
  void look() { session.emplace(connected()); }
  std::function<void()> holding() {
    return [endpoint = process->endpoint()] {
      static std::optional<Session> mine;
      static std::optional<Array<double>> array;
      mine.emplace(must(connect(endpoint)));
      array.emplace(must(mine->full<double>({100'000}, 1.0)));
    };
  }
  [[nodiscard]] std::uint64_t sessions() const { return must(session->info()).sessions; }
};

TEST_F(Clients, AClientThatDiesWhileTheWorkerIsDeadIsNoticed) {
  ForkedClient client(holding());
  look();
  EXPECT_EQ(sessions(), 2u);
  const pid_t first = worker();
  client.kill();
  ::kill(first, SIGKILL);
  wait_until([&] { return sessions() == 1; });
  wait_until([&] { return held().first == 0; });  // memory goes after the names
}

TEST_F(Clients, AClientThatIsStoppedLosesNothing) {
  ForkedClient client(holding());
  look();
  ::kill(client.pid(), SIGSTOP);
  kill_worker();
  EXPECT_EQ(sessions(), 2u);
  EXPECT_EQ(held().first, 1u);
  kill_worker();
  EXPECT_EQ(sessions(), 2u);
  client.kill();
  wait_until([&] { return sessions() == 1; });
}

TEST_F(Clients, AForkedChildThatLivesOnKeepsNothing) {
  ForkedClient client([work = holding()] {
    work();
    if (::fork() == 0) {  // has the sockets, too; ends with its parent's test
      ::alarm(60);
      for (;;) ::pause();
    }
  });
  look();
  kill_worker();
  EXPECT_EQ(sessions(), 2u);
  client.kill();
  wait_until([&] { return sessions() == 1; });
  wait_until([&] { return held().first == 0; });  // memory goes after the names
}

// ---- leases

TEST_F(Survival, ASessionWithALeaseIsResumedElsewhere) {
  start();
  ConnectOptions kept;
  kept.lease = std::chrono::seconds(600);
  const Session first = connected(kept);
  const auto x = must(first.full<double>({100'000}, 1.0));
  ConnectOptions resumed;
  resumed.resume = first.resume_token();
  const Session second = connected(resumed);
  EXPECT_EQ(must(second.info()).planes, 1u);
  EXPECT_EQ(must(session->info()).sessions, 2u);
  kill_worker();
  EXPECT_EQ(must(second.info()).planes, 1u);
  const auto y = must(second.full<double>({8}, 1.0));
  must(stepping(second, y)->launch());
  EXPECT_EQ(y[0], 2.0);
  must(second.close());
}

TEST_F(Survival, NobodyResumesASessionWithoutItsSecret) {
  start();
  ConnectOptions kept;
  kept.lease = std::chrono::seconds(600);
  const Session first = connected(kept);
  ConnectOptions forged;
  forged.resume = first.resume_token();
  forged.resume.back() = forged.resume.back() == '0' ? '1' : '0';
  EXPECT_EQ(connect(process->endpoint(), forged).status().reason(), Reason::unauthenticated);
  forged.resume = "none";
  EXPECT_EQ(connect(process->endpoint(), forged).status().reason(), Reason::bad_value);
  EXPECT_TRUE(first.info().ok());
}

// The worker dies between any two steps of writing down that a session is another process's.
class ResumeFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(ResumeFault, LosesNothing) {
  start_to_fail_at(GetParam());
  const pid_t first_worker = worker();
  ConnectOptions kept;
  kept.lease = std::chrono::seconds(600);
  const Session first = connected(kept);
  const auto x = must(first.full<double>({40'000}, 1.0));
  ConnectOptions resumed;
  resumed.resume = first.resume_token();
  auto second = connect(process->endpoint(), resumed);
  if (!second.ok()) second = connect(process->endpoint(), resumed);
  EXPECT_EQ(must(must(second).info()).planes, 1u);
  EXPECT_EQ(must(session->info()).sessions, 2u);
  EXPECT_NE(worker(), first_worker) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, ResumeFault,
                         ::testing::Values("session.resume.before", "session.resume.after"), name_of_fault);

// The worker dies between any two steps of giving up what a process had mapped that has ended after its
// session.
class UnmappedFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(UnmappedFault, LeavesNothingBehind) {
  ::setenv("EAGLED_FAULT", GetParam(), 1);
  process = must(DaemonProcess::start(1));
  ::unsetenv("EAGLED_FAULT");
  const std::string token = process->folder() + "/token";
  ForkedClient client([&] {
    static std::optional<Session> mine;
    static std::optional<Array<double>> array;
    ConnectOptions kept;
    kept.lease = std::chrono::seconds(600);
    mine.emplace(connected(kept));
    array.emplace(must(mine->full<double>({100'000}, 1.0)));
    std::ofstream(token) << mine->resume_token();
  });
  {  // one that lives on would count as one that has it mapped, too, after the worker's death
    ForkedClient other([&] {
      ConnectOptions resumed;
      std::ifstream(token) >> resumed.resume;
      must(connected(resumed).close());
    });
  }
  session.emplace(connected());
  const pid_t first = worker();
  wait_until([&] { return must(session->info()).sessions == 1; });
  EXPECT_EQ(held().first, 1u) << "the client has it mapped";
  client.kill();
  wait_until([&] { return held().first == 0; });
  EXPECT_NE(worker(), first) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, UnmappedFault,
                         ::testing::Values("session.unmapped.before", "session.unmapped.after"),
                         name_of_fault);

// ---- keepers

TEST_F(Survival, WithTheKeeperEverythingEnds) {
  start();
  const UniqueFd its_worker(static_cast<int>(::syscall(SYS_pidfd_open, worker(), 0)));
  ASSERT_TRUE(its_worker.valid());
  const auto x = must(session->full<double>({8}, 1.0));
  process->kill();
  // Its number may stay for longer: nobody may come to reap it.
  pollfd ended{its_worker.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0) ASSERT_EQ(errno, EINTR);
  EXPECT_EQ(session->info().status().reason(), Reason::connection_lost);
  EXPECT_EQ(x[0], 1.0);
}

TEST_F(Survival, AWorkerThatKeepsDyingIsNotStartedForever) {
  start({"--crash-window", "86400"});  // however long a worker takes to start here
  for (int death = 0; death < 5; ++death) {
    const auto info = session->info();
    ASSERT_TRUE(info.ok()) << death << ": " << info.status().to_string();
    ::kill(static_cast<pid_t>(info->host.pid), SIGKILL);
    wait_until([&] { return ::kill(static_cast<pid_t>(info->host.pid), 0) != 0; });
  }
  EXPECT_EQ(process->wait(), 1);
  EXPECT_EQ(session->info().status().reason(), Reason::connection_lost);
}

// It was on its way when the worker died, and nobody had taken it.
TEST_F(Survival, AnEnqueuedLaunchThatNoWorkerTookIsReportedAsSuch) {
  start();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  must(g->launch());  // through the ring, which is there now
  const pid_t stopped = worker();
  stop_and_wait(stopped);
  must(g->enqueue());
  ASSERT_EQ(::kill(stopped, SIGKILL), 0);
  const Status lost = g->synchronize().status();
  EXPECT_EQ(lost.reason(), Reason::worker_restarted) << lost.to_string();
  EXPECT_THAT(lost.message(), HasSubstr("never began"));
  EXPECT_EQ(x[0], 2.0);
  must(g->launch());
  EXPECT_EQ(x[0], 3.0);
}

TEST_F(Survival, AWorkerThatSaysNothingIsReplaced) {
  start();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  const pid_t stopped = worker();
  stop_and_wait(stopped);
  wait_until([&] { return ::kill(stopped, 0) != 0; });
  must(g->launch());
  EXPECT_EQ(x[0], 2.0);
}

// A keeper that has much to hand over answers nobody meanwhile: stopped, it is as slow as can be.
TEST_F(Survival, ACallWaitsForAWorkerThatTakesItsTime) {
  start();
  ConnectOptions impatient;
  impatient.timeout = std::chrono::seconds(3);
  const Session other = must(connect(process->endpoint(), impatient));
  const auto x = must(other.full<double>({8}, 1.0));
  const pid_t dying = worker(), keeper = process->pid();
  stop_and_wait(keeper);
  ::kill(dying, SIGKILL);
  const std::jthread later([keeper] {  // longer than its timeout
    std::this_thread::sleep_for(std::chrono::seconds(6));
    ::kill(keeper, SIGCONT);
  });
  must(other.info());
  EXPECT_EQ(x[0], 1.0);
}

TEST_F(Survival, FewDescriptorsRefuseArraysAndEndNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{200, 200};
  process = must(DaemonProcess::start(1, {}, few.rlim_max));
  session.emplace(connected());
  const pid_t first = worker();
  std::vector<Array<double>> arrays;
  Status refused;
  while (refused.ok()) {
    ASSERT_LT(arrays.size(), 300u);
    auto array = session->full<double>({33'000}, 1.0);
    refused = array.status();
    if (array.ok()) arrays.push_back(*std::move(array));
  }
  EXPECT_GT(arrays.size(), 50u) << refused.to_string();
  arrays.erase(arrays.begin() + 20, arrays.end());
  EXPECT_EQ(worker(), first);
  kill_worker();
  must(stepping(*session, arrays[7])->launch());
  EXPECT_EQ(arrays[7][0], 2.0);
}

}  // namespace
}  // namespace eagle::conformance
