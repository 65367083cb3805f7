#include "engine/graph/address.h"

#include <gmock/gmock.h>

#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using testing::Description;
using ::testing::HasSubstr;

// Three launches of y = a*x + b: "first" and "same" at the top, a second "same" in the body of a conditional;
// and a copy.
struct Scene {
  Description d;
  Graph graph;

  Scene() {
    kernel::KernelBuilder builder("affine");
    const auto a = builder.param("a");
    const auto b = builder.param("b");
    const auto x = builder.scalar("x");
    builder.output("y", builder.add(builder.mul(a, x), b));
    const std::uint32_t affine = d.kernel(builder);
    const auto x_array = d.array({8});
    const auto line = [&](const std::string& name) {
      return testing::launch(name, affine, {{"x", x_array}, {"y", d.array({8})}, {"a", 1.0}, {"b", 0.0}});
    };
    d.add(line("first")).add(line("same"));
    d.add(testing::skippable("maybe", {d.array({1}, plane::DType::i64)}, {testing::stage(line("same"))}));
    d.add(testing::copy("copied", x_array, d.array({8})));
    graph = d.graph();
  }

  // "launch.argument" of each target.
  [[nodiscard]] std::vector<std::string> found(const Address& address, Wanted wanted = Wanted::param) const {
    const auto targets = resolve(graph, address, wanted, "update");
    EXPECT_TRUE(targets.ok()) << targets.status().to_string();
    std::vector<std::string> out;
    if (!targets.ok()) return out;
    for (const Target& target : *targets) {
      out.push_back(std::to_string(target.node) + "." + std::to_string(target.argument));
    }
    return out;
  }
  [[nodiscard]] Status refused(const Address& address, Wanted wanted = Wanted::param) const {
    return resolve(graph, address, wanted, "update").status();
  }
};

TEST(Address, ANameThatAllNodesShareIsThatOfAll) {
  EXPECT_THAT(Scene().found({"", {}, "a"}), ::testing::ElementsAre("0.0", "1.0", "3.0"));
}

TEST(Address, ALabelAndANameAreOneNodes) {
  const Scene scene;
  EXPECT_THAT(scene.found({"", {}, "first.b"}), ::testing::ElementsAre("0.1"));
  EXPECT_THAT(scene.found({"first", {}, "b"}), ::testing::ElementsAre("0.1"));
  EXPECT_THAT(scene.found({"", 1, "b"}), ::testing::ElementsAre("1.1"));
  EXPECT_THAT(scene.found({"", 2, "b"}), ::testing::ElementsAre("3.1")) << "the node in the conditional";
}

TEST(Address, PlanesOfCopiesHaveNamesToo) {
  const Scene scene;
  EXPECT_THAT(scene.found({"copied", {}, "dst"}, Wanted::plane), ::testing::ElementsAre("4.1"));
  EXPECT_THAT(scene.found({"", {}, "src"}, Wanted::plane), ::testing::ElementsAre("4.0"));
}

TEST(Address, ANameOfSomeNodesIsRefusedWithTheCandidates) {
  const Status status = Scene().refused({"", {}, "x"}, Wanted::plane);
  EXPECT_EQ(status.reason(), Reason::unknown_name);
  EXPECT_THAT(status.message(), HasSubstr("update: 'x'"));
  EXPECT_THAT(status.message(), HasSubstr("'first.x' (node 0)"));
  EXPECT_THAT(status.message(), HasSubstr("'same.x' (node 2)"));
}

TEST(Address, EqualLabelsAreRefusedWithTheWayOut) {
  const Status status = Scene().refused({"", {}, "same.a"});
  EXPECT_EQ(status.reason(), Reason::unknown_name);
  EXPECT_THAT(status.message(), HasSubstr("(index, name)"));
}

TEST(Address, UnknownNamesAreRefusedWithTheCandidates) {
  const Scene scene;
  for (const Address& address :
       {Address{"", {}, "q"}, {"", {}, "first.q"}, {"nobody", {}, "a"}, {"", 9, "a"}, {"", {}, ""}}) {
    const Status status = scene.refused(address);
    EXPECT_EQ(status.reason(), Reason::unknown_name);
    EXPECT_THAT(status.message(), HasSubstr("'first.a' (node 0)"));
  }
}

TEST(Address, UpdatesTakeTheTypeOfTheParam) {
  const Scene scene;
  const auto changes = resolve_updates(scene.graph, {{{"", {}, "first.a"}, std::int64_t{3}}});
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(changes->front().second, 0x4008000000000000U);  // 3.0
}

// ---- the same graph over other planes

Graph read_again(const Scene& scene, const std::function<void(v1::GraphDescription&)>& change) {
  Description other = scene.d;
  change(other.message);
  return other.graph();
}

TEST(SameStructure, OtherPlanesOfTheSameKindAreTheSameGraph) {
  const Scene scene;
  const Graph fresh = read_again(
      scene, [](v1::GraphDescription& message) { message.mutable_planes(0)->mutable_plane()->set_id(999); });
  EXPECT_TRUE(check_same_structure(scene.graph, fresh).ok());
}

TEST(SameStructure, AnythingElseIsNot) {
  const Scene scene;
  const auto expect_other = [&](const std::function<void(v1::GraphDescription&)>& change, Reason reason) {
    const Status status = check_same_structure(scene.graph, read_again(scene, change));
    EXPECT_EQ(info(status.reason()).wire_name, info(reason).wire_name) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("rebind: "));
  };
  expect_other([](auto& m) { m.mutable_stages(0)->mutable_node()->set_name("other"); },
               Reason::malformed_graph);
  expect_other([](auto& m) { m.mutable_stages()->RemoveLast(); }, Reason::malformed_graph);
  expect_other([](auto& m) { *m.add_kernels() = m.kernels(0); }, Reason::malformed_graph);
  expect_other(
      [](auto& m) {
        v1::Copy& copy = *m.mutable_stages(3)->mutable_node()->mutable_copy();
        copy.mutable_source()->set_shape(0, 4);
        copy.mutable_destination()->set_shape(0, 4);
      },
      Reason::wrong_shape);
  expect_other(
      [](auto& m) {
        v1::Copy& copy = *m.mutable_stages(3)->mutable_node()->mutable_copy();
        copy.mutable_source()->set_dtype(v1::DTYPE_I64);
      },
      Reason::wrong_dtype);
  expect_other(
      [](auto& m) {
        m.mutable_stages(2)->mutable_node()->mutable_skippable()->mutable_guard()->set_negated(true);
      },
      Reason::malformed_graph);
}

}  // namespace
}  // namespace eagle::graph
