#include "server/sessions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "server/testing.h"

namespace eagle::server {
namespace {

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
  static_cast<void>(sessions_.end(opened.session, false));
  EXPECT_EQ(sessions_.find(to_hex(opened.secret)).status().reason(), Reason::unauthenticated);
  EXPECT_EQ(sessions_.size(), 0u);
  static_cast<void>(sessions_.end(opened.session, false));  // a second end is none
}

TEST_F(SessionsTest, TheirNumberIsBounded) {
  const auto a = open();
  const auto b = open();
  EXPECT_EQ(sessions_.open(Principal{}, "c").status().reason(), Reason::quota);
  static_cast<void>(sessions_.end(a.session, false));
  EXPECT_TRUE(sessions_.open(Principal{}, "c").ok());
}

TEST_F(SessionsTest, LongClientNamesAreRefused) {
  EXPECT_EQ(sessions_.open(Principal{}, std::string(limits_.label_bytes + 1, 'n')).status().reason(),
            Reason::bad_value);
}

TEST_F(SessionsTest, PlanesThatALivingClientMayHaveMappedStayChargedUntilReaped) {
  auto opened = open();
  const std::vector<PlaneStore::Spec> specs = {{4096, "seen"}, {4096, "unseen"}};
  {
    const auto made = opened.session->planes().create(specs);
    ASSERT_TRUE(made.ok());
    const std::string_view token(reinterpret_cast<const char*>(made->front().token.data()),
                                 made->front().token.size());
    ASSERT_TRUE(opened.session->planes().redeemable({&token, 1}).ok());
  }
  PlaneStore::Planes kept = sessions_.end(opened.session, true);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept.front()->label(), "seen");
  EXPECT_TRUE(kept.front()->released());
  EXPECT_GE(budget_.used_bytes(), 4096u);
}

TEST_F(SessionsTest, EndingThemAllEndsEach) {
  const auto a = open();
  const auto b = open();
  sessions_.end_all();
  EXPECT_EQ(sessions_.size(), 0u);
  const PlaneStore::Spec spec{4096, "late"};
  EXPECT_EQ(a.session->planes().create({&spec, 1}).status().reason(), Reason::session_closed);
}

TEST(Loggable, IsPrintableAndShort) {
  EXPECT_EQ(loggable("python3"), "python3");
  EXPECT_EQ(loggable("a\nb\x1b[31m\"\xff"), "a?b?[31m??");
  EXPECT_EQ(loggable(std::string(1000, 'x')).size(), 64u);
}

}  // namespace
}  // namespace eagle::server
