// Published arrays and attachments, without a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "server/attachments.h"
#include "server/daemon.h"
#include "server/published.h"
#include "server/ring/ring.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using namespace std::chrono_literals;
using server::testing::Mailbox;
using server::testing::make_daemon;
using ::testing::HasSubstr;

class Sharing : public ::testing::Test {
protected:
  std::shared_ptr<Session> session_of(const Principal& principal) {
    auto opened = daemon_->sessions().open(principal, "test");
    EXPECT_TRUE(opened.ok());
    return opened->session;
  }
  static std::shared_ptr<Plane> plane_in(Session& session) {
    const PlaneStore::Spec spec{4096, "p"};
    return session.planes().create({&spec, 1})->front().plane;
  }
  Status publish(const std::shared_ptr<Session>& owner, const std::string& name,
                 std::set<std::string> to = {}, bool writable = false) {
    plane::View view;
    view.shape = {512};
    view.strides = {8};
    return daemon_->published().publish(owner, name,
                                        {plane_in(*owner)->bytes(), view, writable, std::move(to)});
  }
  StatusOr<Published::Opened> open(const std::shared_ptr<Session>& caller, const std::string& name,
                                   const std::string& owner = {}) {
    return daemon_->published().open(caller, name, owner);
  }

  const Principal alice_{1001, 1001, 0, Identity::user, {}};
  const Principal bob_ = remote_principal(Identity::token, "bob");
  std::unique_ptr<Daemon> daemon_ = make_daemon();
};

TEST_F(Sharing, OneselfMayOpenAndWriteOthersNeedAGrant) {
  const auto alice = session_of(alice_), also = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "mine").ok());
  ASSERT_TRUE(publish(alice, "ours", {"token:bob"}).ok());
  EXPECT_FALSE(open(also, "mine")->read_only);
  EXPECT_EQ(open(bob, "mine").status().reason(), Reason::unknown_name);
  EXPECT_TRUE(open(bob, "ours")->read_only);
  EXPECT_EQ(open(bob, "ours")->owner, "uid:1001");
}

// Who asks learns nothing about names that are not for them.
TEST_F(Sharing, NotYoursReadsLikeNotThere) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x").ok());
  const std::string there = open(bob, "x").status().message();
  EXPECT_EQ(open(bob, "y").status().message(), std::string(there).replace(there.find("'x'"), 3, "'y'"));
  EXPECT_EQ(daemon_->published().withdraw(*bob, "x", {}).status().reason(), Reason::unknown_name);
}

// Two planes over the same bytes would hide conflicts from each other.
TEST_F(Sharing, ASessionHasOnePlaneForTheSameBytes) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x", {"*"}).ok());
  EXPECT_EQ(open(alice, "x")->plane.plane, alice->planes().list().front());
  EXPECT_EQ(open(bob, "x")->plane.plane, open(bob, "x")->plane.plane);
  EXPECT_NE(open(bob, "x")->plane.plane, alice->planes().list().front());
}

// Waits for its client, until it is stopped.
class Parked final : public Job, public std::enable_shared_from_this<Parked> {
public:
  explicit Parked(Executor& executor) : executor_(executor) {}
  Next advance() override {
    if (why.ok()) return Next::parked;
    return Next::done;
  }
  void cancel() override { executor_.resume(shared_from_this()); }
  void stop(const Status& reason) override {
    why = reason;
    cancel();
  }
  Status why;

private:
  Executor& executor_;
};

