#include "server/launch_job.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::add_host_node;
using server::testing::add_increment;
using server::testing::GraphScene;
using server::testing::Mailbox;

struct Call {
  std::uint64_t sequence = 0;
  std::uint32_t call = 0;
};

class LaunchJobTest : public ::testing::Test {
protected:
  LaunchEvents events(bool with_calls = true) {
    LaunchEvents events;
    if (with_calls) events.host_call = [this](std::uint64_t s, std::uint32_t c) { calls_.put({s, c}); };
    events.done = [this](const LaunchOutcome& outcome) { outcomes_.put(outcome); };
    return events;
  }
  std::shared_ptr<LaunchJob> start(const LaunchRequest& request, bool with_calls = true) {
    return LaunchJob::start(daemon_->executor(), session_, request, std::nullopt, events(with_calls));
  }
  LaunchOutcome launch(const LaunchRequest& request, bool with_calls = true) {
    start(request, with_calls);
    return outcomes_.take();
  }
  // A graph that increments x, then calls the client's number 7.
  std::uint64_t build_with_call() {
    GraphScene scene(*session_);
    x_ = scene.plane<double>(4, 0.0);
    add_increment(scene, x_);
    add_host_node(scene, 7, x_);
    return server::testing::build(*daemon_, *session_, scene);
  }
  std::uint64_t build_increment() {
    GraphScene scene(*session_);
    x_ = scene.plane<double>(4, 0.0);
    add_increment(scene, x_);
    return server::testing::build(*daemon_, *session_, scene);
  }

  Mailbox<Call> calls_;  // before the daemon, whose threads put into them
  Mailbox<LaunchOutcome> outcomes_;
  std::unique_ptr<Daemon> daemon_ = server::testing::make_daemon();
  std::shared_ptr<Session> session_ = server::testing::open_session(*daemon_);
  server::testing::PlaneArray<double> x_;
};

TEST_F(LaunchJobTest, RunsTheGraphThatOften) {
  const std::uint64_t graph = build_increment();
  const LaunchOutcome outcome = launch({graph, 1000, 0});
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->launches, 1000);
  EXPECT_EQ(outcome->host().pid, ::getpid());
  EXPECT_EQ(x_.values[3], 1000.0);
  EXPECT_EQ((*session_->graph(graph))->launches(), 1000u);
}

TEST_F(LaunchJobTest, ZeroTimesIsALaunch) {
  const LaunchOutcome outcome = launch({build_increment(), 0, 0});
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->launches, 0);
  EXPECT_EQ(x_.values[0], 0.0);
}

TEST_F(LaunchJobTest, ANegativeCountIsRefused) {
  EXPECT_EQ(launch({build_increment(), -1, 0}).status().reason(), Reason::bad_value);
}

TEST_F(LaunchJobTest, AnUnknownGraphIsRefused) {
  EXPECT_EQ(launch({17, 1, 0}).status().reason(), Reason::unknown_graph);
}

TEST_F(LaunchJobTest, AHostNodeStopsTheLaunchUntilItIsAnswered) {
  const std::uint64_t graph = build_with_call();
  const auto job = start({graph, 2, 0});
  ASSERT_TRUE(job);
  for (int i = 1; i <= 2; ++i) {
    const Call call = calls_.take();
    EXPECT_EQ(call.call, 7u);
    EXPECT_EQ(x_.values[0], i);
    ASSERT_TRUE(job->answer(call.sequence, {}).ok());
  }
  const LaunchOutcome outcome = outcomes_.take();
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->launches, 2);
}

