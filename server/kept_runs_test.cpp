#include "server/kept_runs.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <limits>
#include <map>
#include <sstream>
#include <thread>

#include "eagle/v1/run.pb.h"
#include "eagle/v1/state.pb.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::oscillator_run;

constexpr double never = std::numeric_limits<double>::infinity();

// The entries of submitted runs, as a keeper would have them.
class RunLog final : public StateLog {
public:
  Status write(std::span<const StateChange> changes) override {
    const std::lock_guard lock(mutex_);
    for (const StateChange& change : changes) {
      entries_.erase(change.key);
      if (!change.gone && change.key.session == 0) entries_[change.key] = change.value;
      if (change.key.kind == StateKind::run) ++records_;
    }
    return {};
  }
  [[nodiscard]] std::map<StateKey, std::string> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }
  // How often the record of a run was written.
  [[nodiscard]] int records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }

private:
  mutable std::mutex mutex_;
  std::map<StateKey, std::string> entries_;
  int records_ = 0;
};

class KeptRunsTest : public ::testing::Test {
protected:
  // An oscillator run over planes of the session, of which x (plane 0) may be fetched.
  v1::SubmitRequest request(double t_end, std::int64_t max_steps = std::numeric_limits<std::int64_t>::max()) {
    v1::SubmitRequest request;
    *request.mutable_run() = oscillator_run(*session_, 100, t_end, max_steps).message;
    request.set_lease_s(60);
    v1::NamedView& x = *request.add_planes();
    x.set_name("x");
    for (const v1::Binding& binding : request.run().model(0).bindings()) {
      if (binding.argument() == "x") *x.mutable_view() = binding.view();
    }
    return request;
  }
  std::uint64_t submit(const v1::SubmitRequest& request) {
    const auto run = runs().submit(session_, request);
    EXPECT_TRUE(run.ok()) << run.status().to_string();
    return run.ok() ? *run : 0;
  }
  v1::KeptRun wait(const Session& session, std::uint64_t run) {
    for (;;) {
      v1::KeptRun state;
      const Status found = runs().get(session, run, state);
      EXPECT_TRUE(found.ok()) << found.to_string();
      if (!found.ok() || state.ended()) return state;
      std::this_thread::yield();
    }
  }
  // With a daemon that writes there.
  std::shared_ptr<RunLog> write_down() {
    auto log = std::make_shared<RunLog>();
    Daemon::Options options;
    options.log = log;
    session_.reset();
    daemon_ = server::testing::make_daemon(std::move(options));
    session_ = server::testing::open_session(*daemon_);
    return log;
  }
  KeptRuns& runs() { return daemon_->kept_runs(); }

  std::unique_ptr<Daemon> daemon_ = server::testing::make_daemon();
  std::shared_ptr<Session> session_ = server::testing::open_session(*daemon_);
};

TEST_F(KeptRunsTest, AreWrittenDownOnceAndTheirProgressByItself) {
  const auto log = write_down();
  v1::SubmitRequest named = request(never);
  named.set_name(std::string(256, 'n'));
  const std::uint64_t run = submit(named);
  const StateKey progress{0, StateKind::run_progress, run};
  while (!log->entries().contains(progress)) std::this_thread::yield();
  EXPECT_EQ(log->records(), 1);
  EXPECT_LT(log->entries().at(progress).size(), 32u) << "whatever the run's names are";

  // What the next worker makes of it.
  Daemon::Options left;
  left.restored.epoch = 1;
  left.restored.records = log->entries();
  std::size_t steps = 0;
  left.restores = [&steps] { ++steps; };
  v1::RunProgressRecord how_far;
  ASSERT_TRUE(how_far.ParseFromString(left.restored.records.at(progress)));
  const auto next = server::testing::make_daemon(std::move(left));
  EXPECT_EQ(steps, 2u) << "with each entry its keeper hears that it lives";
  const auto other = server::testing::open_session(*next);
  v1::KeptRun state;
  ASSERT_TRUE(next->kept_runs().get(*other, run, state).ok());
  EXPECT_TRUE(state.ended());
  EXPECT_GT(state.progress().steps(), 0);
  EXPECT_EQ(state.progress().steps(), how_far.steps());

  ASSERT_TRUE(runs().cancel(*session_, run).ok());
  wait(*session_, run);
  while (log->entries().contains(progress)) std::this_thread::yield();
  EXPECT_EQ(log->records(), 2) << "and when it ended";
  v1::FetchRunRequest fetch;
  fetch.set_run(run);
  ASSERT_TRUE(runs().fetch(*session_, fetch).ok());
  EXPECT_TRUE(log->entries().empty());
}

