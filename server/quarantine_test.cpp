#include "server/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eagle/v1/state.pb.h"

namespace eagle::server {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What is written to it.
class Log final : public StateLog {
public:
  Status write(std::span<const StateChange> changes) override {
    written.insert(written.end(), changes.begin(), changes.end());
    return {};
  }
  std::vector<StateChange> written;
};

class QuarantineTest : public ::testing::Test {
protected:
  static GraphHash hash(std::uint8_t number) { return {number}; }
  void struck(std::uint8_t number, std::uint32_t deaths, const std::string& tenant = {}) {
    const GraphHash of = hash(number);
    v1::StrikeRecord record;
    record.set_hash(of.data(), of.size());
    record.set_deaths(deaths);
    record.set_tenant(tenant);
    record.set_last_ns(std::chrono::nanoseconds(now_.time_since_epoch()).count());
    ASSERT_TRUE(quarantine_.restore(record.SerializeAsString()).ok());
  }
  Reason check(std::uint8_t number, const std::string& tenant, minutes later = minutes(1)) {
    return quarantine_.check(hash(number), tenant, "g", now_ + later).reason();
  }

  const Quarantine::Clock::time_point now_ = Quarantine::Clock::now();
  Log log_;
  Quarantine quarantine_{&log_};
};

TEST_F(QuarantineTest, AGraphIsQuarantinedAtItsSecondDeath) {
  struck(1, 1, "uid:1");
  struck(2, 2, "uid:1");
  EXPECT_EQ(check(1, "uid:1"), Reason::none);
  EXPECT_EQ(check(2, "uid:1"), Reason::graph_quarantined);
  EXPECT_EQ(check(2, "uid:1", minutes(1000)), Reason::graph_quarantined) << "for good";
  EXPECT_EQ(check(3, "uid:1"), Reason::none);
}

// By ever new names a graph is never struck twice.
TEST_F(QuarantineTest, ATenantOfManyDeathsBuildsNothingUntilTheHourIsOver) {
  for (std::uint8_t i = 1; i < deaths_of_a_tenant; ++i) struck(i, 1, "uid:1");
  EXPECT_EQ(check(99, "uid:1"), Reason::none);
  struck(50, 1, "uid:1");
  const Status refused = quarantine_.check(hash(99), "uid:1", "new", now_);
  EXPECT_EQ(refused.reason(), Reason::graph_quarantined);
  EXPECT_THAT(refused.message(), HasSubstr("'uid:1'"));
  EXPECT_THAT(refused.message(), HasSubstr("pardon"));
  EXPECT_THAT(quarantine_.tenants(now_), ElementsAre("uid:1"));
  EXPECT_EQ(check(99, "uid:2"), Reason::none);
  EXPECT_EQ(check(99, "uid:1", minutes(61)), Reason::none);
  EXPECT_TRUE(quarantine_.tenants(now_ + minutes(61)).empty());
}

TEST_F(QuarantineTest, WhoseAGraphIsIsWrittenDownOnce) {
  struck(1, 1);
  EXPECT_TRUE(quarantine_.has_unnamed());
  ASSERT_TRUE(quarantine_.name(hash(1), "uid:1", "wind").ok());
  ASSERT_TRUE(quarantine_.name(hash(1), "uid:2", "other").ok());
  ASSERT_TRUE(quarantine_.name(hash(2), "uid:2", "not struck").ok());
  EXPECT_FALSE(quarantine_.has_unnamed());
  ASSERT_EQ(log_.written.size(), 1u);
  EXPECT_EQ(log_.written[0].key, strike_key(hash(1)));
  v1::StrikeRecord record;
  ASSERT_TRUE(record.ParseFromString(log_.written[0].value));
  EXPECT_EQ(record.tenant(), "uid:1");
  EXPECT_EQ(record.graph(), "wind");
  EXPECT_EQ(record.deaths(), 1u);
}

TEST_F(QuarantineTest, APardonEndsIt) {
  struck(1, 2, "uid:1");
  struck(2, 2, "uid:1");
  struck(3, 2, "uid:2");
  EXPECT_EQ(*quarantine_.pardon_graphs({text_of(hash(1))}), 1u);
  EXPECT_EQ(check(1, "uid:1"), Reason::none);
  EXPECT_EQ(check(2, "uid:1"), Reason::graph_quarantined);
  EXPECT_TRUE(log_.written.at(0).gone);
  EXPECT_EQ(*quarantine_.pardon_tenant("uid:1"), 1u);
  EXPECT_EQ(check(2, "uid:1"), Reason::none);
  EXPECT_EQ(check(3, "uid:2"), Reason::graph_quarantined);
  EXPECT_EQ(*quarantine_.pardon_all(), 1u);
  EXPECT_TRUE(quarantine_.list().empty());
  EXPECT_EQ(log_.written.size(), 3u);
}

TEST_F(QuarantineTest, APardonOfAGraphThatIsNotThereNamesItAndEndsNothing) {
  struck(1, 2, "uid:1");
  const Status refused = quarantine_.pardon_graphs({text_of(hash(1)), "abc"}).status();
  EXPECT_EQ(refused.reason(), Reason::unknown_graph);
  EXPECT_THAT(refused.message(), HasSubstr("'abc'"));
  EXPECT_EQ(check(1, "uid:1"), Reason::graph_quarantined);
}

TEST_F(QuarantineTest, ARecordThatIsNoneIsRefused) {
  EXPECT_EQ(quarantine_.restore("nonsense").reason(), Reason::bad_message);
}

}  // namespace
}  // namespace eagle::server
