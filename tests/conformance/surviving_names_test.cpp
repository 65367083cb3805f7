// What survives a worker besides local sessions: sessions over TCP, names, and submitted runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "eagle/client/kept_run.h"
#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

using ::testing::HasSubstr;

SubmitOptions kept_as(const std::string& name, const Array<double>& n) {
  SubmitOptions options;
  options.name = name;
  options.planes = {{"n", n}};
  return options;
}

// ---- over TCP

TEST_F(Survival, SessionsOverTcpSurvive) {
  start();
  ConnectOptions options;
  options.timeout = std::chrono::seconds(60);
  const Session mine = must(connect(process->tcp_endpoint(), options));
  const auto x = must(mine.full<double>({1000}, 1.5));
  const auto g = stepping(mine, x);
  must(g->launch(2));
  const auto before = held();
  for (int death = 1; death <= 2; ++death) {
    kill_worker();
    must(g->launch());
    must(mine.fetch(x));
    EXPECT_EQ(x[999], 3.5 + death);
    EXPECT_EQ(held(), before);
  }
  const auto y = must(mine.full<double>({10}, 1.0));
  must(stepping(mine, y)->launch());
  must(mine.fetch(y));
  EXPECT_EQ(y[3], 2.0);
  must(mine.close());
  wait_until([&] { return must(session->info()).sessions == 1; });
}

TEST_F(Survival, ALaunchOverTcpThatIsInFlightIsAborted) {
  start();
  ConnectOptions options;
  options.timeout = std::chrono::seconds(60);
  const Session mine = must(connect(process->tcp_endpoint(), options));
  const auto x = must(mine.full<double>({16}, 0.0));
  const auto g = stepping(mine, x);
  const Session observer = must(connect(process->tcp_endpoint(), options));
  std::jthread killer([&] {
    wait_until([&] { return must(observer.info()).launches > 0 || (must(mine.fetch(x)), x[0] > 0); });
    kill_worker();
  });
  EXPECT_EQ(g->launch(endless).status().reason(), Reason::worker_restarted);
  killer.join();
  EXPECT_EQ(g->launch().status().reason(), Reason::plane_torn);
  must(mine.accept(x));
  must(g->launch());
}

// ---- arrays with names, and submitted runs

