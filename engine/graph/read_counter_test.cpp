// Counters of loops and groups in branches, as they are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using plane::View;
using testing::Description;
using ::testing::HasSubstr;
using testing::host;

struct Loop {
  Description d;
  View live = d.array({1}, DType::i64);

  Loop& with(const View& counter, const testing::Planes& body_writes = {}, std::int64_t cap = 4) {
    d.add(
        testing::repeat_while("loop", {live}, {testing::stage(host("body", {}, body_writes))}, cap, counter));
    return *this;
  }
  void expect_refused(Reason reason, std::initializer_list<std::string_view> words) const {
    const auto graph = d.try_read();
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.status().reason(), reason) << graph.status().to_string();
    for (const std::string_view word : words) EXPECT_THAT(graph.status().message(), HasSubstr(word));
  }
};

TEST(Counter, IsOneIntegerOfTheLoop) {
  for (const DType dtype : {DType::i64, DType::i32}) {
    Loop loop;
    const View counter = loop.d.array({1}, dtype);
    const Graph graph = loop.with(counter).d.graph();
    const auto& conditional = *as<Conditional>(graph.stages.at(0).branches[0].nodes[0]);
    ASSERT_TRUE(conditional.iterations);
    EXPECT_EQ(conditional.iterations->name, "iterations");
    EXPECT_EQ(conditional.iterations->view, counter);
  }
}

TEST(Counter, OfAnotherTypeOrShapeIsRefused) {
  Loop reals;
  reals.with(reals.d.array({1}, DType::f64))
      .expect_refused(Reason::wrong_dtype,
                      {"node 0 'loop'", "counter 'iterations'", "int64 or int32", "float64"});
  Loop flags;
  flags.with(flags.d.array({1}, DType::boolean)).expect_refused(Reason::wrong_dtype, {"bool"});
  Loop opaque;
  View other = opaque.d.array({1}, DType::i64);
  other.dtype = DType::other;
  opaque.with(other).expect_refused(Reason::wrong_dtype, {"found another element type"});
  Loop many;
  many.with(many.d.array({2}, DType::i64)).expect_refused(Reason::wrong_shape, {"one element", "found 2"});
  Loop none;
  none.with(none.d.array({0}, DType::i64)).expect_refused(Reason::wrong_shape, {"one element", "found 0"});
}

TEST(Counter, ThatCannotHoldTheCapIsRefused) {
  constexpr std::int64_t most = 2'147'483'647;
  Loop fits;
  fits.with(fits.d.array({1}, DType::i32), {}, most);
  EXPECT_TRUE(fits.d.try_read().ok());
  Loop over;
  over.with(over.d.array({1}, DType::i32), {}, most + 1)
      .expect_refused(Reason::bad_value, {"int32", "2147483648", "int64"});
  Loop wide;
  wide.with(wide.d.array({1}, DType::i64), {}, most + 1);
  EXPECT_TRUE(wide.d.try_read().ok());
}

TEST(Counter, OfPrivateMemoryIsRefusedWhereTheDaemonRunsTheLoop) {
  Loop loop;
  loop.with(loop.d.private_array({1}, DType::i64))
      .expect_refused(Reason::private_array,
                      {"counter 'iterations'", "the loop runs in the daemon", "share"});
  EXPECT_TRUE(loop.d.try_read(PrivateKernelPlanes::allowed).ok());
}

TEST(Counter, IsNotWrittenByTheBody) {
  Loop whole;
  const View index = whole.d.array({1}, DType::i64);
  whole.with(index, {{"mine", index}})
      .expect_refused(Reason::bad_value,
                      {"node 0 'loop'", "'iterations'", "'body'", "'mine'", "a cell of its own"});

  Loop part;
  const View cells = part.d.array({4}, DType::i64);
  part.with(plane::testing::at(cells, 0, 3), {{"all", cells}}).expect_refused(Reason::bad_value, {"'all'"});

  Loop beside;
  const View two = beside.d.array({2}, DType::i64);
  beside.with(plane::testing::at(two, 0, 0), {{"other", plane::testing::at(two, 0, 1)}});
  EXPECT_TRUE(beside.d.try_read().ok());
}

TEST(Counter, OfOneBranchIsNotForgottenOverTheNext) {
  Loop loop;
  const View index = loop.d.array({1}, DType::i64);
  const View fine = loop.d.array({1}, DType::i64);
  const auto with = [&](const std::string& name, const std::optional<View>& counter) {
    const auto body = testing::stage(host("body", {}, {{"mine", index}}));
    return testing::repeat_while(name, {loop.live}, {body}, 2, counter);
  };
  Loop none = loop;
  loop.d.add_group({{with("bad", index)}, {with("good", fine)}});
  loop.expect_refused(Reason::bad_value, {"node 0 'bad'"});
  none.d.add_group({{with("good", fine)}, {with("without", std::nullopt)}});
  EXPECT_TRUE(none.d.try_read().ok()) << none.d.try_read().status().to_string();
}

