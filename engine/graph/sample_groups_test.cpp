#include "engine/graph/sample_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <variant>

#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::at;
using plane::testing::cast;
using plane::testing::slice;
using testing::Description;
using testing::host;
using testing::launch;
using testing::View;

// The groups of a graph: "(0+1 2) (3)" is one of two functions, the first of which has two launches, and one
// of a single launch.
std::string groups_of(const Graph& graph, Fusion fusion = Fusion::full, int team = 2) {
  const RunPlan plan = lower(graph, schedule_of(graph, team));
  const StatusOr<ScratchLayout> scratch = lay_out_scratch(graph);
  EXPECT_TRUE(scratch.ok()) << scratch.status().to_string();
  const std::vector<PlanePlace> places = places_of(graph, *scratch);
  std::string text;
  for (const SampleGroup& group : group_samples(plan, fusion, places).groups) {
    text += text.empty() ? "(" : " (";
    for (std::size_t f = 0; f < group.functions.size(); ++f) {
      if (f > 0) text += " ";
      const Launches& launches = group.functions[f].launches;
      for (std::uint32_t i = 0; i < launches.count; ++i)
        text += (i > 0 ? "+" : "") + std::to_string(launches.first + i);
    }
    text += ")";
  }
  return text;
}

// x -> y -> z -> w, doubled each time.
Description chain() {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), y = d.array({8}), z = d.array({8}), w = d.array({8});
  d.add(launch("", kernel, {{"x", x}, {"y", y}}));
  d.add(launch("", kernel, {{"x", y}, {"y", z}}));
  d.add(launch("", kernel, {{"x", z}, {"y", w}}));
  return d;
}

TEST(SampleGroups, AChainIsOneGroupAndOneFunction) {
  EXPECT_EQ(groups_of(chain().graph()), "(0+1+2)");
  EXPECT_EQ(groups_of(chain().graph(), Fusion::blocks), "(0 1 2)");
  EXPECT_EQ(groups_of(chain().graph(), Fusion::off), "(0) (1) (2)");
}

TEST(SampleGroups, NeighboursThatExchangeNothingAreFunctionsOfTheirOwn) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  d.add(launch("", kernel, {{"x", d.array({8})}, {"y", d.array({8})}}));
  d.add(launch("", kernel, {{"x", d.array({8})}, {"y", d.array({8})}}));
  EXPECT_EQ(groups_of(d.graph()), "(0 1)");
}

TEST(SampleGroups, AnotherNumberOfSamplesBeginsAnother) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), y = d.array({8});
  d.add(launch("", kernel, {{"x", x}, {"y", y}}));
  d.add(launch("", kernel, {{"x", slice(y, 0, 0, 4)}, {"y", d.array({4})}}));
  EXPECT_EQ(groups_of(d.graph()), "(0) (1)");
}

TEST(SampleGroups, AShiftedViewOfSomethingWrittenBeginsAnother) {
  for (const bool write_first : {true, false}) {
    Description d;
    const std::uint32_t kernel = d.double_kernel();
    const View x = d.array({8}), y = d.array({9}), z = d.array({8});
    const View low = slice(y, 0, 0, 8), high = slice(y, 0, 1, 8);
    d.add(write_first ? launch("", kernel, {{"x", x}, {"y", low}})
                      : launch("", kernel, {{"x", low}, {"y", x}}));
    d.add(write_first ? launch("", kernel, {{"x", high}, {"y", z}})
                      : launch("", kernel, {{"x", z}, {"y", high}}));
    EXPECT_EQ(groups_of(d.graph()), "(0) (1)") << write_first;
  }
}

TEST(SampleGroups, ShiftedViewsOfWhatIsOnlyReadStayTogether) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({9});
  d.add(launch("", kernel, {{"x", slice(x, 0, 0, 8)}, {"y", d.array({8})}}));
  d.add(launch("", kernel, {{"x", slice(x, 0, 1, 8)}, {"y", d.array({8})}}));
  EXPECT_EQ(groups_of(d.graph()), "(0 1)");
}

