#include "engine/graph/torn_reads.h"

#include <gmock/gmock.h>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using testing::Description;
using ::testing::ElementsAre;
using testing::View;

class TornReads : public ::testing::Test {
protected:
  // y = x + x, for every sample.
  std::uint32_t doubled() {
    kernel::KernelBuilder builder("doubled");
    const auto in = builder.scalar("x");
    builder.output("y", builder.add(in, in));
    return d.kernel(builder);
  }
  // The same for samples that are not done.
  std::uint32_t masked() {
    kernel::KernelBuilder builder("masked");
    const auto in = builder.scalar("x");
    builder.terminated("done");
    builder.output("y", builder.add(in, in));
    builder.commit("done", builder.boolean(true));
    return d.kernel(builder);
  }
  TornOutlook outlook(const std::vector<View>& torn) {
    std::vector<TornMark> marks;
    for (const View& view : torn) marks.push_back({marks.size() + 1, view});
    return torn_outlook(d.graph(), marks);
  }
  void expect_read(const std::vector<View>& torn, const std::string& node, const std::string& argument) {
    const TornOutlook found = outlook(torn);
    ASSERT_TRUE(found.read);
    EXPECT_EQ(found.read->node, node);
    EXPECT_EQ(found.read->argument, argument);
  }

  Description d;
  View x = d.array({8});
  View y = d.array({8});
  View z = d.array({8});
};

TEST_F(TornReads, AGraphThatDoesNotTouchThemLeavesMarksAlone) {
  d.add(testing::copy("c", x, y));
  const TornOutlook found = outlook({z});
  EXPECT_FALSE(found.read);
  EXPECT_TRUE(found.rewritten.empty());
}

TEST_F(TornReads, AReadIsNamed) {
  d.add(testing::launch("k", doubled(), {{"x", x}, {"y", y}}));
  expect_read({x}, "k", "x");
}

TEST_F(TornReads, WhatAKernelWritesWholeMayBeReadAfterwards) {
  const auto kernel = doubled();
  d.add(testing::launch("first", kernel, {{"x", x}, {"y", y}}));
  d.add(testing::launch("second", kernel, {{"x", y}, {"y", z}}));
  const TornOutlook found = outlook({y, z});
  EXPECT_FALSE(found.read);
  EXPECT_THAT(found.rewritten, ElementsAre(1, 2));
  expect_read({x, y}, "first", "x");
}

TEST_F(TornReads, AMaskedKernelMayKeepWhatThereWas) {
  const View done = d.array({8}, DType::boolean);
  d.add(testing::launch("k", masked(), {{"x", x}, {"y", y}, {"done", done}}));
  expect_read({y}, "k", "y");
  expect_read({done}, "k", "done");
}

TEST_F(TornReads, APartOfAnArrayDoesNotMendTheWhole) {
  View part = y;
  part.shape = {4};
  View half = x;
  half.shape = {4};
  d.add(testing::copy("c", half, part));
  d.add(testing::copy("d", y, z));
  expect_read({y}, "d", "src");
}

TEST_F(TornReads, CopiesAndReductionsWriteAllOfTheirResult) {
  const View sum = d.array({1});
  d.add(testing::copy("c", x, y));
  d.add(testing::reduce("r", x, sum));
  EXPECT_THAT(outlook({y, sum}).rewritten, ElementsAre(1, 2));
}

TEST_F(TornReads, AHostNodeIsNotTrustedToWriteAll) {
  d.add(testing::host("h", {}, {{"y", y}}));
  const TornOutlook found = outlook({y});
  EXPECT_FALSE(found.read);
  EXPECT_TRUE(found.rewritten.empty());
  d.add(testing::copy("c", y, z));
  expect_read({y}, "c", "src");
}

TEST_F(TornReads, ABodyMendsForItselfOnly) {
  const View count = d.array({1}, DType::i64);
  d.add(testing::repeat_while(
      "loop", {count},
      {testing::stage(testing::copy("in", x, y)), testing::stage(testing::copy("out", y, z))}, 5));
  const TornOutlook found = outlook({y, z});
  EXPECT_FALSE(found.read);
  EXPECT_TRUE(found.rewritten.empty());
  expect_read({count}, "loop", "count");
  d.add(testing::copy("after", y, x));
  expect_read({y}, "after", "src");
}

}  // namespace
}  // namespace eagle::graph