TEST_F(KeptRunsTest, AreNotWrittenDownAfterTheirLease) {
  const auto log = write_down();
  v1::SubmitRequest brief = request(never);
  brief.set_lease_s(0.01);
  const std::uint64_t run = submit(brief);
  v1::KeptRun state;
  while (runs().get(*session_, run, state).ok()) std::this_thread::yield();
  while (daemon_->executor().admitted() > 0 || daemon_->underway().count() > 0) std::this_thread::yield();
  EXPECT_TRUE(log->entries().empty());
}

TEST_F(KeptRunsTest, GoOnWhenTheirSessionEnds) {
  const std::uint64_t run = submit(request(0.5));
  daemon_->sessions().end(session_);
  const auto other = server::testing::open_session(*daemon_);
  const v1::KeptRun state = wait(*other, run);
  EXPECT_EQ(state.result().status(), v1::FINISHED) << state.error();
  EXPECT_EQ(state.result().report().finished(), 100);
  ASSERT_EQ(state.planes_size(), 1);
  EXPECT_EQ(state.planes(0).shape(0), 100);
}

TEST_F(KeptRunsTest, DoNotExistForAnotherUser) {
  const std::uint64_t run = submit(request(never));
  Principal somebody;
  somebody.uid = session_->principal().uid + 1;
  const auto theirs = daemon_->sessions().open(somebody, "other");
  ASSERT_TRUE(theirs.ok());
  v1::KeptRun state;
  EXPECT_EQ(runs().get(*theirs->session, run, state).reason(), Reason::unknown_run);
  EXPECT_FALSE(runs().cancel(*theirs->session, run).ok());
  v1::ListRunsReply list;
  runs().list(*theirs->session, list);
  EXPECT_EQ(list.runs_size(), 0);
  EXPECT_TRUE(runs().cancel(*session_, run).ok());
}

TEST_F(KeptRunsTest, AreNotFetchedWhileTheyCompute) {
  const std::uint64_t run = submit(request(never));
  v1::FetchRunRequest fetch;
  fetch.set_run(run);
  EXPECT_EQ(runs().fetch(*session_, fetch).reason(), Reason::graph_state);
  v1::KeptRun begun;
  while (begun.progress().steps() == 0) {
    begun.Clear();
    ASSERT_TRUE(runs().get(*session_, run, begun).ok());
  }
  EXPECT_TRUE(runs().cancel(*session_, run).ok());
  EXPECT_EQ(wait(*session_, run).result().status(), v1::CANCELLED);
  EXPECT_TRUE(runs().fetch(*session_, fetch).ok());
  v1::KeptRun state;
  EXPECT_FALSE(runs().get(*session_, run, state).ok()) << "kept no longer";
}

// What `fetch` copies x of the run into: an array of the session's own.
v1::FetchRunRequest fetch_of(std::uint64_t run, server::testing::RunScene& scene,
                             const server::testing::PlaneArray<double>& into) {
  v1::FetchRunRequest fetch;
  fetch.set_run(run);
  *fetch.mutable_planes() = scene.message.planes();
  v1::NamedView& named = *fetch.add_into();
  named.set_name("x");
  eagle::testing::set_view(*named.mutable_view(), into.array);
  return fetch;
}

TEST_F(KeptRunsTest, AreFetchedOnce) {
  const std::uint64_t run = submit(request(0.5));
  wait(*session_, run);
  server::testing::RunScene own(*session_);
  const auto into = own.plane<double>(100, -1.0);
  const v1::FetchRunRequest fetch = fetch_of(run, own, into);
  EXPECT_EQ(runs().fetch(*session_, fetch, [] { return true; }).reason(), Reason::cancelled);
  EXPECT_EQ(into.values[0], -1.0) << "nobody waits for it";
  v1::FetchRunRequest other = fetch;
  other.mutable_into(0)->set_name("y");
  EXPECT_EQ(runs().fetch(*session_, other).reason(), Reason::unknown_name);
  EXPECT_TRUE(runs().fetch(*session_, fetch).ok());
  EXPECT_GT(into.values[99], 0.0);
  EXPECT_EQ(runs().fetch(*session_, fetch).reason(), Reason::unknown_run);
}