TEST(SampleGroups, OtherElementsOverTheSameBytesBeginAnother) {
  Description d;
  kernel::KernelBuilder counting("counting");
  const auto n = counting.index("n");
  counting.declare_output("m", {kernel::Scalar::i64});
  counting.commit("m", n);
  const std::uint32_t integers = d.kernel(counting);
  const std::uint32_t reals = d.double_kernel();
  kernel::KernelBuilder singles_builder("singles", kernel::Scalar::f32);
  const auto s = singles_builder.scalar("x");
  singles_builder.output("y", s);
  const std::uint32_t singles = d.kernel(singles_builder);
  const View x = d.array({8}), y = d.array({8});
  d.add(launch("", reals, {{"x", x}, {"y", y}}));
  // As many bytes an element, so that samples do not mix; but not the same values.
  d.add(launch("", integers, {{"n", cast(y, plane::DType::i64)}, {"m", d.array({8}, plane::DType::i64)}}));
  // Two samples in the bytes of one.
  d.add(launch("", singles,
               {{"x", slice(cast(y, plane::DType::f32), 0, 0, 8)}, {"y", d.array({8}, plane::DType::f32)}}));
  EXPECT_EQ(groups_of(d.graph()), "(0 1) (2)");
}

TEST(SampleGroups, RowsOfAMatrixAreLocalToASample) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  kernel::KernelBuilder builder("first");
  const auto v = builder.vector("v", 2);
  builder.output("y", builder.extract(v, 0));
  const std::uint32_t first = d.kernel(builder);
  const View m = d.array({2, 8});
  d.add(launch("", kernel, {{"x", d.array({8})}, {"y", at(m, 0, 0)}}));
  d.add(launch("", kernel, {{"x", at(m, 0, 0)}, {"y", at(m, 0, 1)}}));
  d.add(launch("", first, {{"v", m}, {"y", d.array({8})}}));  // sees both rows as one value
  EXPECT_EQ(groups_of(d.graph()), "(0+1 2)");
}

TEST(SampleGroups, ATableOfSomethingWrittenBeginsAnother) {
  Description d;
  kernel::KernelBuilder builder("look up");
  const auto i = builder.index("i");
  builder.table("t", {});
  builder.output("y", builder.gather("t", {i}));
  const std::uint32_t look_up = d.kernel(builder);
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), t = d.array({8}), i1 = d.array({8}, plane::DType::i64);
  d.add(launch("", kernel, {{"x", x}, {"y", t}}));
  d.add(launch("", look_up, {{"i", i1}, {"t", t}, {"y", x}}));  // a RAW of other samples
  d.add(launch("", look_up, {{"i", i1}, {"t", t}, {"y", d.array({8})}}));
  d.add(launch("", kernel, {{"x", x}, {"y", t}}));  // and a WAR
  EXPECT_EQ(groups_of(d.graph()), "(0) (1+2) (3)");
}

TEST(SampleGroups, MasksRunInBlocksButInNoFunction) {
  Description d;
  const std::uint32_t finishing = d.finishing_kernel();
  const std::uint32_t kernel = d.double_kernel();
  const View t = d.array({8});
  d.add(launch("", kernel, {{"x", d.array({8})}, {"y", t}}));
  d.add(launch("", finishing, {{"dt", 0.5}, {"t", t}, {"done", d.array({8}, plane::DType::boolean)}}));
  d.add(launch("", kernel, {{"x", t}, {"y", d.array({8})}}));
  EXPECT_EQ(groups_of(d.graph()), "(0 1 2)");
}

// x -> a -> b -> c -> y by way of scratch planes, of which `a` and `c` take turns at the same bytes.
Graph through_scratch(bool same_rows) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), y = d.array({8});
  const View a = d.array({2, 8}), b = d.array({8}), c = d.array({2, 8});
  for (const View& scratch : {a, b, c})
    d.message.mutable_planes(static_cast<int>(scratch.plane))->mutable_scratch();
  d.add(launch("", kernel, {{"x", x}, {"y", at(a, 0, 0)}}));
  d.add(launch("", kernel, {{"x", at(a, 0, 0)}, {"y", b}}));
  const View row =
      same_rows ? at(c, 0, 0) : slice(plane::testing::array({16}, plane::DType::f64, 0, c.plane), 0, 3, 8);
  d.add(launch("", kernel, {{"x", b}, {"y", row}}));
  d.add(launch("", kernel, {{"x", row}, {"y", y}}));
  return d.graph();
}