TEST(Counter, OfALoopAroundIsNotThatOfALoopInside) {
  Loop loop;
  const View index = loop.d.array({1}, DType::i64);
  const auto inner =
      testing::repeat_while("inner", {loop.live}, {testing::stage(host("body", {}, {}))}, 2, index);
  loop.d.add(testing::repeat_while("outer", {loop.live}, {testing::stage(inner)}, 2, index));
  loop.expect_refused(Reason::bad_value, {"node 0 'outer'", "'inner'"});

  Loop deep;
  const View cell = deep.d.array({1}, DType::i64);
  const auto bad = testing::repeat_while("inner", {deep.live},
                                         {testing::stage(host("body", {}, {{"cell", cell}}))}, 2, cell);
  deep.d.add(host("first", {}, {}));
  deep.d.add(
      testing::skippable("maybe", {deep.live}, {testing::stage(host("a", {}, {})), testing::stage(bad)}));
  deep.expect_refused(Reason::bad_value, {"node 1 'maybe': body node 1 'inner'"});
}

TEST(Counter, MayBeTheGuardOfItsLoop) {
  // At most as often as the baseline says.
  Description d;
  const View index = d.array({1}, DType::i64);
  const View most = d.array({1}, DType::i64);
  d.add(testing::repeat_while("loop", {index, most}, {testing::stage(host("body", {}, {}))}, 100, index));
  EXPECT_TRUE(d.try_read().ok());
}

TEST(Conditional, IsReadOnceEvenWhereItsBodyIsRefused) {
  // Read again for its refusal, the body would count twice, and a hundred around each other would never end.
  Loop loop;
  Limits limits;
  limits.nodes = 2;
  const auto body = testing::stage(host("bad", {{"x", plane::testing::slice(loop.live, 0, 1, 1)}}, {}));
  for (const v1::Node& node :
       {testing::skippable("n", {loop.live}, {body}), testing::repeat_while("n", {loop.live}, {body}, 2)}) {
    Description d = loop.d;
    d.add(node);
    const auto graph = d.try_read(PrivateKernelPlanes::refused, limits);
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.status().reason(), Reason::view_outside_plane) << graph.status().to_string();
  }
}

TEST(InnerGroup, IsReadAsABranchesItem) {
  Description d;
  d.add_group({{host("a", {}, {}), testing::inner_group({{host("b", {}, {})}, {host("c", {}, {})}})},
               {host("d", {}, {})}});
  const Graph graph = d.graph();
  std::vector<std::string> labels;
  for_each_leaf(std::span<const Branch>(graph.stages.at(0).branches),
                [&](const Node& node) { labels.push_back(node.label); });
  EXPECT_THAT(labels, ::testing::ElementsAre("a", "b", "c", "d"));
}

void expect_malformed(const Description& d, std::string_view words) {
  const auto graph = d.try_read();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().reason(), Reason::malformed_graph) << graph.status().to_string();
  EXPECT_THAT(graph.status().message(), HasSubstr(words));
}

TEST(InnerGroup, HasTheRulesOfAnyGroup) {
  Description one;
  one.add_group({{host("a", {}, {}), testing::inner_group({{host("b", {}, {})}})}, {host("d", {}, {})}});
  expect_malformed(one, "stage 0, branch 0, item 1: a group needs at least two branches, found 1");
  Description empty;
  empty.add_group({{testing::inner_group({{host("b", {}, {})}, {}})}, {host("d", {}, {})}});
  expect_malformed(empty, "stage 0, branch 0, item 0, branch 1: a branch needs at least one node");
}

TEST(InnerGroup, HasNoLocationAndNoFieldOfALaterVersion) {
  const auto with = [](const auto& change) {
    Description d;
    v1::Node group = testing::inner_group({{host("a", {}, {})}, {host("b", {}, {})}});
    change(group);
    return d.add_group({{group}, {host("c", {}, {})}});
  };
  expect_malformed(with([](v1::Node& group) { group.mutable_location()->set_line(3); }),
                   "stage 0, branch 0, item 0: a group has no name and no location");
  expect_malformed(
      with([](v1::Node& group) { group.GetReflection()->MutableUnknownFields(&group)->AddVarint(1234, 1); }),
      "field 1234");
}

TEST(InnerGroup, HasNoNameAndIsNoStage) {
  Description named;
  v1::Node group = testing::inner_group({{host("a", {}, {})}, {host("b", {}, {})}});
  group.set_name("fork");
  named.add_group({{group}, {host("c", {}, {})}});
  expect_malformed(named, "stage 0, branch 0, item 0: a group has no name");
  Description stage;
  group.clear_name();
  stage.add(group);
  expect_malformed(stage, "stage 0: found a group as a node");
}

TEST(InnerGroup, CountsForTheDepthOfAGraph) {
  const auto nested = [](std::uint32_t depth) {
    Description d;
    v1::Node item = host("deep", {}, {});
    for (std::uint32_t i = 1; i < depth; ++i) item = testing::inner_group({{item}, {host("b", {}, {})}});
    d.add_group({{item}, {host("c", {}, {})}});
    return d;
  };
  EXPECT_TRUE(nested(Limits{}.depth).try_read().ok());
  const Status refused = nested(Limits{}.depth + 1).try_read().status();
  EXPECT_EQ(refused.reason(), Reason::graph_limit);
  EXPECT_THAT(refused.message(), HasSubstr("graph_depth"));
}

}  // namespace
}  // namespace eagle::graph