// 2^58 elements of one page, in an array that has one element.
TEST_F(KeptRunsTest, AreNotFetchedIntoArraysThatHaveNoEnd) {
  v1::SubmitRequest endless = request(0.5);
  v1::View& from = *endless.mutable_planes(0)->mutable_view();
  from.set_shape(0, std::int64_t{1} << 58);
  from.set_strides(0, 0);
  const std::uint64_t run = submit(endless);
  wait(*session_, run);
  server::testing::RunScene own(*session_);
  v1::FetchRunRequest fetch = fetch_of(run, own, own.plane<double>(100, -1.0));
  *fetch.mutable_into(0)->mutable_view()->mutable_shape() = from.shape();
  *fetch.mutable_into(0)->mutable_view()->mutable_strides() = from.strides();
  const Status refused = runs().fetch(*session_, fetch);
  EXPECT_EQ(refused.reason(), Reason::bad_value) << refused.to_string();
}

// Elements of dtype `other` are as large as each view says.
TEST_F(KeptRunsTest, AreNotFetchedIntoElementsOfAnotherSize) {
  v1::SubmitRequest whole = request(0.5);
  v1::View& from = *whole.mutable_planes(0)->mutable_view();
  from.set_dtype(v1::DTYPE_OTHER);
  from.set_item_bytes(400);
  from.set_shape(0, 2);
  from.set_strides(0, 400);
  const std::uint64_t run = submit(whole);
  wait(*session_, run);
  server::testing::RunScene own(*session_);
  const auto into = own.plane<double>(1, -1.0);
  v1::FetchRunRequest fetch = fetch_of(run, own, into);
  v1::View& to = *fetch.mutable_into(0)->mutable_view();
  to.set_dtype(v1::DTYPE_OTHER);
  to.set_item_bytes(1);
  to.set_shape(0, 2);
  to.set_strides(0, 1);
  EXPECT_EQ(runs().fetch(*session_, fetch).reason(), Reason::wrong_shape);
  EXPECT_EQ(into.values[0], -1.0);
}

TEST_F(KeptRunsTest, RefuseWhatNeedsTheClientAndLeasesThatCannotBe) {
  v1::SubmitRequest hosted = request(1.0);
  hosted.mutable_run()->add_host_steps()->set_every(1);
  EXPECT_EQ(runs().submit(session_, hosted).status().reason(), Reason::graph_state);
  for (const double lease : {0.0, -1.0, 1e12, std::numeric_limits<double>::quiet_NaN()}) {
    v1::SubmitRequest leased = request(1.0);
    leased.set_lease_s(lease);
    EXPECT_EQ(runs().submit(session_, leased).status().reason(), Reason::bad_value) << lease;
  }
}

// What is written down is handed to each next worker.
TEST_F(KeptRunsTest, RefuseTextsThatAreTooLongToBeKept) {
  const std::string longest(256, 'm');
  v1::SubmitRequest fits = request(0.5);
  fits.set_mask(longest);
  fits.set_attempt(longest);
  const std::uint64_t run = submit(fits);
  EXPECT_EQ(submit(fits), run) << "the same attempt";
  v1::SubmitRequest named = request(0.5), masked = named, again = named;
  named.set_name(longest + "m");
  masked.set_mask(longest + "m");
  again.set_attempt(longest + "m");
  for (const auto& [what, one] : {std::pair{"a name", named}, {"a mask", masked}, {"an attempt", again}}) {
    const Status refused = runs().submit(session_, one).status();
    EXPECT_EQ(refused.reason(), Reason::bad_value);
    EXPECT_EQ(refused.message(), "run: expected " + std::string(what) +
                                     " of at most 256 bytes (label_bytes), found 257; give a shorter one");
  }
  masked.set_mask("\xff");
  EXPECT_EQ(runs().submit(session_, masked).status().reason(), Reason::malformed_graph);
}