TEST(SampleGroups, ScratchThatTakesTurnsAtBytesOfOtherSamplesBeginsAnother) {
  const StatusOr<ScratchLayout> layout = lay_out_scratch(through_scratch(false));
  ASSERT_TRUE(layout.ok());
  ASSERT_EQ(layout->uses[0].offset, layout->uses[2].offset);
  EXPECT_EQ(groups_of(through_scratch(true)), "(0+1+2+3)");
  EXPECT_EQ(groups_of(through_scratch(false)), "(0+1) (2+3)");
}

TEST(SampleGroups, WhatSamplesMakeTogetherStandsAlone) {
  Description d;
  kernel::KernelBuilder builder("total");
  const auto x = builder.scalar("x");
  builder.declare_reduction("sum", {}, kernel::ReduceOp::sum);
  builder.commit("sum", x);
  const std::uint32_t total = d.kernel(builder);
  const std::uint32_t kernel = d.double_kernel();
  const View a = d.array({8}), b = d.array({8});
  d.add(launch("", kernel, {{"x", a}, {"y", b}}));
  d.add(launch("", total, {{"x", b}, {"sum", d.array({1})}}));
  d.add(launch("", kernel, {{"x", b}, {"y", a}}));
  EXPECT_EQ(groups_of(d.graph()), "(0) (1) (2)");
}

TEST(SampleGroups, HostNodesAndJumpsDivide) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), y = d.array({8}), cell = d.array({1}, plane::DType::i64);
  const v1::Node there = launch("", kernel, {{"x", x}, {"y", y}});
  const v1::Node back = launch("", kernel, {{"x", y}, {"y", x}});
  d.add(there);
  d.add(host("look", {{"x", x}}, {}));
  d.add(back);
  d.add(testing::skippable("maybe", {cell}, {testing::stage(there), testing::stage(back)}));
  d.add(there);  // comes right behind the body, but not always
  d.add(back);
  EXPECT_EQ(groups_of(d.graph()), "(0) (1) (2+3) (4+5)");
}

TEST(SampleGroups, JumpsStillGoWhereTheyWent) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8}), y = d.array({8}), cell = d.array({1}, plane::DType::i64);
  const std::vector<v1::Stage> body = {testing::stage(launch("", kernel, {{"x", x}, {"y", y}})),
                                       testing::stage(launch("", kernel, {{"x", y}, {"y", x}}))};
  d.add(testing::repeat_while("loop", {cell}, body, 3));
  d.add(testing::skippable("maybe", {cell}, body));
  const Graph graph = d.graph();
  const RunPlan plan = lower(graph, schedule_of(graph, 1));
  const GroupedPlan grouped = group_samples(plan, Fusion::full, places_of(graph, {}));
  // enter, test, body, back, skip, body
  ASSERT_EQ(grouped.program.size(), 6U);
  EXPECT_EQ(std::get<LoopTest>(grouped.program[1]).target, 4U);
  EXPECT_EQ(std::get<LoopBack>(grouped.program[3]).target, 1U);
  EXPECT_EQ(std::get<SkipUnless>(grouped.program[4]).target, 6U);
}

TEST(SampleGroups, BranchesAreGroupedByThemselves) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  const View x = d.array({8});
  std::vector<std::vector<v1::Node>> branches;
  for (int b = 0; b < 2; ++b) {
    const View y = d.array({8}), z = d.array({8});
    branches.push_back({launch("", kernel, {{"x", x}, {"y", y}}), launch("", kernel, {{"x", y}, {"y", z}})});
  }
  d.add_group(branches);
  EXPECT_EQ(groups_of(d.graph(), Fusion::full, 2), "(0+1) (2+3)");
  EXPECT_EQ(groups_of(d.graph(), Fusion::full, 1), "(0+1+2+3)");  // in order, and all read x
}

