#include "server/sessions.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "eagle/v1/state.pb.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

// Memory goes on a thread of its own.
void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class SessionsTest : public ::testing::Test {
protected:
  static Limits few_sessions() {
    Limits limits;
    limits.sessions = 2;
    return limits;
  }
  Sessions::Opened open() {
    auto opened = sessions_.open(Principal{1000, 1000, 1}, "test");
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return *std::move(opened);
  }

  const Limits limits_ = few_sessions();
  PlaneBudget budget_{1 << 20, 100};
  Sessions sessions_{budget_, limits_};
};

TEST_F(SessionsTest, ASessionIsFoundByItsSecretOnly) {
  const auto a = open();
  const auto b = open();
  EXPECT_NE(a.secret, b.secret);
  EXPECT_NE(a.session->id(), b.session->id());
  EXPECT_EQ(*sessions_.find(to_hex(a.secret)), a.session);
  for (const std::string& wrong :
       {std::string(), std::string(64, '0'), to_hex(a.secret).substr(1), std::string("x")}) {
    EXPECT_EQ(sessions_.find(wrong).status().reason(), Reason::unauthenticated) << wrong;
  }
}

TEST_F(SessionsTest, CanBeLookedIntoByTheirUserAndByWhomTheDaemonRunsAs) {
  constexpr uid_t a_user = 40'001;
  constexpr uid_t another = 40'002;
  const auto one = sessions_.open(Principal{a_user, a_user, 1}, "one").value();
  const auto other = sessions_.open(Principal{another, another, 2}, "other").value();
  const auto seen_by = [&](uid_t uid) { return sessions_.visible_to(Principal{uid, uid, 3}); };
  EXPECT_EQ(seen_by(a_user), std::vector{one.session});
  EXPECT_EQ(seen_by(another), std::vector{other.session});
  EXPECT_TRUE(seen_by(40'003).empty());
  EXPECT_EQ(seen_by(0).size(), 2u);
  EXPECT_EQ(seen_by(::geteuid()).size(), 2u);
}

TEST_F(SessionsTest, AnEndedSessionIsFoundNoMore) {
  const auto opened = open();
  sessions_.end(opened.session);
  EXPECT_EQ(sessions_.find(to_hex(opened.secret)).status().reason(), Reason::unauthenticated);
  EXPECT_EQ(sessions_.size(), 0u);
  sessions_.end(opened.session);  // a second end is none
}

TEST_F(SessionsTest, TheirNumberIsBounded) {
  const auto a = open();
  const auto b = open();
  EXPECT_EQ(sessions_.open(Principal{}, "c").status().reason(), Reason::quota);
  sessions_.end(a.session);
  EXPECT_TRUE(sessions_.open(Principal{}, "c").ok());
}

TEST_F(SessionsTest, LongClientNamesAreRefused) {
  EXPECT_EQ(sessions_.open(Principal{}, std::string(limits_.label_bytes + 1, 'n')).status().reason(),
            Reason::bad_value);
}

// A child that waits for its end.
class Process {
public:
  Process() : pid_(::fork()) {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
    fd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

private:
  pid_t pid_;
  UniqueFd fd_;
};

TEST_F(SessionsTest, ProcessesThatHaveEndedAreForgottenByThePlanesTheyFetched) {
  const auto opened = *sessions_.open(Principal{1000, 1000, 1}, "test");
  const std::vector<PlaneStore::Spec> specs = {{4096, "weights"}};
  const auto made = opened.session->planes().create(specs);
  ASSERT_TRUE(made.ok());
  PlaneBytes& bytes = *made->front().plane->bytes();
  const auto fetch = [&bytes](std::uint64_t session, const Process& process) {
    const auto known =
        std::make_shared<const ClientProcess>(ClientProcess{process.pid(), UniqueFd(::dup(process.fd()))});
    bytes.fetched_by(session, known);
    return std::weak_ptr(known);
  };
  const Process stays;
  std::vector<std::weak_ptr<const ClientProcess>> seen = {fetch(1, stays)};
  for (std::uint64_t session = 2; session <= 100; ++session) {
    const Process process;
    seen.push_back(fetch(session, process));
  }
  EXPECT_LT(std::count_if(seen.begin(), seen.end(), [](const auto& known) { return !known.expired(); }), 20);
  EXPECT_TRUE(bytes.mapped_by(1));
}

// Each takes a descriptor here and in the keeper.
TEST_F(SessionsTest, ASessionIsHadByFewProcessesThatStillRun) {
  const auto opened = open();
  std::vector<StateChange> changes;
  std::vector<std::unique_ptr<Process>> processes;
  const auto admit = [&](const Process& process) {
    return opened.session->admit(process.fd(), process.pid(), changes).status();
  };
  for (std::size_t i = 0; i < limits_.processes; ++i) {
    processes.push_back(std::make_unique<Process>());
    ASSERT_TRUE(admit(*processes.back()).ok()) << i;
  }
  const Process another;
  const Status refused = admit(another);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("(processes)"), std::string::npos) << refused.message();
  EXPECT_TRUE(admit(*processes.front()).ok()) << "it is known";
  processes.back()->kill();
  EXPECT_TRUE(admit(another).ok());
}

TEST_F(SessionsTest, PlanesThatALivingClientMayHaveMappedStayChargedUntilItEnds) {
  Process client;
  Sessions::OpenOptions options;
  options.process = client.fd();
  auto opened = *sessions_.open(Principal{1000, 1000, client.pid()}, "test", options);
  const std::vector<PlaneStore::Spec> specs = {{4096, "seen"}, {4096, "unseen"}};
  {
    const auto made = opened.session->planes().create(specs);
    ASSERT_TRUE(made.ok());
    const std::string_view token(reinterpret_cast<const char*>(made->front().token.data()),
                                 made->front().token.size());
    ASSERT_TRUE(opened.session->planes().redeemable({&token, 1}, opened.process).ok());
  }
  const std::uint64_t id = opened.session->id();
  sessions_.end(opened.session);
  opened = {};
  EXPECT_TRUE(sessions_.keeps_mapped(id));
  wait_until([&] { return budget_.used_planes() == 1; });  // the other one goes
  sessions_.free_unmapped();
  EXPECT_EQ(budget_.used_planes(), 1u);
  client.kill();
  sessions_.free_unmapped();
  EXPECT_FALSE(sessions_.keeps_mapped(id));
  wait_until([&] { return budget_.used_planes() == 0; });
}

// Another process went on with the session and closed it: who has mapped a plane counts, and nobody else.
TEST_F(SessionsTest, PlanesStayChargedForWhoFetchedThem) {
  Process first;
  Process second;
  Sessions::OpenOptions options;
  options.process = first.fd();
  auto opened = *sessions_.open(Principal{1000, 1000, first.pid()}, "test", options);
  const auto fetch = [&](const ProcessRef& process) {
    const PlaneStore::Spec spec{4096, "p"};
    const auto made = opened.session->planes().create({&spec, 1});
    const std::string_view token(reinterpret_cast<const char*>(made->front().token.data()),
                                 made->front().token.size());
    EXPECT_TRUE(opened.session->planes().redeemable({&token, 1}, process).ok());
  };
  fetch(opened.process);
  Sessions::Resumption resumption;
  resumption.session = opened.session->id();
  resumption.secret = opened.secret;
  resumption.process = second.fd();
  auto resumed = *sessions_.resume(Principal{1000, 1000, second.pid()}, resumption);
  fetch(resumed.process);
  fetch(resumed.process);
  sessions_.end(resumed.session);
  opened = {};
  resumed = {};
  EXPECT_EQ(budget_.used_planes(), 3u);
  second.kill();
  sessions_.free_unmapped();
  wait_until([&] { return budget_.used_planes() == 1; });
  first.kill();
  sessions_.free_unmapped();
  wait_until([&] { return budget_.used_planes() == 0; });
}

TEST_F(SessionsTest, EndingThemAllEndsEach) {
  const auto a = open();
  const auto b = open();
  sessions_.end_all();
  EXPECT_EQ(sessions_.size(), 0u);
  const PlaneStore::Spec spec{4096, "late"};
  EXPECT_EQ(a.session->planes().create({&spec, 1}).status().reason(), Reason::session_closed);
}

// ---- leases

using std::chrono::seconds;

class Leases : public SessionsTest {
protected:
  Sessions::Opened open_for(seconds lease) {
    Sessions::OpenOptions options;
    options.lease = lease;
    return sessions_.open(user_, "test", options).value();
  }
  static Sessions::Resumption by(const Sessions::Opened& opened) {
    Sessions::Resumption resumption;
    resumption.session = opened.session->id();
    resumption.secret = opened.secret;
    return resumption;
  }
  const Principal user_{1000, 1000, 1};
};

TEST_F(Leases, WithoutOneASessionEndsWithItsConnection) {
  const auto opened = open_for(seconds(0));
  sessions_.detach(opened.session, opened.attachment);
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Leases, KeepASessionForSoLong) {
  const auto opened = open_for(seconds(60));
  sessions_.detach(opened.session, opened.attachment);
  sessions_.expire(Sessions::Clock::now() + seconds(50));
  EXPECT_EQ(sessions_.size(), 1u);
  sessions_.expire(Sessions::Clock::now() + seconds(61));
  EXPECT_EQ(sessions_.size(), 0u);
  EXPECT_TRUE(opened.session->ended());
}

TEST_F(Leases, AResumedSessionIsTheSameAndKept) {
  const auto first = open_for(seconds(60));
  sessions_.detach(first.session, first.attachment);
  const auto second = sessions_.resume(user_, by(first));
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(second->session, first.session);
  sessions_.expire(Sessions::Clock::now() + seconds(1000));
  EXPECT_EQ(sessions_.size(), 1u);
}

TEST_F(Leases, WhoCannotResumeLeavesItToWhoComesNext) {
  const auto first = open_for(seconds(60));
  sessions_.detach(first.session, first.attachment);
  Sessions::Resumption broken = by(first);
  broken.process = 1 << 20;  // no descriptor, as if none were left to copy it to
  EXPECT_EQ(sessions_.resume(user_, broken).status().reason(), Reason::system);
  EXPECT_FALSE(sessions_.attached(*first.session));
  EXPECT_TRUE(sessions_.resume(user_, by(first)).ok());
}

TEST_F(Leases, WhoCannotResumeLeavesItsEndToItsLease) {
  const auto first = open_for(seconds(60));
  sessions_.detach(first.session, first.attachment);
  Sessions::Resumption broken = by(first);
  broken.process = 1 << 20;
  EXPECT_FALSE(sessions_.resume(user_, broken).ok());
  sessions_.expire(Sessions::Clock::now() + seconds(1000));
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Leases, WhoResumesHasItAlone) {
  const auto first = open_for(seconds(0));
  const auto second = sessions_.resume(user_, by(first)).value();
  EXPECT_FALSE(sessions_.attached(*first.session, first.attachment));
  sessions_.detach(first.session, first.attachment);
  EXPECT_EQ(sessions_.size(), 1u) << "that connection had it no more";
  sessions_.detach(second.session, second.attachment);
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Leases, NobodyElseResumes) {
  const auto opened = open_for(seconds(60));
  Sessions::Resumption forged = by(opened);
  forged.secret[7] ^= 1;
  EXPECT_EQ(sessions_.resume(user_, forged).status().reason(), Reason::unauthenticated);
  forged = by(opened);
  ++forged.session;
  EXPECT_EQ(sessions_.resume(user_, forged).status().reason(), Reason::unauthenticated);
  EXPECT_EQ(sessions_.resume(Principal{1001, 1001, 1}, by(opened)).status().reason(),
            Reason::unauthenticated);
  EXPECT_EQ(sessions_.resume(Principal{0, 0, 1}, by(opened)).status().reason(), Reason::unauthenticated);
  EXPECT_TRUE(sessions_.attached(*opened.session, opened.attachment));
}

TEST_F(Leases, AClientThatLeavesHasNone) {
  const auto opened = open_for(seconds(60));
  EXPECT_TRUE(sessions_.leave(opened.session).ok());
  sessions_.detach(opened.session, opened.attachment);
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Leases, AreNotForEver) {
  Sessions::OpenOptions options;
  options.lease = longest_lease + seconds(1);
  EXPECT_EQ(sessions_.open(user_, "test", options).status().reason(), Reason::bad_value);
}

// ---- what another worker left

class Restored : public Leases {
protected:
  v1::SessionRecord record() {
    v1::SessionRecord record;
    const Digest digest = digest_of(secret_);
    record.set_secret_digest(digest.data(), digest.size());
    record.set_uid(user_.uid);
    record.set_pid(77);
    return record;
  }
  Sessions::Resumption resumption() {
    Sessions::Resumption resumption;
    resumption.session = 5;
    resumption.secret = secret_;
    resumption.last_launch = 10;
    return resumption;
  }
  const Secret secret_{1, 2, 3};
};

TEST_F(Restored, SessionsAreResumedBeforeAnythingElse) {
  ASSERT_TRUE(sessions_.restore(5, record()).ok());
  EXPECT_EQ(sessions_.find(to_hex(secret_)).status().reason(), Reason::worker_restarted);
  ASSERT_TRUE(sessions_.resume(user_, resumption()).ok());
  EXPECT_TRUE(sessions_.find(to_hex(secret_)).ok());
}

TEST_F(Restored, NoLaunchOfBeforeRunsAgain) {
  const auto session = sessions_.restore(5, record()).value();
  ASSERT_TRUE(sessions_.resume(user_, resumption()).ok());
  const auto nobody = [](const LaunchOutcome&) {};
  EXPECT_EQ(session->outcomes().admit({1, 1, 10}, nobody).status().reason(), Reason::worker_restarted);
  EXPECT_TRUE(session->outcomes().admit({1, 1, 11}, nobody).ok());
}

TEST_F(Restored, AClientThatIsIdleHasAllTheTime) {
  ASSERT_TRUE(sessions_.restore(5, record()).ok());
  sessions_.expire(Sessions::Clock::now() + std::chrono::hours(1000));
  EXPECT_EQ(sessions_.size(), 1u);
  sessions_.client_died(5);
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Restored, AClientThatCannotBeSeenHasAGrace) {
  v1::SessionRecord unseen = record();
  unseen.set_pid(0);
  ASSERT_TRUE(sessions_.restore(5, unseen).ok());
  sessions_.expire(Sessions::Clock::now() + orphan_grace - seconds(1));
  EXPECT_EQ(sessions_.size(), 1u);
  sessions_.expire(Sessions::Clock::now() + orphan_grace + seconds(1));
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Restored, WhatItsClientLeftEnds) {
  v1::SessionRecord left = record();
  left.set_left(true);
  ASSERT_TRUE(sessions_.restore(5, left).ok());
  sessions_.expire();
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(Restored, WhatNobodyWasToldOfEndsWhenItIsAskedForAgain) {
  v1::SessionRecord unanswered = record();
  unanswered.set_attempt("once");
  ASSERT_TRUE(sessions_.restore(5, unanswered).ok());
  Sessions::OpenOptions options;
  options.attempt = "once";
  const auto of_another = sessions_.open(Principal{1001, 1001, 1}, "somebody else", options).value();
  EXPECT_EQ(sessions_.size(), 2u) << "another user's attempt ends nothing";
  sessions_.end(of_another.session);
  ASSERT_TRUE(sessions_.open(user_, "test", options).ok());
  EXPECT_EQ(sessions_.size(), 1u);
}

TEST(Loggable, IsPrintableAndShort) {
  EXPECT_EQ(loggable("python3"), "python3");
  EXPECT_EQ(loggable("a\nb\x1b[31m\"\xff"), "a?b?[31m??");
  EXPECT_EQ(loggable(std::string(1000, 'x')).size(), 64u);
}

}  // namespace
}  // namespace eagle::server
