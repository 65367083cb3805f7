#include "server/plane_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eagle::server {
namespace {

TEST(PlaneBudget, ChargesWholePages) {
  EXPECT_EQ(PlaneBudget::whole_pages(1), PlaneBudget::whole_pages(4096));
  EXPECT_EQ(PlaneBudget::whole_pages(UINT64_MAX), UINT64_MAX) << "it does not wrap around";
  PlaneBudget budget(1u << 20, 100);
  auto charge = budget.charge(1);
  ASSERT_TRUE(charge.ok());
  EXPECT_EQ(budget.used_bytes(), PlaneBudget::whole_pages(1));
}

TEST(PlaneBudget, WhatIsNoPlaneTakesOfTheSameBytes) {
  PlaneBudget budget(1u << 20, 100);
  auto description = budget.charge_for("the description of a graph", (1u << 20) - 100);
  ASSERT_TRUE(description.ok()) << description.status().to_string();
  EXPECT_EQ(budget.used_planes(), 0u);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.other_bytes(), (1u << 20) - 100);
  EXPECT_EQ(budget.charge(1).status().reason(), Reason::plane_budget) << "a page is not left";
  const Status refused = budget.charge_for("the ring of a session", 101).status();
  EXPECT_EQ(refused.reason(), Reason::plane_budget);
  for (const char* part : {"the ring of a session", "101", "1048476", "1048576", "--plane-budget"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << part << " in " << refused.message();
  description = Status(Reason::cancelled, "it is gone");
  EXPECT_EQ(budget.other_bytes(), 0u);
  EXPECT_TRUE(budget.charge(1).ok());
}

TEST(PlaneBudget, ChargesAddUp) {
  PlaneBudget budget(1000, 100);
  {
    PlaneBudget::Charge all;
    all.add(*budget.charge_for("it", 300));
    all.add(*budget.charge_for("it", 400));
    EXPECT_EQ(all.bytes(), 700u);
    EXPECT_EQ(budget.charge_for("it", 301).status().reason(), Reason::plane_budget);
  }
  EXPECT_EQ(budget.other_bytes(), 0u);
  EXPECT_EQ(budget.adopt_other(5000).bytes(), 5000u) << "what is there already is not refused";
  EXPECT_EQ(budget.other_bytes(), 0u);
}

TEST(PlaneBudget, ARefusalForTheNumberOfPlanesNamesTheDescriptors) {
  PlaneBudget budget(1u << 20, 1);
  const auto one = budget.charge(1);
  const Status refused = budget.charge(1).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  for (const char* part : {"(planes", "RLIMIT_NOFILE"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace eagle::server