TEST(SampleGroups, FunctionsAreBounded) {
  Description d;
  const std::uint32_t kernel = d.double_kernel();
  View x = d.array({8});
  for (int i = 0; i < 20; ++i) {
    const View y = d.array({8});
    d.add(launch("", kernel, {{"x", x}, {"y", y}}));
    x = y;
  }
  const Graph graph = d.graph();
  const RunPlan plan = lower(graph, schedule_of(graph, 1));
  const auto sizes = [&](const FunctionLimits& limits) {
    std::vector<std::size_t> found;
    const std::vector<SampleGroup> groups =
        sample_groups(plan, {0, 20}, Fusion::full, places_of(graph, {}), limits);
    for (const SampleFunction& function : groups.at(0).functions) found.push_back(function.launches.count);
    return found;
  };
  FunctionLimits limits;
  EXPECT_EQ(sizes(limits), (std::vector<std::size_t>{16, 4}));
  limits.places = 6;
  EXPECT_EQ(sizes(limits), (std::vector<std::size_t>{5, 5, 5, 5}));
  limits = {};
  limits.arguments = 14;
  EXPECT_EQ(sizes(limits), (std::vector<std::size_t>{7, 7, 6}));
}

// The bytes of each sample of a launch's plane.
std::map<std::int64_t, std::set<std::pair<std::uint32_t, std::int64_t>>> bytes_by_sample(
    const kernel::Argument& argument, const Bound& bound) {
  std::map<std::int64_t, std::set<std::pair<std::uint32_t, std::int64_t>>> out;
  const std::int64_t item = kernel::bytes_of(argument.type.scalar);
  for (std::int64_t s = 0; s < bound.layout.samples; ++s) {
    for (int c = 0; c < argument.type.components(); ++c) {
      const std::int64_t first = bound.view->offset + c * bound.layout.component_stride + s * item;
      for (std::int64_t b = 0; b < item; ++b) out[s].insert({bound.view->plane, first + b});
    }
  }
  return out;
}

// By the definition: no byte that one launch of a group writes belongs to another sample of another launch.
void expect_local(const RunPlan& plan, const SampleGroup& group) {
  std::map<std::pair<std::uint32_t, std::int64_t>, std::set<std::int64_t>> writers, users;  // samples by byte
  std::size_t launches = 0;
  for (const SampleFunction& function : group.functions) {
    for (std::uint32_t i = 0; i < function.launches.count; ++i) {
      ++launches;
      const KernelLaunch& one = *plan.launches[function.launches.first + i];
      EXPECT_EQ(one.samples, group.samples);
      const kernel::Kernel& kernel = *plan.kernels[one.kernel];
      const std::vector<kernel::Access> accesses = kernel::accesses(kernel);
      for (std::size_t a = 0; a < accesses.size(); ++a) {
        if (!one.arguments[a].view || !(accesses[a].read || accesses[a].written)) continue;
        for (const auto& [sample, bytes] : bytes_by_sample(kernel.arguments[a], one.arguments[a])) {
          for (const auto& byte : bytes) {
            users[byte].insert(sample);
            if (accesses[a].written) writers[byte].insert(sample);
          }
        }
      }
    }
  }
  if (launches < 2) return;
  for (const auto& [byte, samples] : writers) EXPECT_EQ(users[byte].size(), 1U) << "byte " << byte.second;
}

TEST(SampleGroups, OfRandomGraphsAreLocalToASample) {
  int groups_of_several = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Description d = testing::random_description(random);
    const StatusOr<Graph> graph = d.try_read(PrivateKernelPlanes::allowed);
    if (!graph.ok()) continue;
    const RunPlan plan = lower(*graph, std::vector(graph->stages.size(), StageSchedule::work_share));
    std::set<std::uint32_t> seen;
    for (const SampleGroup& group : group_samples(plan, Fusion::full, places_of(*graph, {})).groups) {
      expect_local(plan, group);
      std::size_t launches = 0;
      for (const SampleFunction& function : group.functions) {
        launches += function.launches.count;
        for (std::uint32_t i = 0; i < function.launches.count; ++i)
          EXPECT_TRUE(seen.insert(function.launches.first + i).second);
      }
      groups_of_several += launches > 1 ? 1 : 0;
    }
    EXPECT_EQ(seen.size(), plan.launches.size());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(groups_of_several, 20);
}

}  // namespace
}  // namespace eagle::graph
