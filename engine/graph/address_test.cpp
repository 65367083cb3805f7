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

TEST(Address, DotsInALabelAreItsOwn) {
  Description d;
  const auto x = d.array({8});
  d.add(testing::copy("a.b", x, d.array({8}))).add(testing::copy("b", x, d.array({8})));
  const Graph graph = d.graph();
  const auto targets = resolve(graph, {"", {}, "a.b.dst"}, Wanted::plane, "rebind");
  ASSERT_TRUE(targets.ok()) << targets.status().to_string();
  ASSERT_EQ(targets->size(), 1U);
  EXPECT_EQ(targets->front().node, 0U);
}

TEST(Address, PlanesOfReductionsHaveNamesAndCopiesAndReductionsHaveNoParam) {
  Description d;
  d.add(testing::copy("copied", d.array({8}), d.array({8})));
  d.add(testing::reduce("summed", d.array({8}), d.array({1})));
  const Graph graph = d.graph();
  for (const auto& [name, argument] : {std::pair("summed.x", 0U), std::pair("summed.out", 1U)}) {
    const auto targets = resolve(graph, {"", {}, name}, Wanted::plane, "rebind");
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    ASSERT_EQ(targets->size(), 1U);
    EXPECT_EQ(targets->front().node, 1U);
    EXPECT_EQ(targets->front().argument, argument);
  }
  for (const char* name : {"src", "copied.dst", "x", "summed.out"}) {
    const Status status = resolve(graph, {"", {}, name}, Wanted::param, "update").status();
    EXPECT_EQ(status.message(),
              "update: there is no Param '" + std::string(name) + "'; no node of this graph has one");
  }
}

TEST(Address, ARefusalSpellsTheAddressAndEveryCandidate) {
  const std::string have =
      "; the graph has 'first.a' (node 0), 'first.b' (node 0), 'same.a' (node 1), 'same.b' (node 1), "
      "'same.a' (node 2), 'same.b' (node 2)";
  const Scene scene;
  EXPECT_EQ(scene.refused({"", {}, "q"}).message(), "update: there is no Param 'q'" + have);
  EXPECT_EQ(scene.refused({"first", {}, "q"}).message(), "update: there is no Param ('first', 'q')" + have);
  EXPECT_EQ(scene.refused({"", 1, "q"}).message(), "update: there is no Param (1, 'q')" + have);
  EXPECT_THAT(scene.refused({"", {}, "q"}, Wanted::plane).message(), HasSubstr("there is no plane 'q'"));
}

TEST(Address, TheFirstTwentyCandidatesAreListed) {
  const auto refused = [](int copies) {
    Description d;
    const auto x = d.array({8});
    for (int i = 0; i < copies; ++i) d.add(testing::copy("c", x, d.array({8})));
    return std::string(resolve(d.graph(), {"", {}, "q"}, Wanted::plane, "rebind").status().message());
  };
  EXPECT_THAT(refused(10), ::testing::EndsWith("'c.dst' (node 9)"));
  EXPECT_THAT(refused(11), ::testing::EndsWith("'c.dst' (node 9) and 2 more"));
}

TEST(Address, PlanesOfCallablesAndConditionalsAreKept) {
  Description d;
  const auto cell = [&] { return d.array({1}, plane::DType::i64); };
  const auto body = [&] { return testing::stage(testing::host("inside", {{"i", d.array({8})}}, {})); };
  d.add(testing::host("call", {{"r", d.array({8})}}, {{"w", d.array({8})}}));
  d.add(testing::skippable("maybe", {cell()}, {body()}));
  d.add(testing::repeat_while("loop", {cell(), cell()}, {testing::stage(testing::copy("c", cell(), cell()))},
                              3, cell()));
  const Graph graph = d.graph();
  const auto refused = [&](const Address& address) {
    const Status status = resolve(graph, address, Wanted::plane, "rebind").status();
    EXPECT_EQ(status.reason(), Reason::unknown_name);
    return std::string(status.message());
  };
  const auto kept = [](const std::string& spelled, const std::string& node) {
    return HasSubstr("rebind: " + spelled + " is a plane of node " + node +
                     ", a callable or conditional, which keeps the arrays");
  };
  EXPECT_THAT(refused({"", {}, "r"}), kept("'r'", "0 'call'"));
  EXPECT_THAT(refused({"", {}, "call.w"}), kept("'call.w'", "0 'call'"));
  EXPECT_THAT(refused({"call", {}, "w"}), kept("('call', 'w')", "0 'call'"));
  EXPECT_THAT(refused({"", 0, "w"}), kept("(0, 'w')", "0 'call'"));
  EXPECT_THAT(refused({"", {}, "i"}), kept("'i'", "1 'inside'"));
  EXPECT_THAT(refused({"", {}, "count"}), kept("'count'", "1 'maybe'"));
  EXPECT_THAT(refused({"loop", {}, "count"}), kept("('loop', 'count')", "2 'loop'"));
  EXPECT_THAT(refused({"", {}, "baseline"}), kept("'baseline'", "2 'loop'"));
  EXPECT_THAT(refused({"", {}, "iterations"}), kept("'iterations'", "2 'loop'"));
  // A node's other names, and the name at another node.
  for (const Address& address :
       {Address{"call", {}, "q"}, {"maybe", {}, "w"}, {"", 0, "q"}, {"", 1, "w"}, {"", {}, "maybe.w"}}) {
    EXPECT_THAT(refused(address), HasSubstr("there is no plane "));
  }
  // They take no Param either, whatever it is called.
  EXPECT_THAT(resolve(graph, {"", {}, "w"}, Wanted::param, "update").status().message(),
              HasSubstr("there is no Param 'w'"));
}