TEST_F(Sharing, WhoReadsAWithdrawnArrayKeepsItsOwnerWaitingNoLonger) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x", {"token:bob"}).ok());
  const auto opened = open(bob, "x")->plane.plane;
  graph::Touches touches;
  touches.reads.push_back({"x", {0, 0, plane::DType::f64, 8, {512}, {8}}});
  const PlaneBytes* const bytes = opened->bytes().get();
  const auto footprint = Footprint::of({&touches, 1}, {&bytes, 1});
  Executor& executor = daemon_->executor();
  const auto bobs = std::make_shared<Parked>(executor), alices = std::make_shared<Parked>(executor);
  ASSERT_TRUE(executor.submit(bobs, {bob->tenant(), {bob->id()}, footprint}).ok());
  ASSERT_TRUE(executor.submit(alices, {alice->tenant(), {alice->id()}, footprint}).ok());
  while (!executor.at_host_call(bob->id()) || !executor.at_host_call(alice->id())) std::this_thread::yield();
  ASSERT_TRUE(daemon_->withdraw(*alice, "x", {"token:carol"}).ok());
  EXPECT_TRUE(bobs->why.ok()) << "he still has the array";
  ASSERT_TRUE(daemon_->withdraw(*alice, "x", {"token:bob"}).ok());
  EXPECT_THAT(bobs->why.message(), HasSubstr("withdrawn by its owner"));
  EXPECT_TRUE(alices->why.ok()) << "it is her array";
  alices->stop({Reason::cancelled, "the test is over"});
  const std::atomic<bool> never = false;
  executor.wait_until_idle(never);
}

TEST_F(Sharing, AWithdrawnGrantReleasesThePlaneAndAnotherStays) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  const auto carol = session_of(remote_principal(Identity::certificate, "carol"));
  ASSERT_TRUE(publish(alice, "x", {"token:bob", "certificate:carol"}, true).ok());
  const auto of_bob = open(bob, "x")->plane.plane, of_carol = open(carol, "x")->plane.plane;
  ASSERT_TRUE(daemon_->published().withdraw(*alice, "x", {"token:bob"}).ok());
  EXPECT_TRUE(of_bob->released());
  EXPECT_EQ(bob->planes().find(of_bob->id()).status().reason(), Reason::unknown_plane);
  EXPECT_EQ(open(bob, "x").status().reason(), Reason::unknown_name);
  EXPECT_FALSE(of_carol->released());
  EXPECT_FALSE(open(carol, "x")->read_only);
  ASSERT_TRUE(daemon_->published().withdraw(*alice, "x", {}).ok());
  EXPECT_TRUE(of_carol->released());
  EXPECT_EQ(open(alice, "x").status().reason(), Reason::unknown_name);
}

// Each takes memory in both processes, however small what it is over.
TEST_F(Sharing, AnOpenedArrayIsChargedAndCountsForWhoOpenedIt) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x", {"token:bob"}).ok());
  ASSERT_TRUE(publish(alice, "y", {"token:bob"}).ok());
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::planes)] = 1;
  bob->tenant()->set_policy(policy);
  const std::uint64_t before = daemon_->plane_budget().other_bytes();
  const auto opened = open(bob, "x");
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(open(bob, "x").ok()) << "it is the same plane";
  EXPECT_EQ(daemon_->plane_budget().other_bytes(), before + PlaneStore::entry_bytes);
  const Status refused = open(bob, "y").status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_THAT(refused.message(), HasSubstr("tenant_planes"));
  EXPECT_EQ(daemon_->plane_budget().other_bytes(), before + PlaneStore::entry_bytes);
}

TEST_F(Sharing, ARingIsChargedAsLongAsItsSession) {
  const auto alice = session_of(alice_);
  const std::uint64_t before = daemon_->plane_budget().other_bytes();
  ASSERT_TRUE(daemon_->open_ring(alice).ok());
  EXPECT_EQ(daemon_->plane_budget().other_bytes(), before + sizeof(ring::Memory));
  daemon_->sessions().end(alice);
  while (daemon_->plane_budget().other_bytes() > before) std::this_thread::yield();
}

TEST_F(Sharing, NamesAndPrincipalsAreChecked) {
  const auto alice = session_of(alice_);
  ASSERT_TRUE(publish(alice, "x").ok());
  EXPECT_THAT(publish(alice, "x").message(), HasSubstr("published already"));
  EXPECT_EQ(publish(alice, "").reason(), Reason::bad_value);
  EXPECT_EQ(publish(alice, std::string(257, 'n')).reason(), Reason::bad_value);
  for (const char* principal : {"bob", "uid:", "uid:-1", "uid:1x", "token:", "certificate", "", "**"}) {
    EXPECT_EQ(publish(alice, "y", {principal}).reason(), Reason::bad_value) << principal;
  }
}