TEST_F(LaunchJobTest, AWaitingHostCallHoldsNobodyUp) {
  const auto waiting = start({build_with_call(), 1, 0});
  const Call call = calls_.take();
  const LaunchOutcome other = launch({build_increment(), 3, 0});
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  ASSERT_TRUE(waiting->answer(call.sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
}

TEST_F(LaunchJobTest, ACallableThatFailsEndsTheLaunch) {
  const auto job = start({build_with_call(), 5, 0});
  ASSERT_TRUE(job->answer(calls_.take().sequence, Status(Reason::host_call_failed, "raised")).ok());
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::host_call_failed);
  EXPECT_EQ(x_.values[0], 1.0);
}

TEST_F(LaunchJobTest, AnswersToNothingAreRefused) {
  const auto job = start({build_with_call(), 1, 0});
  const Call call = calls_.take();
  EXPECT_EQ(job->answer(call.sequence + 1, {}).reason(), Reason::bad_message);
  ASSERT_TRUE(job->answer(call.sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
  EXPECT_EQ(job->answer(call.sequence, {}).reason(), Reason::bad_message);
}

TEST_F(LaunchJobTest, HostNodesNeedACallerThatAnswers) {
  EXPECT_EQ(launch({build_with_call(), 1, 0}, false).status().reason(), Reason::graph_state);
}

TEST_F(LaunchJobTest, OneLaunchOfAGraphAtATime) {
  const std::uint64_t graph = build_with_call();
  const auto first = start({graph, 1, 0});
  const Call call = calls_.take();
  EXPECT_EQ(launch({graph, 1, 0}).status().reason(), Reason::busy);
  ASSERT_TRUE(first->answer(call.sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
  // Whoever hears of the end may launch again.
  const auto again = start({graph, 1, 0});
  ASSERT_TRUE(again);
  ASSERT_TRUE(again->answer(calls_.take().sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
}

TEST_F(LaunchJobTest, CancelEndsALaunchThatWaitsForItsClient) {
  const auto job = start({build_with_call(), 9, 0});
  calls_.take();
  job->cancel();
  const Status status = outcomes_.take().status();
  EXPECT_EQ(status.reason(), Reason::cancelled);
  EXPECT_NE(status.message().find("0 of 9"), std::string::npos) << status.message();
}

TEST_F(LaunchJobTest, CancelByIdReachesTheLaunch) {
  const auto job = start({build_with_call(), 1, 5});
  calls_.take();
  session_->cancel(4);
  session_->cancel(0);
  EXPECT_TRUE(outcomes_.empty());
  session_->cancel(5);
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
}

TEST_F(LaunchJobTest, CancelEndsALaunchThatWouldGoOnForYears) {
  const std::uint64_t graph = build_increment();
  const auto job = start({graph, std::int64_t{1} << 62, 0});
  // It gives way between its turns, so another launch gets through; then it is at work for sure.
  ASSERT_TRUE(launch({build_increment(), 1, 0}).ok());
  job->cancel();
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
}

TEST_F(LaunchJobTest, OneReplayThatWouldGoOnForYearsHoldsNoOtherClientUp) {
  const auto other = server::testing::open_session(*daemon_);
  GraphScene scene(*other);
  const auto x = scene.plane<std::int64_t>(1, 1);
  add_endless(scene, x);
  Mailbox<LaunchOutcome> endless;
  LaunchEvents until_cancelled;
  until_cancelled.done = [&](const LaunchOutcome& outcome) { endless.put(outcome); };
  const auto job =
      LaunchJob::start(daemon_->executor(), other, {server::testing::build(*daemon_, *other, scene), 1, 0},
                       std::nullopt, until_cancelled);
  ASSERT_TRUE(job);
  const LaunchOutcome outcome = launch({build_increment(), 1000, 0});
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(x_.values[0], 1000.0);
  EXPECT_TRUE(endless.empty());
  job->cancel();
  const Status status = endless.take().status();
  EXPECT_EQ(status.reason(), Reason::cancelled);
  EXPECT_NE(status.message().find("0 of 1"), std::string::npos) << status.message();
}

TEST_F(LaunchJobTest, CancelEndsAQueuedLaunchWhateverRuns) {
  const std::uint64_t graph = build_increment();
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  const auto job = start({graph, 1, 0});
  job->cancel();
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
  EXPECT_EQ(x_.values[0], 0.0);
  blocker->release();
  EXPECT_TRUE(launch({graph, 1, 0}).ok());
}

TEST_F(LaunchJobTest, CancelEndsAnAwaitedLaunchWhateverRuns) {
  const auto job = start({build_with_call(), 1, 0});
  calls_.take();
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  job->cancel();
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
  blocker->release();
}

TEST_F(LaunchJobTest, AReplyThatCrossesTheCancelIsNoMistake) {
  const auto job = start({build_with_call(), 1, 0});
  const Call call = calls_.take();
  job->cancel();
  EXPECT_TRUE(job->answer(call.sequence, {}).ok());
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
  EXPECT_TRUE(job->answer(call.sequence, {}).ok());
}

TEST_F(LaunchJobTest, APassedDeadlineStartsNothing) {
  const std::uint64_t graph = build_increment();
  LaunchJob::start(daemon_->executor(), session_, {graph, 1, 0},
                   std::chrono::steady_clock::now() - std::chrono::seconds(1), events());
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::deadline);
  EXPECT_EQ(x_.values[0], 0.0);
}

TEST_F(LaunchJobTest, TheSameIdRunsOnce) {
  const std::uint64_t graph = build_increment();
  ASSERT_TRUE(launch({graph, 3, 1}).ok());
  const LaunchOutcome again = launch({graph, 3, 1});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->launches, 3);
  EXPECT_EQ(x_.values[0], 3.0);
  ASSERT_TRUE(launch({graph, 3, 2}).ok());
  EXPECT_EQ(x_.values[0], 6.0);
}

TEST_F(LaunchJobTest, ARefusedLaunchMayBeTriedAgainWithItsId) {
  const std::uint64_t graph = build_with_call();
  const auto first = start({graph, 1, 1});
  const Call call = calls_.take();
  EXPECT_EQ(launch({graph, 1, 2}).status().reason(), Reason::busy);
  ASSERT_TRUE(first->answer(call.sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
  const auto second = start({graph, 1, 2});
  ASSERT_TRUE(second) << "the refusal was kept as the outcome";
  ASSERT_TRUE(second->answer(calls_.take().sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
}

TEST_F(LaunchJobTest, AReleasedPlaneIsRefusedAtTheNextLaunch) {
  const std::uint64_t graph = build_increment();
  const graph::PlaneId plane = x_.plane->id();
  ASSERT_TRUE(session_->planes().release({&plane, 1}).ok());
  EXPECT_EQ(launch({graph, 1, 0}).status().reason(), Reason::unknown_plane);
}

// ---- half written arrays

class TornTest : public LaunchJobTest {
protected:
  void expect_text(const Status& status, const std::string& part) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  // A graph over the same x.
  std::uint64_t build_over_x(const std::function<void(GraphScene&, const eagle::testing::Array&)>& add) {
    GraphScene scene(*session_);
    auto y = scene.plane<double>(4, 0.0);
    v1::PlaneDeclaration& declared = *scene.message.mutable_planes(0);
    const v1::PlaneDeclaration own = declared;
    v1::PlaneDeclaration& second = *scene.message.add_planes();
    second = own;
    second.mutable_plane()->set_id(x_.plane->id().id);
    second.mutable_plane()->set_generation(x_.plane->id().generation);
    y_ = y;
    eagle::testing::Array x = x_.array;
    x.plane = 1;
    add(scene, x);
    return server::testing::build(*daemon_, *session_, scene);
  }
  server::testing::PlaneArray<double> y_;
};

TEST_F(TornTest, ALaunchCutShortSaysWhatItLeftAndNobodyReadsItUntilItIsAccepted) {
  const std::uint64_t graph = build_with_call();
  const auto job = start({graph, 1, 0});
  calls_.take();
  job->cancel();
  expect_text(outcomes_.take().status(), "left half written: 'x' of node 'increment'");
  EXPECT_TRUE(x_.plane->torn().any());

  const Status refused = launch({graph, 1, 0}).status();
  EXPECT_EQ(refused.reason(), Reason::plane_torn);
  expect_text(refused, "node 'increment' reads 'x'");
  expect_text(refused, "accept");
  EXPECT_EQ(x_.values[0], 1.0) << "nothing ran";

  const plane::View all{0, 0, plane::DType::f64, 8, {4}, {8}};
  ASSERT_TRUE(session_->planes().accept(x_.plane->id(), all).ok());
  const auto again = start({graph, 1, 0});
  ASSERT_TRUE(again->answer(calls_.take().sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
  EXPECT_EQ(x_.values[0], 2.0);
}

TEST_F(TornTest, ACallableThatFailsLeavesItToo) {
  const std::uint64_t graph = build_with_call();
  const auto job = start({graph, 5, 0});
  ASSERT_TRUE(job->answer(calls_.take().sequence, Status(Reason::host_call_failed, "raised")).ok());
  expect_text(outcomes_.take().status(), "left half written");
  EXPECT_EQ(launch({graph, 1, 0}).status().reason(), Reason::plane_torn);
}

TEST_F(TornTest, TheSessionsOtherArraysGoOn) {
  const auto job = start({build_with_call(), 1, 0});
  calls_.take();
  job->cancel();
  EXPECT_FALSE(outcomes_.take().ok());
  EXPECT_TRUE(launch({build_increment(), 1, 0}).ok());
}

TEST_F(TornTest, WhoWritesAllOfItMendsIt) {
  const auto job = start({build_with_call(), 1, 0});
  calls_.take();
  job->cancel();
  EXPECT_FALSE(outcomes_.take().ok());
  const auto old = x_;
  const std::uint64_t mending = build_over_x([&](GraphScene& scene, const eagle::testing::Array& x) {
    v1::Copy& copy = *eagle::testing::add_node(scene.message, "mend").mutable_copy();
    eagle::testing::set_view(*copy.mutable_source(), y_.array);
    eagle::testing::set_view(*copy.mutable_destination(), x);
  });
  ASSERT_TRUE(launch({mending, 0, 0}).ok());
  EXPECT_TRUE(old.plane->torn().any()) << "no replay, nothing written";
  ASSERT_TRUE(launch({mending, 1, 0}).ok());
  EXPECT_FALSE(old.plane->torn().any());
}

TEST_F(TornTest, AReplayWhoseLastCallWasAnsweredIsWhole) {
  const std::uint64_t graph = build_with_call();
  const auto blocked = start({graph, 2, 0});
  const Call call = calls_.take();
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  ASSERT_TRUE(blocked->answer(call.sequence, {}).ok());  // queued behind the blocker
  blocked->cancel();
  expect_text(outcomes_.take().status(), "1 of 2");
  EXPECT_FALSE(x_.plane->torn().any());
  blocker->release();
}

TEST_F(TornTest, ACancelBetweenReplaysTearsNothing) {
  const std::uint64_t graph = build_increment();
  const auto job = start({graph, std::int64_t{1} << 62, 0});
  ASSERT_TRUE(job);
  while (x_.values[0] == 0.0) std::this_thread::yield();
  job->cancel();
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
  EXPECT_FALSE(x_.plane->torn().any());
}

TEST_F(LaunchJobTest, TheEndOfTheSessionEndsItsLaunches) {
  start({build_with_call(), 1, 0});
  calls_.take();
  daemon_->sessions().end(session_);
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::cancelled);
  EXPECT_EQ(launch({1, 1, 0}).status().reason(), Reason::session_closed);
}

TEST_F(LaunchJobTest, AReleasedGraphEndsItsLaunchFirst) {
  const std::uint64_t graph = build_with_call();
  const auto job = start({graph, 1, 0});
  const Call call = calls_.take();
  ASSERT_TRUE(session_->release_graph(graph).ok());
  ASSERT_TRUE(job->answer(call.sequence, {}).ok());
  EXPECT_TRUE(outcomes_.take().ok());
}

// Also before it is built again, and as one.
TEST_F(LaunchJobTest, AGraphThatAnotherWorkerBuiltCountsForItsTenant) {
  const auto held = [&] { return session_->tenant()->report().held[static_cast<std::size_t>(Held::graphs)]; };
  const std::uint64_t id = build_increment();
  std::shared_ptr<LoadedGraph> graph = *session_->graph(id);
  ASSERT_TRUE(session_->release_graph(id).ok());
  static_cast<void>(graph->take_share());
  ASSERT_EQ(held(), 0u);
  session_->add_dormant(77);
  session_->add_dormant(78);
  EXPECT_EQ(held(), 2u);
  session_->wake(77, graph);
  EXPECT_EQ(held(), 2u);
  graph.reset();
  ASSERT_TRUE(session_->release_graph(77).ok());
  EXPECT_EQ(held(), 1u);
  ASSERT_TRUE(session_->release_graph(78).ok());
  EXPECT_EQ(held(), 0u);
}

}  // namespace
}  // namespace eagle::server