TEST(Address, UpdatesReachIntoBodies) {
  const Scene scene;
  const auto changes = resolve_updates(scene.graph, {{{"", {}, "a"}, 2.0}});
  ASSERT_TRUE(changes.ok()) << changes.status().to_string();
  EXPECT_EQ(changes->size(), 3U);
}

TEST(Address, UpdatesOfUnknownNamesAndOfTooManyAtOnceAreRefused) {
  const Scene scene;
  EXPECT_THAT(resolve_updates(scene.graph, {{{"", {}, "q"}, 2.0}}).status().message(),
              HasSubstr("update: there is no Param 'q'"));
  std::vector<ParamUpdate> updates(most_updates, {{"", {}, "first.a"}, 2.0});
  EXPECT_TRUE(resolve_updates(scene.graph, updates).ok());
  updates.push_back(updates.front());
  const Status status = resolve_updates(scene.graph, updates).status();
  EXPECT_EQ(status.reason(), Reason::graph_limit);
  EXPECT_THAT(status.message(), HasSubstr("4097 numbers at once, more than 4096 (graph_updates)"));
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

// ---- one thing after another is another

Status compared(const Description& built, const Description& fresh) {
  const Status status = check_same_structure(built.graph(), fresh.graph());
  EXPECT_TRUE(check_same_structure(built.graph(), built.graph()).ok());
  EXPECT_TRUE(check_same_structure(fresh.graph(), fresh.graph()).ok());
  return status;
}

void expect_differs(const Description& built, const Description& fresh, const std::string& what) {
  const Status status = compared(built, fresh);
  EXPECT_EQ(info(status.reason()).wire_name, info(Reason::malformed_graph).wire_name) << status.message();
  EXPECT_THAT(status.message(), ::testing::StartsWith("rebind: " + what + " are not those of the graph"));
}

void expect_plane(const Description& built, const Description& fresh, Reason reason,
                  const std::string& where) {
  const Status status = compared(built, fresh);
  EXPECT_EQ(info(status.reason()).wire_name, info(reason).wire_name) << status.message();
  EXPECT_THAT(status.message(), ::testing::StartsWith("rebind: " + where + ": expected an array like"));
}

TEST(SameStructure, AnotherKernelOfTheGraphIsNot) {
  const auto with = [](bool other) {
    Description d;
    kernel::KernelBuilder builder("triple");
    const auto x = builder.scalar("x");
    builder.output("y", builder.add(x, builder.add(x, x)));
    const std::uint32_t kernels[] = {d.double_kernel(), d.kernel(builder)};
    return d.add(testing::launch("n", kernels[other ? 1 : 0], {{"x", d.array({8})}, {"y", d.array({8})}}));
  };
  expect_differs(with(false), with(true), "the kernels of its nodes");
}

TEST(SameStructure, AnArgumentOfAnotherShapeOrAnotherTypeOfElementIsNot) {
  const auto launched = [](std::int64_t n) {
    Description d;
    return d.add(
        testing::launch("n", d.finishing_kernel(),
                        {{"dt", 0.5}, {"t", d.array({n})}, {"done", d.array({n}, plane::DType::boolean)}}));
  };
  expect_plane(launched(8), launched(9), Reason::wrong_shape, "node 0 'n': argument 't'");

  const auto copied = [](std::uint32_t item_bytes) {
    Description d;
    plane::View source = d.array({8});
    plane::View destination = d.array({8});
    for (plane::View* view : {&source, &destination}) {
      view->dtype = plane::DType::other;
      view->item_bytes = item_bytes;
    }
    return d.add(testing::copy("n", source, destination));
  };
  expect_plane(copied(3), copied(4), Reason::wrong_dtype, "node 0 'n': plane 'src'");
}

TEST(SameStructure, AnotherReductionIsNot) {
  const auto with = [](std::int64_t n, v1::ReduceOp op, bool compensated) {
    Description d;
    return d.add(testing::reduce("n", d.array({n}), d.array({1}), op, compensated));
  };
  const Description built = with(8, v1::REDUCE_SUM, false);
  expect_differs(built, with(8, v1::REDUCE_MAX, false), "its reductions");
  expect_differs(built, with(8, v1::REDUCE_SUM, true), "its reductions");
  expect_plane(built, with(9, v1::REDUCE_SUM, false), Reason::wrong_shape, "node 0 'n': plane 'x'");
}

TEST(SameStructure, AnotherCallableIsNot) {
  const auto with = [](std::uint32_t call, v1::HostTier tier, std::int64_t reads, std::int64_t writes) {
    Description d;
    v1::Node node = testing::host("n", {{"r", d.array({reads})}}, {{"w", d.array({writes})}}, call);
    node.mutable_host()->set_tier(tier);
    return d.add(node);
  };
  const Description built = with(1, v1::HOST_TIER_CAPTURED, 8, 8);
  expect_differs(built, with(2, v1::HOST_TIER_CAPTURED, 8, 8), "its host nodes");
  expect_differs(built, with(1, v1::HOST_TIER_EAGER, 8, 8), "its host nodes");
  expect_plane(built, with(1, v1::HOST_TIER_CAPTURED, 9, 8), Reason::wrong_shape, "node 0 'n': plane 'r'");
  expect_plane(built, with(1, v1::HOST_TIER_CAPTURED, 8, 9), Reason::wrong_shape, "node 0 'n': plane 'w'");
  Description more;
  const auto x = more.array({8});
  more.add(testing::host("n", {{"r", x}, {"s", x}}, {{"w", more.array({8})}}, 1));
  expect_differs(built, more, "the planes of its host nodes");
}

struct LoopOf {
  std::int64_t max_iterations = 3;
  bool baseline = true;
  bool counter = true;
  plane::DType count_type = plane::DType::i64;
  plane::DType baseline_type = plane::DType::i64;
  plane::DType counter_type = plane::DType::i64;
  std::int64_t samples = 8;

  // A node behind it, of as many samples; its own body holds a copy.
  [[nodiscard]] Description description(std::int64_t behind = 8) const {
    Description d;
    testing::Cells cells{d.array({1}, count_type)};
    if (baseline) cells.baseline = d.array({1}, baseline_type);
    std::optional<plane::View> iterations;
    if (counter) iterations = d.array({1}, counter_type);
    const auto body = testing::stage(testing::copy("inside", d.array({samples}), d.array({samples})));
    d.add(testing::repeat_while("loop", cells, {body}, max_iterations, iterations));
    return d.add(testing::copy("behind", d.array({behind}), d.array({behind})));
  }
};

TEST(SameStructure, AnotherLoopIsNot) {
  using plane::DType;
  const Description built = LoopOf().description();
  expect_differs(built, LoopOf{4}.description(), "its guards");
  expect_differs(built, LoopOf{3, false}.description(), "its guards");
  expect_differs(built, LoopOf{3, true, false}.description(), "its counters");
  const auto other_cell = [&](const LoopOf& loop, const std::string& where) {
    expect_plane(built, loop.description(), Reason::wrong_dtype, "node 0 'loop': " + where);
  };
  other_cell({3, true, true, DType::i32}, "guard");
  other_cell({3, true, true, DType::i64, DType::i32}, "guard");
  other_cell({3, true, true, DType::i64, DType::i64, DType::i32}, "counter");
  const LoopOf longer{3, true, true, DType::i64, DType::i64, DType::i64, 9};
  EXPECT_EQ(compared(built, longer.description()).reason(), Reason::wrong_shape);
}

TEST(SameStructure, NodesOfABodyHaveNoIndex) {
  expect_plane(LoopOf().description(8), LoopOf().description(9), Reason::wrong_shape,
               "node 1 'behind': plane 'src'");
}

TEST(SameStructure, OtherBranchesAreNot) {
  Description d;
  const auto x = d.array({8});
  const auto node = [&](const std::string& name) { return testing::host(name, {{"x", x}}, {}); };
  const auto grouped = [&](const std::vector<std::vector<v1::Node>>& branches) {
    Description out = d;
    return out.add_group(branches);
  };
  const Description two = grouped({{node("a")}, {node("b")}});
  expect_differs(two, grouped({{node("a")}, {node("b")}, {node("c")}}), "its branches");
  expect_differs(two, grouped({{node("a")}, {node("b"), node("c")}}), "its nodes");
  Description plain = d;
  expect_differs(two, plain.add(node("a")), "its branches");

  const auto inner = testing::inner_group({{node("p")}, {node("q")}});
  Description longer = two;
  expect_differs(two, longer.add(node("c")), "its stages");

  const Description nested = grouped({{node("a")}, {inner, node("c")}});
  expect_differs(nested, grouped({{node("a")}, {node(""), node("c")}}), "its nodes");
  expect_differs(grouped({{node("a")}, {node("p"), node("c")}}), nested, "its nodes");
  const auto other = testing::inner_group({{node("p")}, {node("r")}});
  expect_differs(nested, grouped({{node("a")}, {other, node("c")}}), "its nodes");
}

TEST(SameStructure, NodesOfOneLabelAndAnotherKindAreNot) {
  Description d;
  const auto x = d.array({8});
  const auto y = d.array({8});
  Description host = d;
  host.add(testing::host("n", {{"src", x}}, {{"dst", y}}));
  expect_differs(host, d.add(testing::copy("n", x, y)), "its nodes");
}

}  // namespace
}  // namespace eagle::graph