TEST_F(Sharing, WhoOpensAnArrayAgainHoldsItOnce) {
  const auto alice = session_of(alice_), bob = session_of(bob_), also = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x", {"token:bob"}).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(open(bob, "x").ok());
  EXPECT_EQ(daemon_->published().holders(), 1u);
  ASSERT_TRUE(open(also, "x").ok());
  EXPECT_EQ(daemon_->published().holders(), 2u);
  // The plane of now is the one that goes with the grant.
  const auto first = open(bob, "x")->plane.plane;
  const graph::PlaneId id = first->id();
  ASSERT_TRUE(bob->planes().release({&id, 1}).ok());
  const auto second = open(bob, "x")->plane.plane;
  EXPECT_EQ(daemon_->published().holders(), 2u);
  ASSERT_TRUE(daemon_->published().withdraw(*alice, "x", {}).ok());
  EXPECT_TRUE(second->released());
}

TEST_F(Sharing, AnArrayIsGrantedToSoManyAndNoMore) {
  const auto alice = session_of(alice_);
  std::set<std::string> many;
  while (many.size() <= daemon_->limits().grantees) many.insert("uid:" + std::to_string(many.size()));
  const Status refused = publish(alice, "x", many);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_THAT(refused.message(), HasSubstr("grantees"));
  many.erase(many.begin());
  EXPECT_TRUE(publish(alice, "x", many).ok());
}

// What is written down is handed to each next worker.
TEST_F(Sharing, NamesAndAttemptsAreNoLongerThanLabels) {
  const auto alice = session_of(alice_);
  const std::string longest(daemon_->limits().label_bytes, 'n');
  const auto publish_by = [&](const std::string& name, const std::string& attempt) {
    return daemon_->published().publish(
        alice, name,
        {plane_in(*alice)->bytes(), {0, 0, plane::DType::f64, 8, {512}, {8}}, false, {}, attempt});
  };
  EXPECT_TRUE(publish_by(longest, longest).ok());
  for (const Status& refused :
       {publish_by(longest + "n", ""), publish_by("x", longest + "n"), publish_by("", "")})
    EXPECT_EQ(refused.reason(), Reason::bad_value) << refused.to_string();
  EXPECT_THAT(publish_by("x", longest + "n").message(), HasSubstr("an attempt of at most 256 bytes"));
}

TEST_F(Sharing, ANameAndItsGrantsAreChargedToItsOwner) {
  const auto alice = session_of(alice_);
  std::set<std::string> many;
  while (many.size() < daemon_->limits().grantees)
    many.insert("token:" + std::string(200, 't') + std::to_string(many.size()));
  const std::uint64_t before = daemon_->plane_budget().other_bytes();
  ASSERT_TRUE(publish(alice, "x", many).ok());
  EXPECT_GT(daemon_->plane_budget().other_bytes(), before + 2 * 200 * many.size());
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::plane_bytes)] = 16 * 4096;  // of which each plane takes one
  alice->tenant()->set_policy(policy);
  const Status refused = publish(alice, "y", many);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_THAT(refused.message(), HasSubstr("tenant_plane_bytes"));
  EXPECT_EQ(open(alice, "y").status().reason(), Reason::unknown_name);
  ASSERT_TRUE(daemon_->published().withdraw(*alice, "x", {}).ok());
  EXPECT_EQ(daemon_->plane_budget().other_bytes(), before);
  EXPECT_TRUE(publish(alice, "y", {"token:bob"}).ok());
}

TEST_F(Sharing, OfSeveralOwnersOneMustBeNamed) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  const auto carol = session_of(remote_principal(Identity::certificate, "carol"));
  ASSERT_TRUE(publish(alice, "x", {"*"}).ok());
  ASSERT_TRUE(publish(bob, "x", {"*"}).ok());
  EXPECT_EQ(open(alice, "x")->owner, "uid:1001") << "one's own comes first";
  EXPECT_THAT(open(carol, "x").status().message(), HasSubstr("token:bob"));
  EXPECT_EQ(open(carol, "x", "token:bob")->owner, "token:bob");
}

