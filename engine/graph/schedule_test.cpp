#include "engine/graph/schedule.h"

#include <gmock/gmock.h>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using testing::Description;
using ::testing::ElementsAre;
using testing::host;
using testing::launch;
using testing::View;

// A group of two launches over so many samples each.
Description two_plans(std::int64_t left, std::int64_t right) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  std::vector<std::vector<v1::Node>> branches;
  for (const std::int64_t samples : {left, right}) {
    const View x = d.array({samples});
    const View y = d.array({samples});
    branches.push_back({launch("", kernel, {{"x", x}, {"y", y}})});
  }
  d.add_group(branches);
  return d;
}

StageSchedule first_of(const Description& description, int team) {
  return schedule_of(description.graph(), team).front();
}

TEST(Schedule, SmallGroupsOfPlansRunAsBranchTasks) {
  EXPECT_EQ(first_of(two_plans(4096, 4096), 2), StageSchedule::branch_tasks);
  EXPECT_EQ(first_of(two_plans(8, 4096), 64), StageSchedule::branch_tasks);
}

TEST(Schedule, TheLargestNodeDecidesNotTheSum) {
  EXPECT_EQ(first_of(two_plans(4097, 4097), 2), StageSchedule::work_share);
  EXPECT_EQ(first_of(two_plans(8, 4097), 2), StageSchedule::work_share);
}

TEST(Schedule, OneThreadHasNothingToShareOut) {
  EXPECT_EQ(first_of(two_plans(4096, 4096), 1), StageSchedule::work_share);
}

TEST(Schedule, AnythingButAPlanMakesAStageWorkShare) {
  Description with_host = two_plans(8, 8);
  *with_host.message.mutable_stages(0)->mutable_group()->mutable_branches(1)->add_nodes() = host("h", {}, {});
  EXPECT_EQ(first_of(with_host, 2), StageSchedule::work_share);

  Description with_conditional = two_plans(8, 8);
  const View cell = with_conditional.array({1}, plane::DType::i64);
  auto& branch = *with_conditional.message.mutable_stages(0)->mutable_group()->mutable_branches(1);
  const v1::Node plan = branch.nodes(0);
  *branch.mutable_nodes(0) = testing::skippable("maybe", {cell}, {testing::stage(plan)});
  EXPECT_EQ(first_of(with_conditional, 2), StageSchedule::work_share);
}

TEST(Schedule, HasOneEntryAStage) {
  Description d = two_plans(8, 8);
  d.add(host("h", {}, {}));
  const std::vector<StageSchedule> schedule = schedule_of(d.graph(), 2);
  std::vector<std::string_view> names;
  for (const StageSchedule one : schedule) names.push_back(name_of(one));
  EXPECT_THAT(names, ElementsAre("branch_tasks", "work_share"));
}

TEST(Schedule, NamesLeadBackToWhatTheyName) {
  using enum StageSchedule;
  for (const StageSchedule one : {work_share, branch_tasks, cuda_graph, capture, eager_stream, eager_host,
                                  host_call, client_replay, host_loop})
    EXPECT_EQ(schedule_named(name_of(one)), one) << name_of(one);
  EXPECT_EQ(schedule_named("of a later version"), work_share);
}

}  // namespace
}  // namespace eagle::graph