TEST_F(Survival, NamesAndWhatWasOpenedByThemSurvive) {
  start();
  const Session owner = connected();
  const Session reader = connected();
  const auto x = must(owner.full<double>({33'000}, 2.0));
  must(owner.publish(x, "x").status());
  const PublishedArray opened = must(reader.open("x"));
  const Array<double> seen(opened.buffer, {33'000});
  const auto g = stepping(reader, seen);
  must(g->launch());
  kill_worker();
  must(g->launch());
  EXPECT_EQ(x[5], 4.0) << "the same bytes";
  must(stepping(owner, x, "owner")->launch());
  EXPECT_EQ(seen[5], 5.0);
  const Session late = connected();
  EXPECT_EQ(must(late.open("x")).view.shape, Shape{33'000});
  EXPECT_EQ(owner.publish(x, "x").status().reason(), Reason::bad_value) << "it is published already";
  kill_worker();
  must(owner.withdraw("x"));
  kill_worker();
  EXPECT_EQ(late.open("x").status().reason(), Reason::unknown_name);
  must(owner.publish(x, "x").status());
}

TEST_F(Survival, WhatWasOpenedOutlivesItsOwnerOverADeath) {
  start();
  const Session reader = connected();
  std::optional<Array<double>> seen;
  {
    const Session owner = connected();
    const auto x = must(owner.full<double>({33'000}, 2.0));
    must(owner.publish(x, "x").status());
    seen.emplace(must(reader.open("x")).buffer, Shape{33'000});
    kill_worker();
    must(owner.info().status());
  }
  wait_until([&] { return must(session->info()).sessions == 2; });
  kill_worker();
  must(stepping(reader, *seen)->launch());
  EXPECT_EQ((*seen)[32'999], 3.0);
  seen.reset();
  wait_until([&] { return held().first == 0; });
}

// The worker dies between any two steps of writing down names.
class NameFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(NameFault, LosesNothing) {
  start_to_fail_at(GetParam());
  const pid_t first = worker();
  const Session owner = connected();
  const Session reader = connected();
  const auto x = must(owner.full<double>({33'000}, 2.0));
  const auto half = must(owner.full<double>({20}, 1.0));
  must(owner.publish(x, "x").status());
  must(owner.publish(half, "copied").status());
  must(reader.open("x").status());
  must(reader.open("copied").status());
  must(owner.withdraw("copied"));
  EXPECT_EQ(reader.open("copied").status().reason(), Reason::unknown_name);
  must(reader.open("x").status());
  EXPECT_NE(worker(), first) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, NameFault,
                         ::testing::Values("name.before", "name.after", "name.before:2", "name.after:2",
                                           "name.end.before", "name.end.after"),
                         name_of_fault);

// The worker dies between any two steps of moving an array away from who had opened it: its bytes are there.
class SealOffFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(SealOffFault, LosesNoBytes) {
  start_to_fail_at(GetParam());
  const pid_t first = worker();
  const Session owner = connected();
  const auto x = must(owner.full<double>({33'000}, 2.0));
  must(owner.publish(x, "x").status());
  const Session reader = connected();
  must(reader.open("x").status());
  WithdrawOptions sealed;
  sealed.seal_off = true;
  static_cast<void>(owner.withdraw("x", sealed));  // it may have happened, and nobody can say
  EXPECT_NE(worker(), first) << "the fault point was never reached";
  must(owner.publish(x, "again").status());
  const Session late = connected();
  const Array<double> seen(must(late.open("again")).buffer, {33'000});
  EXPECT_EQ(seen[0], 2.0);
  EXPECT_EQ(seen[32'999], 2.0);
}
INSTANTIATE_TEST_SUITE_P(Each, SealOffFault,
                         ::testing::Values("seal_off.mapped", "seal_off.written", "seal_off.emptied"),
                         name_of_fault);

TEST_F(Survival, ASubmittedRunThatDiedWithItsWorkerSaysHowFarItHadCome) {
  start();
  const auto n = must(session->zeros<double>({64}));
  const auto done = must(session->zeros<bool>({64}));
  const BoundPlan model{counter(), {{"n", n}, {"limit", 1e300}, {"done", done}}};
  const ModelStep step(model);
  const KeptRun run = must(submit(*session, {&step, 1}, {endless, {}, {}}, kept_as("long", n)));
  wait_until([&] { return must(run.state()).progress.steps > 0; });
  std::this_thread::yield();
  kill_worker();
  const KeptRunState after = must(run.state());
  EXPECT_TRUE(after.ended);
  EXPECT_EQ(after.name, "long");
  EXPECT_EQ(after.error.reason(), Reason::worker_restarted) << after.error.to_string();
  EXPECT_THAT(after.error.message(), HasSubstr("to step " + std::to_string(after.progress.steps)));
  EXPECT_EQ(run.wait().status().reason(), Reason::worker_restarted);
  EXPECT_EQ(run.fetch({{"n", n}}).reason(), Reason::worker_restarted);
  EXPECT_EQ(must(kept_runs(*session)).size(), 1u);
  EXPECT_EQ(session->simulate(model, {3, {}, {}}).status().reason(), Reason::plane_torn);
}

// The worker dies between any two steps of writing down a run: it is there once, and ended one way or the
// other.
class RunFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(RunFault, IsNeverForgotten) {
  start_to_fail_at(GetParam());
  const pid_t first = worker();
  const auto n = must(session->zeros<double>({64}));
  const auto done = must(session->zeros<bool>({64}));
  const ModelStep step(BoundPlan{counter(), {{"n", n}, {"limit", 7.0}, {"done", done}}});
  const KeptRun run = must(submit(*session, {&step, 1}, {100, {}, {}}, kept_as("", n)));
  wait_until([&] { return must(run.state()).ended; });
  EXPECT_EQ(must(kept_runs(*session)).size(), 1u);
  const auto result = run.wait();
  const auto mine = must(session->zeros<double>({64}));
  const Status fetched = run.fetch({{"n", mine}});
  if (result.ok()) {
    EXPECT_TRUE(fetched.ok() || fetched.reason() == Reason::unknown_run) << fetched.to_string();
    EXPECT_TRUE(!fetched.ok() || mine[63] == 7.0);
  } else {
    EXPECT_EQ(result.status().reason(), Reason::worker_restarted);
    EXPECT_EQ(fetched.reason(), Reason::worker_restarted);
  }
  EXPECT_NE(worker(), first) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, RunFault,
                         ::testing::Values("run.before", "run.after", "run.before:2", "run.after:2",
                                           "run.end.before", "run.end.after"),
                         name_of_fault);

// The same where it writes down how far one has come.
class RunProgressFault : public Survival, public ::testing::WithParamInterface<const char*> {};

TEST_P(RunProgressFault, IsNeverForgotten) {
  start_to_fail_at(GetParam());
  const pid_t first = worker();
  const auto n = must(session->zeros<double>({64}));
  const auto done = must(session->zeros<bool>({64}));
  const ModelStep step(BoundPlan{counter(), {{"n", n}, {"limit", 1e300}, {"done", done}}});
  const KeptRun run = must(submit(*session, {&step, 1}, {endless, {}, {}}, kept_as("", n)));
  wait_until([&] { return must(run.state()).ended; });
  EXPECT_EQ(must(run.state()).error.reason(), Reason::worker_restarted);
  EXPECT_EQ(must(kept_runs(*session)).size(), 1u);
  EXPECT_NE(worker(), first) << "the fault point was never reached";
}
INSTANTIATE_TEST_SUITE_P(Each, RunProgressFault,
                         ::testing::Values("run.progress.before", "run.progress.after"), name_of_fault);

TEST_F(Survival, TheResultOfASubmittedRunIsStillThere) {
  start();
  std::optional<KeptRun> run;
  {
    const Session brief = connected();
    const auto n = must(brief.zeros<double>({40'000}));
    const auto done = must(brief.zeros<bool>({40'000}));
    const ModelStep step(BoundPlan{counter(), {{"n", n}, {"limit", 7.0}, {"done", done}}});
    const KeptRun submitted = must(submit(brief, {&step, 1}, {100, {}, {}}, kept_as("", n)));
    must(submitted.wait().status());
    run.emplace(*session, submitted.id());
  }
  wait_until([&] { return must(session->info()).sessions == 1; });
  for (int death = 0; death < 2; ++death) kill_worker();
  EXPECT_EQ(must(run->wait()).report.steps, 7);
  const auto mine = must(session->zeros<double>({40'000}));
  must(run->fetch({{"n", mine}}));
  EXPECT_EQ(mine[39'999], 7.0);
  kill_worker();
  EXPECT_EQ(run->state().status().reason(), Reason::unknown_run) << "it was fetched";
  EXPECT_LE(held().first, 1u) << "and its planes have gone";
}

}  // namespace
}  // namespace eagle::conformance