TEST_F(Sharing, NamesGoWithTheirSession) {
  const auto alice = session_of(alice_), bob = session_of(bob_);
  ASSERT_TRUE(publish(alice, "x", {"*"}).ok());
  const auto held = open(bob, "x")->plane.plane;
  daemon_->sessions().end(alice);
  EXPECT_EQ(open(bob, "x").status().reason(), Reason::unknown_name);
  EXPECT_FALSE(held->released());
  plane::View view;
  view.shape = {512};
  view.strides = {8};
  EXPECT_EQ(daemon_->published().publish(alice, "y", {held->bytes(), view, false, {}}).reason(),
            Reason::session_closed);
}

TEST_F(Sharing, SealedOffBytesMoveAndOldMapsShowZeros) {
  const auto alice = session_of(alice_);
  const auto plane = plane_in(*alice);
  plane->data()[7] = std::byte{42};
  const UniqueFd old = *plane->bytes()->descriptor(false);
  const auto mapped = plane::Memory::map(UniqueFd(::dup(old.get())), plane->size());
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->data()[7], std::byte{42});
  Mailbox<Status> moved;
  daemon_->seal_off(alice, plane->bytes(), "p", [&](const Status& status) { moved.put(status); });
  ASSERT_TRUE(moved.take().ok());
  EXPECT_EQ(plane->data()[7], std::byte{42});
  EXPECT_EQ(mapped->data()[7], std::byte{0});
  mapped->data()[7] = std::byte{1};
  EXPECT_EQ(plane->data()[7], std::byte{42});
}

TEST_F(Sharing, AReadOnlyDescriptorCannotBeMappedForWriting) {
  const auto plane = plane_in(*session_of(alice_));
  UniqueFd fd = *plane->bytes()->descriptor(true);
  EXPECT_EQ(plane::Memory::map(UniqueFd(::dup(fd.get())), plane->size()).status().reason(),
            Reason::bad_message);
  const auto mapped = plane::Memory::map_read_only(std::move(fd), plane->size());
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  plane->data()[0] = std::byte{5};
  EXPECT_EQ(mapped->data()[0], std::byte{5});
}

// ---- attachments

TEST_F(Sharing, ALeaseThatIsOverEndsTheSession) {
  Mailbox<std::uint64_t> ended;
  Attachments attachments([&](const std::shared_ptr<Session>& session) { ended.put(session->id()); });
  const auto session = session_of(bob_);
  const auto attachment = attachments.attach(session, true, {[] {}, [] {}});
  ASSERT_TRUE(attachment.ok());
  attachments.detach(session, *attachment, 1ms);
  EXPECT_EQ(ended.take(), session->id());
  EXPECT_EQ(attachments.attach(session, false, {[] {}, [] {}}).status().reason(), Reason::unauthenticated);
}

TEST_F(Sharing, WhoComesBackInTimeKeepsTheSession) {
  Attachments attachments([](const std::shared_ptr<Session>&) { FAIL() << "it was ended"; });
  const auto session = session_of(bob_);
  const auto first = *attachments.attach(session, true, {[] {}, [] {}});
  attachments.detach(session, first, 1h);
  const auto second = attachments.attach(session, false, {[] {}, [] {}});
  ASSERT_TRUE(second.ok());
  attachments.detach(session, first, 0ms);  // the old stream's end, told late
  attachments.close(session, first);
  EXPECT_EQ(attachments.size(), 1u);
}

// A line may be dead long before the daemon hears of it.
TEST_F(Sharing, ANewAttachmentTakesTheSessionFromTheOldOne) {
  Attachments attachments([](const std::shared_ptr<Session>&) {});
  const auto session = session_of(bob_);
  bool lost = false;
  ASSERT_TRUE(attachments.attach(session, true, {[&] { lost = true; }, [] {}}).ok());
  const auto second = attachments.attach(session, false, {[] {}, [] {}});
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(lost);
  attachments.close(session, *second);
  EXPECT_EQ(attachments.size(), 0u);
}

TEST_F(Sharing, ASessionOfAUnixSocketCannotBeAttached) {
  EXPECT_EQ(daemon_->attachments().attach(session_of(alice_), false, {[] {}, [] {}}).status().reason(),
            Reason::unauthenticated);
}

}  // namespace
}  // namespace eagle::server