TEST_F(KeptRunsTest, AreChargedForWhatIsKeptOfThem) {
  const std::uint64_t before = daemon_->plane_budget().other_bytes();
  v1::SubmitRequest named = request(0.5);
  for (int i = 0; i < 100; ++i) {
    *named.add_planes() = named.planes(0);
    named.mutable_planes(i + 1)->set_name(std::string(200, 'x') + std::to_string(i));
  }
  const std::uint64_t run = submit(named);
  EXPECT_GT(daemon_->plane_budget().other_bytes(), before + 2 * 100 * 200);
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::plane_bytes)] = 1;
  session_->tenant()->set_policy(policy);
  const Status refused = runs().submit(session_, named).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("tenant_plane_bytes"), std::string::npos) << refused.message();
  wait(*session_, run);
  v1::FetchRunRequest fetch;
  fetch.set_run(run);
  ASSERT_TRUE(runs().fetch(*session_, fetch).ok());
  while (daemon_->plane_budget().other_bytes() > before) std::this_thread::yield();
}

// Its principal is its session, and nobody else could ever fetch or cancel the run.
TEST_F(KeptRunsTest, AreNotKeptForNobodyInParticular) {
  const auto opened = daemon_->sessions().open(remote_principal(Identity::anonymous, "1"), "test");
  ASSERT_TRUE(opened.ok());
  session_ = opened->session;
  const Status refused = runs().submit(session_, request(0.5)).status();
  EXPECT_EQ(refused.reason(), Reason::permission_denied);
  EXPECT_NE(refused.message().find("token"), std::string::npos) << refused.message();
}

// Whoever may submit runs may do so at will: the lines of others stay in the log.
TEST_F(KeptRunsTest, AreNotAllToldOfInTheLog) {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  v1::SubmitRequest one = request(0.001, 1);
  v1::FetchRunRequest fetch;
  int submitted = 0;
  for (int i = 0; i < 3 * static_cast<int>(LogLimit::lines); ++i) {
    const auto run = runs().submit(session_, one);
    if (!run.ok()) continue;
    ++submitted;
    wait(*session_, *run);
    fetch.set_run(*run);
    EXPECT_TRUE(runs().fetch(*session_, fetch).ok());
  }
  spdlog::set_default_logger(before);
  const std::string text = said.str();
  int lines = 0;
  for (std::size_t at = 0; (at = text.find(" submitted by ", at)) != std::string::npos; ++at) ++lines;
  EXPECT_LT(lines, submitted);
}

TEST_F(KeptRunsTest, AreBoundedInAll) {
  Daemon::Options options;
  options.limits.kept_runs_in_all = 2;
  session_.reset();
  daemon_ = server::testing::make_daemon(std::move(options));
  session_ = server::testing::open_session(*daemon_);
  submit(request(0.5));
  submit(request(0.5));
  Principal somebody;
  somebody.uid = session_->principal().uid + 1;
  const auto theirs = daemon_->sessions().open(somebody, "other");
  ASSERT_TRUE(theirs.ok());
  session_ = theirs->session;
  const Status refused = runs().submit(session_, request(0.5)).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("kept_runs_in_all"), std::string::npos) << refused.message();
}

TEST_F(KeptRunsTest, TellWhyARunCouldNotBegin) {
  v1::SubmitRequest broken = request(1.0);
  broken.mutable_run()->mutable_model(0)->set_kernel(7);
  const v1::KeptRun state = wait(*session_, submit(broken));
  EXPECT_FALSE(state.has_result());
  EXPECT_EQ(state.reason(), info(Reason::malformed_graph).wire_name);
}

TEST_F(KeptRunsTest, AreEndedWithTheDaemon) {
  submit(request(never));
  const std::atomic<bool> hurry = true;
  daemon_->stop(hurry);
  EXPECT_EQ(daemon_->executor().admitted(), 0u);
}

TEST_F(KeptRunsTest, ADrainWaitsForOnesThatEndAndCancelsNone) {
  submit(request(1.0));  // it may still be at the compiler
  const std::atomic<bool> hurry = false;
  EXPECT_EQ(daemon_->stop(hurry), 0u);
}

}  // namespace
}  // namespace eagle::server
