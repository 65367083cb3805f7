#include "server/simulation_job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "server/testing.h"

namespace eagle::server {
namespace {

using Outcome = StatusOr<step::RunResult>;
using server::testing::Mailbox;
using server::testing::oscillator_run;
using server::testing::RunScene;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

class SimulationJobTest : public ::testing::Test {
protected:
  SimulationEvents events() {
    SimulationEvents events;
    events.progress = [this](std::int64_t steps, std::int64_t) { progress_.put(steps); };
    events.done = [this](const Outcome& outcome) { outcomes_.put(outcome); };
    return events;
  }
  std::shared_ptr<SimulationJob> start(const RunScene& scene, std::uint64_t launch_id = 0) {
    auto job = SimulationJob::enter(daemon_->executor(), session_, launch_id, std::nullopt, events());
    EXPECT_TRUE(job.ok()) << job.status().to_string();
    (*job)->prepare(daemon_->engine(), daemon_->gpus(), scene.message);
    return *job;
  }

  Mailbox<std::int64_t> progress_;  // before the daemon, whose threads put into them
  Mailbox<Outcome> outcomes_;
  std::unique_ptr<Daemon> daemon_ = server::testing::make_daemon();
  std::shared_ptr<Session> session_ = server::testing::open_session(*daemon_);
};

TEST_F(SimulationJobTest, RunsUntilAllSamplesHaveFinished) {
  const RunScene scene = oscillator_run(*session_, 100, 0.5, 100'000);
  start(scene);
  const Outcome outcome = outcomes_.take();
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::finished);
  EXPECT_EQ(outcome->report.finished, 100);
  EXPECT_EQ(outcome->report.host.pid, ::getpid());
}

TEST_F(SimulationJobTest, WhatItCompilesIsItsTenants) {
  start(oscillator_run(*session_, 100, 0.5, 100'000));
  EXPECT_TRUE(outcomes_.take().ok());
  EXPECT_GT(session_->tenant()->report().compile_s, 0);
  TenantPolicy policy;
  policy.compile_seconds = 1e-9;  // in a minute
  session_->tenant()->set_policy(policy);
  session_->tenant()->note_compiled(1.0);
  start(oscillator_run(*session_, 100, 0.5, 100'000));
  const Outcome refused = outcomes_.take();
  ASSERT_EQ(refused.status().reason(), Reason::quota);
  EXPECT_NE(refused.status().message().find("tenant_compile_seconds"), std::string::npos);
}

TEST_F(SimulationJobTest, TwoLongRunsTakeTurnsAndTellHowFarTheyAre) {
  const RunScene scene = oscillator_run(*session_, 1000, never, unbounded);
  const auto first = start(scene);
  const auto second = start(oscillator_run(*session_, 1000, never, unbounded));
  EXPECT_GT(progress_.take(), 0);
  first->cancel();
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
  second->cancel();
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
}

TEST_F(SimulationJobTest, ALongRunHoldsNoLaunchUp) {
  const auto run = start(oscillator_run(*session_, 1000, never, unbounded));
  server::testing::GraphScene graph(*session_);
  const auto x = graph.plane<double>(4, 0.0);
  add_increment(graph, x);
  Mailbox<LaunchOutcome> launched;
  LaunchEvents events;
  events.done = [&](const LaunchOutcome& outcome) { launched.put(outcome); };
  LaunchJob::start(daemon_->executor(), session_, {server::testing::build(*daemon_, *session_, graph), 1, 0},
                   std::nullopt, events);
  EXPECT_TRUE(launched.take().ok());
  EXPECT_TRUE(outcomes_.empty());
  run->cancel();
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
}

TEST_F(SimulationJobTest, CancelByIdReachesTheRun) {
  start(oscillator_run(*session_, 1000, never, unbounded), 3);
  session_->cancel(3);
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
}

TEST_F(SimulationJobTest, CancelEndsAQueuedRunWhateverRuns) {
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  start(oscillator_run(*session_, 1000, never, unbounded))->cancel();
  const Outcome outcome = outcomes_.take();
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 0);
  blocker->release();
}

// It may wait for others that use its arrays.
TEST_F(SimulationJobTest, AQueuedRunThatIsCancelledStoresNothing) {
  RunScene scene = oscillator_run(*session_, 100, never, unbounded);
  const auto rows = scene.plane<double>(200, -1.0);
  v1::RecordedPlane& recorded = *scene.message.mutable_record()->add_planes();
  recorded.set_argument("x");
  eagle::testing::set_view(*recorded.mutable_rows(), rows.array);
  recorded.mutable_rows()->set_shape(0, 2);
  recorded.mutable_rows()->set_strides(0, 800);
  recorded.mutable_rows()->add_shape(100);
  recorded.mutable_rows()->add_strides(8);
  scene.message.mutable_record()->set_every(1000);
  scene.message.mutable_record()->set_initial(true);
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  start(scene);
  const auto behind = start(scene);
  EXPECT_EQ(daemon_->executor().held(), 1u);
  behind->cancel();
  const Outcome outcome = outcomes_.take();
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.records, 0);
  EXPECT_EQ(rows.values[0], -1.0);
  daemon_->sessions().end(session_);
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
  EXPECT_EQ(rows.values[0], -1.0) << "the other one had not begun either";
  blocker->release();
}

TEST_F(SimulationJobTest, CancelBeforeTheBuildBuildsNothing) {
  const RunScene scene = oscillator_run(*session_, 10, 1.0, 10);
  auto job = SimulationJob::enter(daemon_->executor(), session_, 3, std::nullopt, events());
  ASSERT_TRUE(job.ok());
  session_->cancel(3);
  (*job)->prepare(daemon_->engine(), daemon_->gpus(), scene.message);
  const Outcome outcome = outcomes_.take();
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 0);
  EXPECT_EQ(outcome->report.samples, 10);
  EXPECT_FALSE(outcome->report.compiled);
  EXPECT_EQ(daemon_->engine().compiler().counters().misses, 0u);
}

TEST_F(SimulationJobTest, TheDeadlineEndsARun) {
  const RunScene scene = oscillator_run(*session_, 1000, never, unbounded);
  auto job =
      SimulationJob::enter(daemon_->executor(), session_, 0, std::chrono::steady_clock::now(), events());
  ASSERT_TRUE(job.ok());
  (*job)->prepare(daemon_->engine(), daemon_->gpus(), scene.message);
  EXPECT_EQ(outcomes_.take()->status, step::RunStatus::deadline);
}

TEST_F(SimulationJobTest, TheEndOfTheSessionEndsItsRunsAndFreesTheirPlanes) {
  {
    start(oscillator_run(*session_, 1000, never, unbounded));
    daemon_->sessions().end(session_);
    EXPECT_EQ(outcomes_.take()->status, step::RunStatus::cancelled);
  }
  EXPECT_EQ(SimulationJob::enter(daemon_->executor(), session_, 0, std::nullopt, events()).status().reason(),
            Reason::session_closed);
}

TEST_F(SimulationJobTest, AMalformedRunIsRefused) {
  RunScene scene = oscillator_run(*session_, 10, 1.0, 10);
  scene.message.mutable_model(0)->set_kernel(99);
  start(scene);
  EXPECT_FALSE(outcomes_.take().ok());
  EXPECT_EQ(daemon_->executor().admitted(), 0u);
}

TEST_F(SimulationJobTest, AHalfWrittenArrayIsRefusedByName) {
  const RunScene scene = oscillator_run(*session_, 10, 1.0, 10);
  const graph::PlaneId id{scene.message.planes(0).plane().id(), scene.message.planes(0).plane().generation()};
  const auto plane = *session_->planes().find(id);
  plane->mark_torn("'x' of node 'n'");
  start(scene);
  const Status refused = outcomes_.take().status();
  EXPECT_EQ(refused.reason(), Reason::plane_torn);
  EXPECT_NE(refused.message().find("the model reads 'x'"), std::string::npos) << refused.message();
  const plane::View byte{0, 3, plane::DType::boolean, 1, {1}, {1}};
  ASSERT_TRUE(session_->planes().accept(id, byte).ok());
  start(scene);
  EXPECT_TRUE(outcomes_.take().ok());
}

TEST_F(SimulationJobTest, AReleasedPlaneIsRefused) {
  const RunScene scene = oscillator_run(*session_, 10, 1.0, 10);
  const graph::PlaneId plane{scene.message.planes(0).plane().id(),
                             scene.message.planes(0).plane().generation()};
  ASSERT_TRUE(session_->planes().release({&plane, 1}).ok());
  start(scene);
  EXPECT_EQ(outcomes_.take().status().reason(), Reason::unknown_plane);
}

// ---- a run that is cancelled while its client has its part

class CancelledCallTest : public SimulationJobTest {
protected:
  // A run whose client has a part before kernel `before`, every so many steps.
  std::shared_ptr<SimulationJob> hosted_run(std::uint32_t before, std::int64_t every) {
    RunScene scene = oscillator_run(*session_, 100, never, unbounded);
    v1::HostStep& host = *scene.message.add_host_steps();
    host.mutable_node()->set_call(7);
    host.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
    host.set_before(before);
    host.set_every(every);
    SimulationEvents all = events();
    all.host_call = [this](std::uint64_t sequence, std::uint32_t) {
      threads_.put(std::this_thread::get_id());
      calls_.put(sequence);
    };
    all.done = [this](const Outcome& outcome) {
      threads_.put(std::this_thread::get_id());
      outcomes_.put(outcome);
    };
    auto job = SimulationJob::enter(daemon_->executor(), session_, 0, std::nullopt, all);
    EXPECT_TRUE(job.ok()) << job.status().to_string();
    (*job)->prepare(daemon_->engine(), daemon_->gpus(), scene.message);
    return *job;
  }
  // Cancelled at the first call.
  Outcome cancelled_run(std::uint32_t before, std::int64_t every) {
    const auto job = hosted_run(before, every);
    const std::uint64_t sequence = calls_.take();
    job->cancel();
    Outcome outcome = outcomes_.take();
    EXPECT_TRUE(job->answer(sequence, {}, false, true).ok()) << "a reply that crosses the end";
    return outcome;
  }
  // Cancelled after the first call was answered, while others have the executor's thread.
  Outcome run_cancelled_in_the_queue(std::uint32_t before, std::int64_t every) {
    const auto job = hosted_run(before, every);
    const std::uint64_t sequence = calls_.take();
    const auto blocker = server::testing::Blocker::hold(daemon_->executor());
    EXPECT_TRUE(job->answer(sequence, {}, false, false).ok());
    job->cancel();
    blocker->release();
    Outcome outcome = outcomes_.take();
    const std::thread::id executor = threads_.take();
    EXPECT_EQ(threads_.take(), executor) << "it computed beside the executor's team";
    return outcome;
  }

  Mailbox<std::uint64_t> calls_;
  Mailbox<std::thread::id> threads_;  // that called, and ended, the run
};

TEST_F(CancelledCallTest, BetweenStepsHasItsResult) {
  const Outcome outcome = cancelled_run(1, 1000);
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 1000);
  EXPECT_TRUE(calls_.empty()) << "nobody is asked any more";
}

TEST_F(CancelledCallTest, AtTheEndOfEachStepHasItsResult) {
  const Outcome outcome = cancelled_run(1, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 1);
}

TEST_F(CancelledCallTest, WithinAStepHasNone) {
  const Outcome outcome = cancelled_run(0, 1);
  EXPECT_EQ(outcome.status().reason(), Reason::cancelled);
  EXPECT_NE(outcome.status().message().find("left half written"), std::string::npos)
      << outcome.status().message();
}

TEST_F(CancelledCallTest, AnsweredBetweenStepsHasItsResult) {
  const Outcome outcome = run_cancelled_in_the_queue(1, 1000);
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 1000);
}

TEST_F(CancelledCallTest, AnsweredWithinAStepHasThatStep) {
  const Outcome outcome = run_cancelled_in_the_queue(0, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->status, step::RunStatus::cancelled);
  EXPECT_EQ(outcome->report.steps, 1);
}

}  // namespace
}  // namespace eagle::server
