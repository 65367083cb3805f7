#include "server/graph_records.h"

#include <gtest/gtest.h>

#include <string>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "eagle/v1/state.pb.h"

namespace eagle::server {
namespace {

struct Log final : StateLog {
  Status write(std::span<const StateChange>) override { return {}; }
};

// Of about so many bytes.
v1::GraphDescription description(std::size_t bytes) {
  v1::GraphDescription made;
  made.set_name(std::string(bytes, 'n'));
  return made;
}

class GraphRecordsTest : public ::testing::Test {
protected:
  std::uint64_t held() const { return tenant_->report().held[static_cast<std::size_t>(Held::plane_bytes)]; }

  Log log_;
  PlaneBudget budget_{100'000, 10};
  std::shared_ptr<Tenant> tenant_ = std::make_shared<Tenant>("t", TenantPolicy());
  GraphRecords records_{&log_, 1, budget_, tenant_};
};

// What `records` charges for a graph.
std::uint64_t cost_of(const v1::GraphDescription& description) {
  v1::GraphRecord record;
  *record.mutable_description() = description;
  record.set_nodes(1);
  return GraphRecords::bytes_a_graph + GraphRecords::bytes_a_node +
         GraphRecords::bytes_a_described_byte * record.ByteSizeLong();
}

TEST_F(GraphRecordsTest, AGraphIsChargedUntilItIsReleased) {
  const auto first = description(1'000);
  ASSERT_TRUE(records_.built(1, first.SerializeAsString(), 1).ok());
  EXPECT_EQ(budget_.other_bytes(), cost_of(first));
  EXPECT_EQ(held(), cost_of(first));
  EXPECT_EQ(budget_.used_planes(), 0u);
  ASSERT_TRUE(records_.released(1).ok());
  EXPECT_EQ(budget_.other_bytes(), 0u);
  EXPECT_EQ(held(), 0u);
}

TEST_F(GraphRecordsTest, WhatDoesNotFitIsRefusedByNameAndNothingIsKept) {
  ASSERT_TRUE(records_.built(1, description(5'000).SerializeAsString(), 1).ok());
  const std::uint64_t before = budget_.other_bytes();
  const Status refused = records_.built(2, description(5'000).SerializeAsString(), 1);
  EXPECT_EQ(refused.reason(), Reason::plane_budget);
  EXPECT_NE(refused.message().find("the description of a graph"), std::string::npos) << refused.message();
  EXPECT_EQ(budget_.other_bytes(), before);
  EXPECT_EQ(held(), before);
  EXPECT_EQ(records_.find(2).status().reason(), Reason::unknown_graph);
}

TEST_F(GraphRecordsTest, ItCountsForTheTenant) {
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::plane_bytes)] = cost_of(description(2'500));
  tenant_->set_policy(policy);
  EXPECT_EQ(records_.built(1, description(3'000).SerializeAsString(), 1).reason(), Reason::quota);
  EXPECT_TRUE(records_.built(1, description(2'000).SerializeAsString(), 1).ok());
}

TEST_F(GraphRecordsTest, NumbersOfParamsAreChargedOnceHoweverOftenTheyChange) {
  ASSERT_TRUE(records_.built(1, description(100).SerializeAsString(), 1).ok());
  v1::UpdateRequest request;
  request.set_graph(1);
  auto& param = *request.add_params();
  param.mutable_argument()->set_name(std::string(1'000, 'a'));
  ASSERT_TRUE(records_.reserve(1, request).ok());
  ASSERT_TRUE(records_.updated(1, request).ok());
  ASSERT_TRUE(records_.reserve(1, request).ok());
  const std::uint64_t after_two = budget_.other_bytes();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(records_.reserve(1, request).ok());
    ASSERT_TRUE(records_.updated(1, request).ok());
  }
  EXPECT_EQ(budget_.other_bytes(), after_two);
  param.mutable_argument()->set_name(std::string(60'000, 'b'));
  EXPECT_EQ(records_.reserve(1, request).reason(), Reason::plane_budget);
}

// What a worker left is there, whatever the bounds are by now.
TEST_F(GraphRecordsTest, WhatIsRestoredIsChargedAndNeverRefused) {
  v1::GraphRecord record;
  *record.mutable_description() = description(8'000);
  record.set_nodes(1);
  ASSERT_TRUE(records_.restored({1, StateKind::graph, 1}, record.SerializeAsString()).ok());
  EXPECT_EQ(budget_.other_bytes(), cost_of(record.description()));
  EXPECT_EQ(budget_.charge(1).status().reason(), Reason::plane_budget);
  ASSERT_TRUE(records_.released(1).ok());
  EXPECT_TRUE(budget_.charge(1).ok());
}

TEST(WithoutALog, ADescriptionIsChargedAllTheSame) {
  PlaneBudget budget(100'000, 10);
  {
    GraphRecords records(nullptr, 1, budget, nullptr);
    ASSERT_TRUE(records.built(1, description(1'000).SerializeAsString(), 1).ok());
    EXPECT_EQ(budget.other_bytes(), cost_of(description(1'000)));
  }
  EXPECT_EQ(budget.other_bytes(), 0u);
}

TEST(WithoutALog, AGraphIsKeptAsItIsByNowUntilItIsReleased) {
  PlaneBudget budget(100'000, 10);
  GraphRecords records(nullptr, 1, budget, nullptr);
  ASSERT_TRUE(records.built(1, description(10).SerializeAsString(), 1).ok());
  v1::UpdateRequest request;
  request.set_graph(1);
  v1::ParamUpdate& param = *request.add_params();
  param.mutable_argument()->set_name("a");
  for (const double number : {1.0, 2.0}) {
    param.mutable_value()->set_real(number);
    ASSERT_TRUE(records.reserve(1, request).ok());
    ASSERT_TRUE(records.updated(1, request).ok());
  }
  ASSERT_TRUE(records.rebound(1, description(20)).ok());
  const auto found = records.find(1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->graph->description().name(), description(20).name());
  ASSERT_EQ(found->params->params_size(), 1);
  EXPECT_EQ(found->params->params(0).value().real(), 2.0);
  ASSERT_TRUE(records.released(1).ok());
  EXPECT_EQ(records.find(1).status().reason(), Reason::unknown_graph);
  EXPECT_EQ(budget.other_bytes(), 0u);
}

TEST(TheHashOfAGraph, IsOfOneTenant) {
  EXPECT_EQ(hash_of(description(3), "a"), hash_of(description(3), "a"));
  EXPECT_NE(hash_of(description(3), "a"), hash_of(description(3), "b"));
  EXPECT_NE(hash_of(description(3), "a"), hash_of(description(4), "a"));
  v1::GraphDescription elsewhere = description(3);
  elsewhere.add_planes()->set_bytes(1 << 20);
  elsewhere.add_planes()->set_label("another");
  EXPECT_EQ(hash_of(elsewhere, "a"), hash_of(description(3), "a")) << "its planes are no part of it";
}

}  // namespace
}  // namespace eagle::server
