#include "client/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "client/testing.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/edges.h"

namespace eagle {
namespace {

using eagle::testing::FakeHost;
using ::testing::HasSubstr;

std::shared_ptr<const Kernel> doubled(const std::string& in = "x", const std::string& out = "y") {
  KernelBuilder k("doubled");
  const auto x = k.scalar(in);
  k.output(out, k.add(x, x));
  return std::make_shared<const Kernel>(*k.finish());
}

template <typename T>
ArrayView view_of(std::vector<T>& values, Shape shape) {
  return {values.data(), DTypeOf<T>::value, sizeof(T), shape, row_major_strides(shape, sizeof(T)), false,
          nullptr};
}

NodeKind touching(NamedArrays reads, NamedArrays writes) {
  return opaque([] { return Status(); }, {std::move(reads), std::move(writes)});
}

// What a graph of these nodes, one after the other, is described as.
struct Described {
  v1::GraphDescription message;
  StatusOr<Backing> backing;
};
Described describe(const Host& host, std::vector<NodeKind> nodes) {
  std::vector<std::shared_ptr<const StageSpec>> stages;
  for (NodeKind& node : nodes) {
    StageSpec stage;
    stage.branches.push_back({{{"", std::move(node)}}});
    stages.push_back(std::make_shared<const StageSpec>(std::move(stage)));
  }
  Described result{{}, Status()};
  result.backing = describe_graph(host, "g", stages, result.message);
  return result;
}

const v1::View& read_view(const v1::GraphDescription& message, int stage) {
  return message.stages(stage).node().host().reads(0).view();
}

TEST(Describe, MemoryOfTheSessionBecomesAViewOfItsPlane) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(80, "x", Contents::zeros);
  ArrayView tail{buffer->data() + 16, DType::f64, 8, {8}, {8}, false, nullptr};
  const auto [message, backing] = describe(host, {touching({{"x", tail}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  ASSERT_EQ(message.planes_size(), 1);
  EXPECT_EQ(message.planes(0).plane().id(), 1u);
  EXPECT_EQ(message.planes(0).bytes(), 80u);
  EXPECT_EQ(read_view(message, 0).plane(), 0u);
  EXPECT_EQ(read_view(message, 0).offset(), 16);
  EXPECT_EQ(backing->private_planes.at(0).data, nullptr);
}

// An array whose plane was taken back has that id still.
TEST(Describe, ArraysOfOneIdAndTwoGenerationsLieInTwoPlanes) {
  FakeHost host("session a");
  const auto old = *host.allocate(80, "old", Contents::zeros);
  host.use_id_again();
  const auto fresh = *host.allocate(80, "fresh", Contents::zeros);
  const auto view = [](const std::shared_ptr<Buffer>& buffer) {
    return ArrayView{buffer->data(), DType::f64, 8, {10}, {8}, false, nullptr};
  };
  const auto [message, backing] =
      describe(host, {touching({{"x", view(old)}}, {}), touching({{"y", view(fresh)}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  ASSERT_EQ(message.planes_size(), 2);
  EXPECT_EQ(message.planes(0).plane().id(), message.planes(1).plane().id());
  EXPECT_NE(message.planes(0).plane().generation(), message.planes(1).plane().generation());
  EXPECT_NE(read_view(message, 0).plane(), read_view(message, 1).plane());
}

// Of a plane with one array people are told of its bytes, wherever in the plane it begins.
TEST(Describe, SaysWhereTheArrayOfAPlaneBegins) {
  FakeHost host("session a");
  std::vector<std::byte> memory(256);
  struct Part final : Buffer {
    Part(std::byte* data, std::uint64_t bytes) : Buffer(data, bytes) {}
    ~Part() override { PlaneRegistry::of_process().remove(*this); }
  };
  const auto array = std::make_shared<Part>(memory.data() + 64, 80);
  PlaneRegistry::of_process().add(
      *array, {std::make_shared<const std::string>(host.name()), {1, 1}, 256, 64, "x", array, {}, true});
  const ArrayView tail{array->data() + 16, DType::f64, 8, {8}, {8}, false, nullptr};
  const auto [message, backing] = describe(host, {touching({{"x", tail}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  EXPECT_EQ(message.planes(0).begins(), 64u);
  EXPECT_EQ(read_view(message, 0).offset(), 80);
}

TEST(Describe, KeepsTheArraysOfTheSessionAlive) {
  FakeHost host("session a");
  auto buffer = *host.allocate(80, "x", Contents::zeros);
  const std::weak_ptr<Buffer> watch = buffer;
  const ArrayView view{buffer->data(), DType::f64, 8, {10}, {8}, false, nullptr};
  auto described = describe(host, {touching({{"x", view}}, {})});
  buffer.reset();
  EXPECT_FALSE(watch.expired());
  described.backing = Status(Reason::internal, "dropped");
  EXPECT_TRUE(watch.expired());
}

TEST(Describe, PrivateArraysThatOverlapShareAPlaneAndOthersDoNot) {
  FakeHost host("session a");
  std::vector<double> memory(100);
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return ArrayView{memory.data() + first, DType::f64, 8, {count}, {8}, false, nullptr};
  };
  const auto [message, backing] =
      describe(host, {touching({{"a", part(50, 10)}}, {}), touching({{"b", part(0, 10)}}, {}),
                      touching({{"c", part(9, 10)}}, {}), touching({{"d", part(19, 5)}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  ASSERT_EQ(message.planes_size(), 3);  // b and c; d, which only touches c's end; a
  EXPECT_TRUE(message.planes(0).has_private_memory());
  EXPECT_EQ(message.planes(0).bytes(), 19u * 8);
  EXPECT_EQ(message.planes(1).bytes(), 5u * 8);
  EXPECT_EQ(message.planes(2).bytes(), 10u * 8);
  EXPECT_EQ(read_view(message, 1).plane(), read_view(message, 2).plane());
  EXPECT_EQ(read_view(message, 2).offset(), 72);
  EXPECT_EQ(backing->private_planes.at(0).data, reinterpret_cast<std::byte*>(memory.data()));
}

TEST(Describe, EdgesOfPrivateColumnsAreThoseOfTheirBytes) {
  FakeHost host("session a");
  std::vector<double> matrix(6 * 4);
  const auto column = [&](std::int64_t c) {
    return ArrayView{matrix.data() + c, DType::f64, 8, {6}, {32}, false, nullptr};
  };
  const auto [message, backing] = describe(
      host,
      {touching({}, {{"m", column(0)}}), touching({{"m", column(1)}}, {}), touching({{"m", column(0)}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  const auto graph = graph::read(message, graph::PrivateKernelPlanes::allowed);
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_THAT(graph::edges(*graph), ::testing::ElementsAre(Edge{0, 2, "m", Hazard::raw}));
}

TEST(Describe, AReversedViewStartsAtItsLastElement) {
  FakeHost host("session a");
  std::vector<double> memory(10);
  const ArrayView reversed{memory.data() + 9, DType::f64, 8, {10}, {-8}, false, nullptr};
  const auto [message, backing] = describe(host, {touching({{"x", reversed}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  EXPECT_EQ(read_view(message, 0).offset(), 72);
  EXPECT_EQ(message.planes(0).bytes(), 80u);
}

TEST(Describe, AnArrayWithoutElementsHasAPlaneWhateverItsAddress) {
  FakeHost host("session a");
  const ArrayView empty{nullptr, DType::f64, 8, {0}, {8}, false, nullptr};
  const auto [message, backing] = describe(host, {touching({{"x", empty}}, {})});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  EXPECT_TRUE(graph::read(message, graph::PrivateKernelPlanes::allowed).ok());
}

// Every view must reach the bytes it reached before, and no byte may lie in two planes.
TEST(Describe, RandomPrivateViewsKeepTheirAddresses) {
  FakeHost host("session a");
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<double> memory(1000);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArrayView> views;
    std::vector<NodeKind> nodes;
    for (int i = 0; i < 12; ++i) {
      const auto count = static_cast<std::int64_t>(1 + random() % 20);
      const std::int64_t step = static_cast<std::int64_t>(random() % 9) - 4;
      const std::int64_t first = 100 + static_cast<std::int64_t>(random() % 800);
      views.push_back({memory.data() + first, DType::f64, 8, {count}, {8 * step}, false, nullptr});
      nodes.push_back(touching({{"x", views.back()}}, {}));
    }
    const auto [message, backing] = describe(host, std::move(nodes));
    ASSERT_TRUE(backing.ok()) << backing.status().to_string();
    const auto& planes = backing->private_planes;
    for (int i = 0; i < message.stages_size(); ++i) {
      const v1::View& view = read_view(message, i);
      EXPECT_EQ(planes.at(view.plane()).data + view.offset(), views[static_cast<std::size_t>(i)].data);
    }
    for (std::size_t i = 1; i < planes.size(); ++i) {
      EXPECT_LE(planes[i - 1].data + planes[i - 1].bytes, planes[i].data);
    }
    EXPECT_TRUE(graph::read(message, graph::PrivateKernelPlanes::allowed).ok());
  }
}

TEST(Describe, EqualKernelsAreSentOnce) {
  FakeHost host("session a");
  std::vector<double> x(8);
  std::vector<double> y(8);
  const auto plan = [&](const std::shared_ptr<const Kernel>& kernel, const char* in, const char* out) {
    return BoundPlan{kernel, {{in, view_of(x, {8})}, {out, view_of(y, {8})}}};
  };
  const auto kernel = doubled();
  const auto [message, backing] =
      describe(host, {plan(kernel, "x", "y"), plan(kernel, "x", "y"), plan(doubled(), "x", "y"),
                      plan(doubled("a", "b"), "a", "b")});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  EXPECT_EQ(message.kernels_size(), 2);  // other argument names make another kernel
  EXPECT_TRUE(graph::read(message, graph::PrivateKernelPlanes::allowed).ok());
}

TEST(Describe, HostCallsAreNumberedInOrderThroughBodiesAndBranches) {
  FakeHost host("session a");
  std::vector<std::int64_t> flag(1);
  std::vector<int> called;
  const auto calling = [&](int number) -> NodeKind {
    return opaque(
        [&called, number] {
          called.push_back(number);
          return Status();
        },
        {});
  };
  const SkipGuard guard{{"flag", view_of(flag, {1})}, std::nullopt, false};
  const auto [message, backing] =
      describe(host, {calling(0), skippable({{"", calling(1)}, {"", calling(2)}}, guard), calling(3)});
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  ASSERT_EQ(backing->calls.size(), 4u);
  for (const auto& call : backing->calls) EXPECT_TRUE(call().ok());
  EXPECT_THAT(called, ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(message.stages(1).node().skippable().body(1).node().host().call(), 2u);
}

// ---- refusals

Status refusal(const Host& host, NodeKind node) { return describe(host, {std::move(node)}).backing.status(); }

TEST(Describe, RefusesAReadOnlyArrayWhereANodeWrites) {
  FakeHost host("session a");
  std::vector<double> x(8);
  std::vector<double> y(8);
  ArrayView frozen = view_of(y, {8});
  frozen.read_only = true;
  const Status kernel = refusal(host, BoundPlan{doubled(), {{"x", view_of(x, {8})}, {"y", frozen}}});
  EXPECT_EQ(kernel.reason(), Reason::read_only_array);
  EXPECT_THAT(kernel.message(), HasSubstr("'doubled': argument 'y'"));
  EXPECT_TRUE(refusal(host, BoundPlan{doubled(), {{"x", frozen}, {"y", view_of(x, {8})}}}).ok());
  EXPECT_EQ(refusal(host, touching({}, {{"w", frozen}})).reason(), Reason::read_only_array);
  EXPECT_TRUE(refusal(host, touching({{"r", frozen}}, {})).ok());
}

TEST(Describe, RefusesAnArrayOfAnotherSessionAndNamesBoth) {
  FakeHost a("session a");
  FakeHost b("session b");
  const auto buffer = *b.allocate(64, "x", Contents::zeros);
  const ArrayView foreign{buffer->data(), DType::f64, 8, {8}, {8}, false, nullptr};
  const Status status = refusal(a, touching({{"x", foreign}}, {}));
  EXPECT_EQ(status.reason(), Reason::mixed_sessions);
  EXPECT_THAT(status.message(), HasSubstr("session a"));
  EXPECT_THAT(status.message(), HasSubstr("session b"));
  EXPECT_THAT(status.message(), HasSubstr("'x'"));
}

TEST(Describe, RefusesAViewThatLeavesItsArray) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(64, "x", Contents::zeros);
  const Status status =
      refusal(host, touching({{"x", {buffer->data(), DType::f64, 8, {9}, {8}, false, nullptr}}}, {}));
  EXPECT_EQ(status.reason(), Reason::view_outside_plane);
}

TEST(Describe, RefusesStridesThatLeaveTheAddressSpaceInsteadOfWrapping) {
  FakeHost host("session a");
  std::vector<double> memory(8);
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  for (const ArrayView& view : {ArrayView{memory.data(), DType::f64, 8, {huge}, {huge}, false, nullptr},
                                ArrayView{memory.data(), DType::f64, 8, {huge}, {lowest}, false, nullptr},
                                ArrayView{memory.data(), DType::f64, 8, {2, 2}, {huge, huge}, false, nullptr},
                                ArrayView{memory.data(), DType::f64, 8, {2}, {-huge}, false, nullptr}}) {
    EXPECT_EQ(refusal(host, touching({{"x", view}}, {})).reason(), Reason::view_outside_plane);
  }
}

TEST(Describe, RefusesShapesThatCannotBe) {
  FakeHost host("session a");
  std::vector<double> memory(8);
  const auto reason = [&](Shape shape, std::vector<std::int64_t> strides, void* data) {
    return refusal(host, touching({{"x", {data, DType::f64, 8, shape, strides, false, nullptr}}}, {}))
        .reason();
  };
  EXPECT_EQ(reason({8}, {}, memory.data()), Reason::bad_value);
  EXPECT_EQ(reason({-1}, {8}, memory.data()), Reason::bad_value);
  EXPECT_EQ(reason({8}, {8}, nullptr), Reason::bad_value);
  EXPECT_EQ(reason(Shape(33, 1), std::vector<std::int64_t>(33, 8), memory.data()), Reason::bad_value);
}

TEST(Describe, RefusesNodesWithoutContent) {
  FakeHost host("session a");
  EXPECT_EQ(refusal(host, BoundPlan{}).reason(), Reason::bad_value);
  EXPECT_EQ(refusal(host, opaque(nullptr, {})).reason(), Reason::wrong_type);
  EXPECT_EQ(refusal(host, std::shared_ptr<const Conditional>()).reason(), Reason::bad_value);
}

TEST(Describe, BoundsTheNestingOfConditionals) {
  FakeHost host("session a");
  std::vector<std::int64_t> flag(1);
  const SkipGuard guard{{"flag", view_of(flag, {1})}, std::nullopt, false};
  NodeKind node = touching({}, {});
  for (int depth = 0; depth < 2000; ++depth) node = skippable({{"", node}}, guard);
  EXPECT_EQ(refusal(host, node).reason(), Reason::graph_limit);
}

TEST(Describe, TheCallersPartsOfAStepHaveTheirPlaces) {
  FakeHost host("session a");
  std::vector<double> x(8);
  std::vector<double> y(8);
  const BoundPlan plan{doubled(), {{"x", view_of(x, {8})}, {"y", view_of(y, {8})}}};
  int called = 0;
  const std::vector<ModelStep> model = {opaque([&] { return called = 1, Status(); }, {}), plan,
                                        opaque([&] { return called = 2, Status(); }, {})};
  SimulateOptions options{.max_steps = 5};
  options.between.push_back({[&] { return called = 3, step::HostAnswer{{}, true}; }, 10});
  v1::RunDescription message;
  std::vector<std::function<step::HostAnswer()>> calls;
  ASSERT_TRUE(describe_run(host, model, options, message, calls).ok());
  ASSERT_EQ(message.host_steps_size(), 3);
  EXPECT_EQ(message.host_steps(0).before(), 0u);
  EXPECT_EQ(message.host_steps(1).before(), 1u);
  EXPECT_EQ(message.host_steps(2).every(), 10);
  ASSERT_EQ(calls.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(message.host_steps(i).node().call(), static_cast<std::uint32_t>(i));
    EXPECT_EQ(calls[static_cast<std::size_t>(i)]().stop, i == 2);
    EXPECT_EQ(called, i + 1);
  }
}

TEST(Describe, ARunIsOneModelWithItsCap) {
  FakeHost host("session a");
  std::vector<double> x(8);
  std::vector<double> y(8);
  v1::RunDescription message;
  const ModelStep model = BoundPlan{doubled(), {{"x", view_of(x, {8})}, {"y", view_of(y, {8})}}};
  std::vector<std::function<step::HostAnswer()>> calls;
  const auto backing = describe_run(host, {&model, 1}, {.max_steps = 37}, message, calls);
  ASSERT_TRUE(backing.ok()) << backing.status().to_string();
  EXPECT_EQ(message.max_steps(), 37);
  EXPECT_EQ(message.model_size(), 1);
  EXPECT_EQ(message.planes_size(), 2);
  EXPECT_TRUE(calls.empty());
}

}  // namespace
}  // namespace eagle
