#include "server/tenants.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace eagle::server {
namespace {

using std::chrono::seconds;
using Clock = Tenant::Clock;

TenantPolicy quota(Held kind, std::uint64_t most) {
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(kind)] = most;
  return policy;
}

TEST(Tenant, AQuotaIsNamedWithItsKeyAndGivenBack) {
  const auto tenant = std::make_shared<Tenant>("physics", quota(Held::plane_bytes, 100));
  auto first = tenant->hold(Held::plane_bytes, 60);
  ASSERT_TRUE(first.ok());
  const Status refused = tenant->hold(Held::plane_bytes, 41).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_EQ(refused.code(), Code::resource_exhausted);
  for (const char* part : {"'physics'", "60", "100", "tenant_plane_bytes", "41"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << part << ": " << refused.message();
  EXPECT_TRUE(tenant->hold(Held::plane_bytes, 40).ok());
  { const Tenant::Share gone = *std::move(first); }
  EXPECT_TRUE(tenant->hold(Held::plane_bytes, 100).ok());
  EXPECT_EQ(tenant->hold(Held::plane_bytes, ~std::uint64_t{0}).status().reason(), Reason::quota);
  EXPECT_EQ(tenant->report().refused, 2u);
}

TEST(Tenant, WithoutAQuotaOnlyTheDaemonsBoundsHold) {
  const auto tenant = std::make_shared<Tenant>("uid:1", TenantPolicy());
  const auto held = tenant->hold(Held::jobs, 1'000'000'000);
  EXPECT_TRUE(held.ok());
  EXPECT_EQ(tenant->report().held[static_cast<std::size_t>(Held::jobs)], 1'000'000'000u);
}

TEST(Tenant, ManyThreadsNeverHoldMoreThanTheQuota) {
  const auto tenant = std::make_shared<Tenant>("t", quota(Held::jobs, 3));
  std::atomic<int> inside = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const auto share = tenant->hold(Held::jobs);
        if (!share.ok()) continue;
        EXPECT_LE(++inside, 3);
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(tenant->report().held[static_cast<std::size_t>(Held::jobs)], 0u);
}

TEST(Tenant, ItsPartOfTheTeamIsAnAverageOverAMinute) {
  TenantPolicy policy;
  policy.device_share = 0.25;
  Tenant tenant("t", policy);
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(tenant.may_compute(start).ok());
  tenant.note_computed(15, start);  // a minute's worth, at once
  EXPECT_TRUE(tenant.may_compute(start).ok());
  tenant.note_computed(1, start);
  const Status refused = tenant.may_compute(start);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("tenant_device_share"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("4.0"), std::string::npos) << refused.message();
  EXPECT_FALSE(tenant.may_compute(start + seconds(3)).ok());
  EXPECT_TRUE(tenant.may_compute(start + seconds(4)).ok());
  EXPECT_EQ(tenant.report().device_s, 16);
}

// One launch may use more than its tenant's part for hours, where nobody else has work; it is not to be
// refused for hours afterwards.
TEST(Tenant, WhatItUsedOverItsPartIsOwedForAMinuteAtMost) {
  TenantPolicy policy;
  policy.device_share = 0.1;
  Tenant tenant("t", policy);
  const Clock::time_point start = Clock::now();
  tenant.note_computed(3600, start);
  EXPECT_FALSE(tenant.may_compute(start + seconds(59)).ok());
  EXPECT_TRUE(tenant.may_compute(start + seconds(61)).ok());
}

TEST(Tenant, GoesBehindTheOthersWhileItIsOverItsPart) {
  TenantPolicy policy;
  policy.device_share = 0.5;
  Tenant tenant("t", policy);
  const Clock::time_point start = Clock::now();
  tenant.note_computed(30, start);  // a minute's worth
  EXPECT_LE(tenant.flow().behind_until, start);
  tenant.note_computed(1, start);
  EXPECT_EQ(tenant.flow().behind_until, start + seconds(2));
  policy.device_share = 0;
  tenant.set_policy(policy);
  EXPECT_LE(tenant.flow().behind_until, start) << "without a bound nothing is owed";
}

TEST(Tenant, CompilingIsBoundedLikewise) {
  TenantPolicy policy;
  policy.compile_seconds = 30;
  Tenant tenant("t", policy);
  const Clock::time_point start = Clock::now();
  tenant.note_compiled(31, start);
  const Status refused = tenant.may_compile(start);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_NE(refused.message().find("tenant_compile_seconds"), std::string::npos) << refused.message();
  EXPECT_TRUE(tenant.may_compile(start + seconds(2)).ok());
}

TEST(Tenant, AClockThatStandsStillOrGoesBackPaysNothing) {
  Allowance allowance;
  const Clock::time_point start = Clock::now();
  allowance.use(120, 1, start);
  EXPECT_DOUBLE_EQ(allowance.wait(1, start), 60);
  EXPECT_DOUBLE_EQ(allowance.wait(1, start - seconds(5)), 60);
}

TEST(Tenants, WithoutRulesAUserIsATenant) {
  Tenants tenants;
  EXPECT_EQ(tenants.of({1000, 1, 1})->name(), "uid:1000");
  EXPECT_EQ(tenants.of({1000, 2, 2}), tenants.of({1000, 1, 1}));
  EXPECT_NE(tenants.of({1001, 1, 1}), tenants.of({1000, 1, 1}));
  EXPECT_EQ(tenants.reports().size(), 2u);
}

// Over loopback without tokens each session is a principal of its own; many sessions are not many tenants.
TEST(Tenants, WhoIsNobodyInParticularIsOneTenant) {
  Tenants tenants;
  const auto one = tenants.of(remote_principal(Identity::anonymous, "1"));
  EXPECT_EQ(one->name(), "anonymous");
  EXPECT_EQ(tenants.of(remote_principal(Identity::anonymous, "2")), one);
  EXPECT_NE(tenants.of(remote_principal(Identity::token, "anonymous")), one);
}

TEST(Tenants, RulesReachThoseWhoAreHere) {
  Tenants tenants;
  const auto before = tenants.of({1000, 1, 1});
  tenants.set_rules({[](const Principal& who) { return who.uid < 1001 ? "uid:1000" : "rest"; },
                     [](const std::string& name) {
                       TenantPolicy policy = quota(Held::sessions, 1);
                       policy.weight = name == "rest" ? 1 : 3;
                       return policy;
                     }});
  EXPECT_EQ(before->policy().weight, 3);
  EXPECT_EQ(tenants.of({5, 1, 1}), before);
  EXPECT_EQ(tenants.of({5000, 1, 1})->name(), "rest");
  const auto share = before->hold(Held::sessions);
  EXPECT_EQ(before->hold(Held::sessions).status().reason(), Reason::quota);
}

TEST(Tenants, IdleOnesAreForgottenWhenThereAreMany) {
  Tenants tenants;
  const auto stays = tenants.of({7, 1, 1});
  for (uid_t uid = 10'000; uid < 13'000; ++uid) static_cast<void>(tenants.of({uid, 1, 1}));
  EXPECT_LE(tenants.reports().size(), 1025u);
  EXPECT_EQ(tenants.of({7, 1, 1}), stays);
}

}  // namespace
}  // namespace eagle::server
