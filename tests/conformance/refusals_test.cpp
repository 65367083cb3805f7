// Bad input: each is refused with its reason, names the thing, and leaves the session serving.
#include <limits>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

using Arguments = std::vector<std::pair<std::string, Argument>>;

class Refusals : public OnEveryHost {
protected:
  // The affine kernel's arguments over eight samples, with some of them replaced or added.
  [[nodiscard]] Arguments arguments(const Arguments& changed = {}) const {
    Arguments result = {{"x", full<double>(8, 1.0)}, {"y", zeros<double>({8})}, {"a", 2.0}, {"b", 1.0}};
    for (const auto& [name, value] : changed) {
      bool replaced = false;
      for (auto& [known, argument] : result) {
        if (known != name) continue;
        argument = value;
        replaced = true;
      }
      if (!replaced) result.emplace_back(name, value);
    }
    return result;
  }
  [[nodiscard]] Status add(const Arguments& bound) const {
    Graph g(session());
    return g.add({affine(), bound}, "step");
  }
  // Refused in a graph and in a run alike, by the same rule.
  void expect_bad_arguments(const Arguments& bound, Reason reason,
                            std::initializer_list<std::string_view> words) const {
    expect_refused(add(bound), reason, words);
    expect_refused(add(bound), reason, {"'step'", "node 0"});
    if (!on_gpu()) expect_refused(session().simulate({affine(), bound}, {1, {}, {}}).status(), reason, words);
    expect_works();
  }
};
EAGLE_ON_EVERY_HOST(Refusals);

TEST_P(Refusals, AnotherElementType) {
  expect_bad_arguments(arguments({{"x", zeros<std::int64_t>({8})}}), Reason::wrong_dtype,
                       {"'x'", "float64", "int64"});
}

TEST_P(Refusals, AnotherShape) {
  expect_bad_arguments(arguments({{"x", zeros<double>({3, 8})}}), Reason::wrong_shape, {"'x'", "(3, 8)"});
}

TEST_P(Refusals, AnotherNumberOfSamples) {
  expect_bad_arguments(arguments({{"y", zeros<double>({9})}}), Reason::sample_mismatch,
                       {"'x'", "'y'", "8", "9"});
}

TEST_P(Refusals, AnArrayThatWouldHaveToBeCopied) {
  const auto wide = zeros<double>({16});
  ArrayView every_other = wide;
  every_other.shape = {8};
  every_other.strides = {16};
  expect_bad_arguments(arguments({{"x", every_other}}), Reason::copy_bound_plane, {"'x'"});
}

TEST_P(Refusals, AMissingArgument) {
  Arguments bound = arguments();
  bound.erase(bound.begin());
  expect_bad_arguments(bound, Reason::bad_binding, {"'x'", "missing"});
}

TEST_P(Refusals, AnArgumentThatTheKernelDoesNotHave) {
  expect_bad_arguments(arguments({{"z", 1.0}}), Reason::bad_binding, {"'z'", "x"});
}

TEST_P(Refusals, AnArgumentGivenTwice) {
  Arguments bound = arguments();
  bound.push_back(bound.front());
  expect_bad_arguments(bound, Reason::bad_binding, {"'x'", "twice"});
}

TEST_P(Refusals, ANumberForAnArrayAndAnArrayForANumber) {
  expect_bad_arguments(arguments({{"x", 1.0}}), Reason::wrong_type, {"'x'", "array"});
  expect_bad_arguments(arguments({{"a", zeros<double>({8})}}), Reason::wrong_type, {"'a'", "number"});
}

TEST_P(Refusals, AReadOnlyArrayThatIsWritten) {
  ArrayView frozen = zeros<double>({8});
  frozen.read_only = true;
  const Arguments bound = arguments({{"y", frozen}});
  expect_refused(add(bound), Reason::read_only_array, {"'step'", "'y'"});
  expect_refused(session().simulate({affine(), bound}, {1, {}, {}}).status(), Reason::read_only_array,
                 {"'y'"});
  expect_works();
}

TEST_P(Refusals, AViewPastTheEndOfItsArray) {
  const auto memory = zeros<double>({8});
  ArrayView longer = memory;
  longer.shape = {9};
  expect_refused(add(arguments({{"x", longer}})), Reason::view_outside_plane, {"'x'"});
  ArrayView before = memory;
  before.data = memory.span().data() - 1;
  expect_refused(add(arguments({{"x", before}})), Reason::view_outside_plane, {"'x'"});
  expect_works();
}

TEST_P(Refusals, StridesWhoseArithmeticWouldWrapAround) {
  const auto memory = zeros<double>({8});
  ArrayView wrapping = memory;
  wrapping.shape = {2, 2};
  wrapping.strides = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};
  expect_refused(add(arguments({{"x", wrapping}})), Reason::view_outside_plane, {"'x'"});
  wrapping.strides = {8};
  expect_refused(add(arguments({{"x", wrapping}})), Reason::bad_value, {"'x'"});
  expect_works();
}

TEST_P(Refusals, AnInputAndAnOutputThatShareSomeOfTheirBytes) {
  const auto memory = zeros<double>({16});
  ArrayView low = memory;
  low.shape = {8};
  ArrayView shifted = low;
  shifted.data = memory.span().data() + 4;
  expect_bad_arguments(arguments({{"x", low}, {"y", shifted}}), Reason::plane_overlap, {"'x'", "'y'"});
}

TEST_P(Refusals, AKernelThatDoesNotVerify) {
  Kernel broken = *affine();
  broken.body.ops.at(0).operands.at(0) = 9999;
  Graph g(session());
  expect_refused(g.add({std::make_shared<const Kernel>(broken), arguments()}, "step"),
                 Reason::malformed_kernel, {"affine", "body.ops[0]", "9999"});
  if (!on_gpu()) {
    expect_refused(
        session().simulate({std::make_shared<const Kernel>(broken), arguments()}, {1, {}, {}}).status(),
        Reason::malformed_kernel, {"body.ops[0]", "9999"});
  }
  expect_works();
}

TEST_P(Refusals, GuardsThatAreNoCell) {
  const auto step = [] {
    return std::vector<std::pair<std::string, NodeKind>>{{"", opaque([] { return Status(); }, {})}};
  };
  Graph g(session());
  expect_refused(g.add_node(skippable(step(), {{"level", zeros<double>({1})}, std::nullopt, false}), "maybe"),
                 Reason::wrong_dtype, {"'maybe'", "'level'"});
  expect_refused(
      g.add_node(skippable(step(), {{"flags", zeros<std::int64_t>({2})}, std::nullopt, false}), "maybe"),
      Reason::wrong_shape, {"'maybe'", "'flags'", "2"});
  expect_refused(
      g.add_node(repeat_while(step(), {{"live", zeros<std::int64_t>({1})}, std::nullopt, false}, 0), "loop"),
      Reason::bad_value, {"'loop'", "max_iterations", "0"});
  expect_refused(
      g.add_node(skippable({}, {{"flag", zeros<std::int64_t>({1})}, std::nullopt, false}), "nothing"),
      Reason::malformed_graph, {"'nothing'", "body"});
  expect_works();
}

TEST_P(Refusals, GroupsThatAreNone) {
  Graph g(session());
  const NodeKind node = opaque([] { return Status(); }, {});
  expect_refused(g.add_group({}), Reason::malformed_graph, {"add_group", "two branches"});
  expect_refused(g.add_group({{{{"only", node}}}}), Reason::malformed_graph, {"two branches", "1"});
  expect_refused(g.add_group({{{{"one", node}}}, {}}), Reason::malformed_graph, {"branch 1"});
  EXPECT_TRUE(g.node_labels().empty());
  expect_works();
}

TEST_P(Refusals, NodesWithoutContent) {
  Graph g(session());
  expect_refused(g.add_node(opaque(nullptr, {}), "hollow"), Reason::wrong_type, {"add_node", "'hollow'"});
  expect_refused(g.add(BoundPlan{}, "hollow"), Reason::bad_value, {"add", "'hollow'"});
  expect_refused(session().simulate({}, {1, {}, {}}).status(), Reason::bad_value, {"simulate"});
  expect_works();
}

TEST_P(Refusals, NestingWithoutEnd) {
  const auto flag = zeros<std::int64_t>({1});
  NodeKind node = opaque([] { return Status(); }, {});
  for (int depth = 0; depth < 40; ++depth)
    node = skippable({{"", node}}, {{"flag", flag}, std::nullopt, false});
  Graph g(session());
  expect_refused(g.add_node(node), Reason::graph_limit, {"graph_depth"});
  expect_works();
}

TEST_P(Refusals, NamesThatAreNoText) {
  Graph g(session());
  const Status status = g.add_node(opaque([] { return Status(); }, {}), "\xff\xfe");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
  expect_works();
}

}  // namespace
}  // namespace eagle::conformance
