#include "engine/graph/scratch.h"

#include <gmock/gmock.h>

#include <random>
#include <set>
#include <string>

#include "engine/graph/edges.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using ::testing::AllOf;
using testing::Description;
using ::testing::HasSubstr;
using testing::View;

// A description whose planes can be scratch, and copies between them.
struct Scene {
  Description d;

  View scratch(std::int64_t n, const std::string& name) {
    const View view = d.array({n});
    v1::PlaneDeclaration& plane = *d.message.mutable_planes(static_cast<int>(view.plane));
    plane.mutable_scratch();
    plane.set_label(name);
    return view;
  }
  static v1::Node copy(const View& from, const View& to) { return testing::copy("", from, to); }
  // y = x + x where `done` is not set, and sets it.
  std::uint32_t masked_kernel() {
    kernel::KernelBuilder builder("masked");
    const auto x = builder.scalar("x");
    builder.terminated("done");
    builder.output("y", builder.add(x, x));
    builder.commit("done", builder.boolean(true));
    return d.kernel(builder);
  }
  View cell() { return d.array({1}, DType::i64); }
  View scratch_of(DType dtype, std::int64_t n, const std::string& name) {
    View view = scratch(n, name);
    view.dtype = dtype;
    view.item_bytes = view.strides[0] = plane::bytes_of(dtype);
    return view;
  }
  [[nodiscard]] std::string refusal() const {
    const Status status = lay_out_scratch(d.graph()).status();
    EXPECT_EQ(status.reason(), Reason::scratch_plane) << status.to_string();
    return std::string(status.message());
  }
  void expect_accepted() const {
    const Status status = lay_out_scratch(d.graph()).status();
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  [[nodiscard]] ScratchLayout layout() const {
    auto found = lay_out_scratch(d.graph());
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return found.ok() ? std::move(found).value() : ScratchLayout();
  }
};

TEST(Scratch, AGraphWithoutAnyNeedsNoMemory) {
  Scene scene;
  const View x = scene.d.array({8});
  scene.d.add(Scene::copy(x, scene.d.array({8})));
  EXPECT_EQ(scene.layout().bytes, 0U);
  EXPECT_TRUE(scene.layout().uses.empty());
}

TEST(Scratch, PlanesTakeTurns) {
  Scene scene;
  View from = scene.d.array({8});
  for (const char* name : {"a", "b", "c", "d"}) {
    const View to = scene.scratch(8, name);
    scene.d.add(Scene::copy(from, to));
    from = to;
  }
  scene.d.add(Scene::copy(from, scene.d.array({8})));
  const ScratchLayout layout = scene.layout();
  ASSERT_EQ(layout.uses.size(), 4U);
  EXPECT_EQ(layout.bytes, 128U);
  EXPECT_EQ(layout.uses[0].offset, layout.uses[2].offset);
  EXPECT_EQ(layout.uses[1].offset, layout.uses[3].offset);
  EXPECT_EQ(layout.uses[2].name, "c");
  EXPECT_EQ(layout.uses[2].bytes, 64U);
}

TEST(Scratch, PlanesOfBranchesThatRunTogetherLieApart) {
  Scene scene;
  const View x = scene.d.array({8});
  const View a = scene.scratch(8, "a");
  const View b = scene.scratch(8, "b");
  scene.d.add_group({{Scene::copy(x, a)}, {Scene::copy(x, b)}});
  const ScratchLayout layout = scene.layout();
  EXPECT_NE(layout.uses[0].offset, layout.uses[1].offset);
}

TEST(Scratch, PlanesWithoutBytesOrUseHaveNoMemory) {
  Scene scene;
  const View x = scene.d.array({0});
  const View none = scene.scratch(0, "none");
  scene.scratch(8, "unused");
  scene.d.add(Scene::copy(x, none));
  const ScratchLayout layout = scene.layout();
  EXPECT_FALSE(layout.uses[0].in_memory);
  EXPECT_FALSE(layout.uses[1].in_memory);
  EXPECT_EQ(layout.bytes, 0U);
}

TEST(Scratch, PlanesOfMoreThan2To62BytesTogetherAreRefused) {
  const auto laid_out = [](std::uint64_t a, std::uint64_t b) {
    Scene scene;
    const View x = scene.d.array({8});
    std::vector<std::vector<v1::Node>> branches;
    for (const std::uint64_t bytes : {a, b}) {
      const View s = scene.scratch(8, "s");
      scene.d.message.mutable_planes(static_cast<int>(s.plane))->set_bytes(bytes);
      branches.push_back({Scene::copy(x, s)});
    }
    scene.d.add_group(branches);
    return lay_out_scratch(scene.d.graph()).status();
  };
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  EXPECT_TRUE(laid_out(most / 2, most / 2 - 2 * scratch_alignment).ok());
  for (const auto& [a, b] :
       {std::pair(most / 2, most / 2), {most, std::uint64_t{64}}, {2 * most - 1, 2 * most - 1}}) {
    EXPECT_EQ(laid_out(a, b).reason(), Reason::graph_limit);
    EXPECT_THAT(laid_out(a, b).message(), HasSubstr("2^62 bytes"));
  }
}

TEST(Scratch, WhatNobodyWroteIsNotRead) {
  Scene scene;
  scene.d.add(Scene::copy(scene.scratch(8, "empty"), scene.d.array({8})));
  const Status status = lay_out_scratch(scene.d.graph()).status();
  EXPECT_EQ(status.reason(), Reason::scratch_plane);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("node 0 'copy'"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("'empty'"));
}

// ---- what counts as written

TEST(ScratchWritten, APartIsNotTheWhole) {
  Scene scene;
  const View s = scene.scratch(8, "half");
  scene.d.add(Scene::copy(scene.d.array({4}), plane::testing::slice(s, 0, 0, 4)));
  scene.d.add(testing::copy("reader", s, scene.d.array({8})));
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("node 1 'reader': reads 'src'"), HasSubstr("'half'"),
                                     HasSubstr("only a part"), HasSubstr("write all of")));
}

TEST(ScratchWritten, PartsMakeAWhole) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  for (const std::int64_t start : {6, 0, 3}) {  // [6, 8), [0, 3), [3, 6), the last between the others
    const std::int64_t count = start == 6 ? 2 : 3;
    scene.d.add(Scene::copy(scene.d.array({count}), plane::testing::slice(s, 0, start, count)));
  }
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 7, 8, -1), scene.d.array({8})));
  scene.expect_accepted();
}

TEST(ScratchWritten, AGapStaysAGap) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  scene.d.add(Scene::copy(scene.d.array({3}), plane::testing::slice(s, 0, 0, 3)));
  scene.d.add(Scene::copy(scene.d.array({4}), plane::testing::slice(s, 0, 4, 4)));
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 2, 3), scene.d.array({3})));
  EXPECT_THAT(scene.refusal(), HasSubstr("only a part"));
}

TEST(ScratchWritten, AStridedViewIsReadAsItWasWritten) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  const View even = plane::testing::slice(s, 0, 0, 4, 2);
  scene.d.add(Scene::copy(scene.d.array({4}), even));
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 6, 4, -2), scene.d.array({4})));  // the same, reversed
  scene.expect_accepted();
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 1, 4, 2), scene.d.array({4})));
  EXPECT_THAT(scene.refusal(), HasSubstr("only a part"));
}

TEST(ScratchWritten, TheColumnsOfAMatrixAreTheMatrix) {
  Scene scene;
  const View s = scene.scratch(30, "s");
  const View m = plane::testing::array({10, 3}, DType::f64, 0, s.plane);
  const auto column = [&](std::int64_t i) { return plane::testing::at(m, 1, i); };
  scene.d.add(Scene::copy(scene.d.array({10}), column(0)));
  scene.d.add(Scene::copy(scene.d.array({10}), column(2)));
  Scene without = scene;
  without.d.add(Scene::copy(m, without.d.array({10, 3})));
  EXPECT_THAT(without.refusal(), HasSubstr("only a part"));
  scene.d.add(Scene::copy(scene.d.array({10}), column(1)));
  scene.d.add(Scene::copy(plane::testing::transposed(m), scene.d.array({3, 10})));
  scene.expect_accepted();
}

TEST(ScratchWritten, TheColumnsOfALowerPartOfAMatrixAreThatPart) {
  Scene scene;
  const View s = scene.scratch(30, "s");
  const View part = plane::testing::slice(plane::testing::array({10, 3}, DType::f64, 0, s.plane), 0, 4, 6);
  for (const std::int64_t i : {1, 0, 2})
    scene.d.add(Scene::copy(scene.d.array({6}), plane::testing::at(part, 1, i)));
  scene.d.add(Scene::copy(part, scene.d.array({6, 3})));
  scene.expect_accepted();
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 11, 2), scene.d.array({2})));
  EXPECT_THAT(scene.refusal(), HasSubstr("only a part"));
}

TEST(ScratchWritten, OneAxisOrTwoAreTheSameBytes) {
  Scene scene;
  const View s = scene.scratch(16, "s");
  const View even = plane::testing::slice(s, 0, 0, 8, 2);
  View folded = even;
  folded.shape = {2, 4};
  folded.strides = {64, 16};
  scene.d.add(Scene::copy(scene.d.array({2, 4}), folded));
  scene.d.add(Scene::copy(even, scene.d.array({8})));
  scene.expect_accepted();
}

TEST(ScratchWritten, AnAxisThatTakesNoStepIsNone) {
  Scene scene;
  const View s = scene.scratch(32, "s");
  const View rows = plane::testing::array({4, 8}, DType::f64, 0, s.plane);
  scene.d.add(Scene::copy(scene.d.array({1, 8}), plane::testing::slice(rows, 0, 0, 1, 3)));
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 0, 8), scene.d.array({8})));
  scene.expect_accepted();
}

TEST(ScratchWritten, APartOfWhatWasWrittenWholeIsReadInAnyStride) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  scene.d.add(Scene::copy(scene.d.array({8}), s));
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 1, 4, 2), scene.d.array({4})));
  scene.expect_accepted();
}

TEST(ScratchWritten, AnEmptyViewNeedsNoneAndWritesNone) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  const View none = plane::testing::slice(s, 0, 0, 0);
  scene.d.add(Scene::copy(none, scene.d.array({0})));
  scene.d.add(Scene::copy(scene.d.array({0}), none));
  scene.expect_accepted();
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 0, 1), scene.d.array({1})));
  EXPECT_THAT(scene.refusal(), HasSubstr("node 2"));
}

TEST(ScratchWritten, ARangeBelowAllOthersReachesNoFurther) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  for (const std::int64_t i : {6, 3})
    scene.d.add(Scene::copy(scene.d.array({1}), plane::testing::slice(s, 0, i, 1)));
  scene.d.add(Scene::copy(plane::testing::slice(s, 0, 3, 1), scene.d.array({1})));
  scene.expect_accepted();
  for (const auto& [start, count] : {std::pair(2, 2), {3, 3}}) {
    Scene more = scene;
    more.d.add(Scene::copy(plane::testing::slice(s, 0, start, count), more.d.array({count})));
    EXPECT_THAT(more.refusal(), HasSubstr("only a part"));
  }
}

TEST(ScratchWritten, ARefusalInOneBranchIsNotForgottenOverTheNext) {
  Scene scene;
  const View x = scene.d.array({8});
  scene.d.add_group({{testing::copy("bad", scene.scratch(8, "s"), scene.d.array({8}))},
                     {Scene::copy(x, scene.d.array({8}))}});
  EXPECT_THAT(scene.refusal(), HasSubstr("node 0 'bad'"));
}

TEST(ScratchWritten, AnArgumentThatAKernelDoesNotLookAtIsNeitherReadNorWritten) {
  kernel::KernelBuilder builder("idle");
  builder.scalar("unused");
  const auto k = builder.param("k");
  builder.output("y", builder.mul(k, builder.scalar("x")));
  Scene scene;
  const View s = scene.scratch(8, "s");
  scene.d.add(
      testing::launch("", scene.d.kernel(builder),
                      {{"unused", s}, {"k", 2.0}, {"x", scene.d.array({8})}, {"y", scene.d.array({8})}}));
  scene.expect_accepted();
  scene.d.add(Scene::copy(s, scene.d.array({8})));
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("node 1"), HasSubstr("before any node wrote")));
}

TEST(ScratchWritten, ALoopWritesItsCounterEvenIfItNeverRuns) {
  Scene scene;
  const View index = scene.scratch_of(DType::i64, 1, "index");
  const auto body = testing::stage(Scene::copy(scene.d.array({8}), scene.d.array({8})));
  scene.d.add(testing::repeat_while("loop", {index, scene.cell()}, {body}, 3, index));
  scene.d.add(Scene::copy(index, scene.cell()));
  scene.expect_accepted();
}

TEST(ScratchWritten, ASkippedWriterIsNotSure) {
  Scene scene;
  const View x = scene.d.array({8});
  const View s = scene.scratch(8, "s");
  scene.d.add(testing::skippable("maybe", {scene.cell()}, {testing::stage(Scene::copy(x, s))}));
  scene.d.add(testing::copy("reader", s, scene.d.array({8})));
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("node 1 'reader'"), HasSubstr("only where a conditional runs"),
                                     HasSubstr("before the conditional")));
}

TEST(ScratchWritten, ALoopMayRunNever) {
  Scene scene;
  const View x = scene.d.array({8});
  const View s = scene.scratch(8, "s");
  scene.d.add(testing::repeat_while("loop", {scene.cell()}, {testing::stage(Scene::copy(x, s))}, 3));
  scene.d.add(Scene::copy(s, scene.d.array({8})));
  EXPECT_THAT(scene.refusal(), HasSubstr("only where a conditional runs"));
}

TEST(ScratchWritten, ABodyReadsWhatItWroteItself) {
  Scene scene;
  const View x = scene.d.array({8});
  const View s = scene.scratch(8, "s");
  const View y = scene.d.array({8});
  const std::vector<v1::Stage> body = {testing::stage(Scene::copy(x, s)), testing::stage(Scene::copy(s, y))};
  scene.d.add(testing::repeat_while("loop", {scene.cell()}, body, 3));
  scene.expect_accepted();
}

TEST(ScratchWritten, ABodyDoesNotReadWhatItWritesLater) {
  Scene scene;
  const View x = scene.d.array({8});
  const View s = scene.scratch(8, "s");
  const View y = scene.d.array({8});
  const std::vector<v1::Stage> body = {testing::stage(testing::copy("early", s, y)),
                                       testing::stage(Scene::copy(x, s))};
  scene.d.add(testing::repeat_while("loop", {scene.cell()}, body, 3));
  EXPECT_THAT(scene.refusal(),
              AllOf(HasSubstr("node 0 'loop': body node 0 'early'"), HasSubstr("before any node wrote")));
}

// Half before the conditional, half in its body: whole there, and not behind it.
TEST(ScratchWritten, ABodyAddsToWhatWasWrittenBefore) {
  Scene scene;
  const View x = scene.d.array({4});
  const View s = scene.scratch(12, "s");
  const View y = scene.d.array({12});
  const auto part = [&](std::int64_t i) { return plane::testing::slice(s, 0, 4 * i, 4); };
  scene.d.add(Scene::copy(x, part(0)));
  scene.d.add(Scene::copy(x, part(2)));
  scene.d.add(testing::skippable(
      "maybe", {scene.cell()}, {testing::stage(Scene::copy(x, part(1))), testing::stage(Scene::copy(s, y))}));
  scene.expect_accepted();
  scene.d.add(Scene::copy(s, y));
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("node 3"), HasSubstr("only where a conditional runs")));
}

TEST(ScratchWritten, AGuardReadsItsCell) {
  Scene scene;
  const View cell = scene.scratch_of(DType::i64, 1, "cell");
  const View x = scene.d.array({8});
  const View y = scene.d.array({8});
  const View one = scene.cell();
  // The body writes the cell, but the guard is looked at first.
  const v1::Node maybe = testing::skippable(
      "maybe", {cell}, {testing::stage(Scene::copy(one, cell)), testing::stage(Scene::copy(x, y))});
  Scene written = scene;
  scene.d.add(maybe);
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("node 0 'maybe': guard: reads 'count'"), HasSubstr("'cell'")));
  written.d.add(Scene::copy(one, cell)).add(maybe);
  written.expect_accepted();
}

TEST(ScratchWritten, ABaselineIsReadToo) {
  Scene scene;
  const View cell = scene.scratch_of(DType::i64, 1, "cell");
  const View y = scene.d.array({8});
  scene.d.add(testing::skippable("maybe", {scene.cell(), cell},
                                 {testing::stage(Scene::copy(scene.d.array({8}), y))}));
  EXPECT_THAT(scene.refusal(), HasSubstr("reads 'baseline'"));
}

TEST(ScratchWritten, KernelsAndReductionsWrite) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  const View sum = scene.scratch(1, "sum");
  scene.d.add(testing::launch("", scene.d.double_kernel(), {{"x", scene.d.array({8})}, {"y", s}}));
  scene.d.add(testing::reduce("", s, sum));
  scene.d.add(Scene::copy(sum, scene.d.array({1})));
  scene.expect_accepted();
}

TEST(ScratchWritten, AStateIsReadBeforeItIsWritten) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  scene.d.add(testing::launch("sum", scene.d.accumulate_kernel(), {{"x", scene.d.array({8})}, {"y", s}}));
  EXPECT_THAT(scene.refusal(),
              AllOf(HasSubstr("node 0 'sum': reads 'y'"), HasSubstr("before any node wrote")));
}

TEST(ScratchWritten, AReductionReads) {
  Scene scene;
  scene.d.add(testing::reduce("sum", scene.scratch(8, "s"), scene.d.array({1})));
  EXPECT_THAT(scene.refusal(), HasSubstr("node 0 'sum': reads 'x'"));
}

TEST(ScratchWritten, AnOutputUnderAMaskIsNoRead) {
  Scene scene;
  const View s = scene.scratch(8, "s");
  const View done = scene.d.array({8}, DType::boolean);
  scene.d.add(
      testing::launch("", scene.masked_kernel(), {{"x", scene.d.array({8})}, {"y", s}, {"done", done}}));
  scene.d.add(Scene::copy(s, scene.d.array({8})));
  scene.expect_accepted();
}

TEST(ScratchWritten, AMaskIsRead) {
  Scene scene;
  const View done = scene.scratch_of(DType::boolean, 8, "done here");
  scene.d.add(testing::launch("masked", scene.masked_kernel(),
                              {{"x", scene.d.array({8})}, {"y", scene.d.array({8})}, {"done", done}}));
  EXPECT_THAT(scene.refusal(), AllOf(HasSubstr("reads 'done'"), HasSubstr("'done here'")));
}

TEST(ScratchWritten, SiblingsWriteForWhatFollows) {
  Scene scene;
  const View x = scene.d.array({4});
  const View s = scene.scratch(8, "s");
  scene.d.add_group({{Scene::copy(x, plane::testing::slice(s, 0, 0, 4))},
                     {Scene::copy(x, plane::testing::slice(s, 0, 4, 4))}});
  scene.d.add(Scene::copy(s, scene.d.array({8})));
  scene.expect_accepted();
}

// Whatever the views: what is accepted was written byte for byte. Seen from bytes that are listed.
TEST(ScratchWritten, NothingIsAcceptedThatWasNotWritten) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  constexpr std::int64_t elements = 24;
  const auto random_view = [&](const View& s) {
    const std::int64_t columns = std::vector<std::int64_t>{1, 2, 3, 4, 6}[random() % 5];
    View view = plane::testing::array({elements / columns, columns}, DType::f64, 0, s.plane);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t n = view.shape[axis];
      if (random() % 2 == 0) continue;
      const auto start = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      const auto step = 1 + static_cast<std::int64_t>(random() % 2);
      view = plane::testing::slice(view, axis, start, (n - start + step - 1) / step, step);
    }
    return random() % 2 == 0 ? view : plane::testing::transposed(view);
  };
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    Scene scene;
    const View s = scene.scratch(elements, "s");
    std::set<std::int64_t> sure;
    std::vector<v1::Stage> body;
    const std::uint64_t outside = random() % 4;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const View view = random_view(s);
      sure.merge(plane::testing::bytes_touched(view));
      v1::Node node = Scene::copy(scene.d.array(view.shape), view);
      if (i < outside) {
        scene.d.add(node);
      } else {
        body.push_back(testing::stage(node));
      }
    }
    const View view = random_view(s);
    body.push_back(testing::stage(Scene::copy(view, scene.d.array(view.shape))));
    scene.d.add(testing::skippable("maybe", {scene.cell()}, body));
    if (!lay_out_scratch(scene.d.graph()).ok()) continue;
    ++accepted;
    for (const std::int64_t byte : plane::testing::bytes_touched(view))
      ASSERT_TRUE(sure.contains(byte)) << byte;
  }
  EXPECT_GT(accepted, 0);
}

// ---- memory around a conditional

TEST(Scratch, APlaneReadInABodyOrBehindItKeepsItsMemory) {
  Scene scene;
  const View x = scene.d.array({8});
  const View y = scene.d.array({8});
  const View kept = scene.scratch(8, "kept");
  const View behind = scene.scratch(8, "behind");
  const View between = scene.scratch(8, "between");
  const View inside = scene.scratch(8, "inside");
  scene.d.add(Scene::copy(x, kept)).add(Scene::copy(x, behind));
  scene.d.add(Scene::copy(x, between)).add(Scene::copy(between, y));
  scene.d.add(testing::repeat_while(
      "loop", {scene.cell()}, {testing::stage(Scene::copy(x, inside)), testing::stage(Scene::copy(kept, y))},
      3));
  scene.d.add(Scene::copy(behind, y));
  const ScratchLayout layout = scene.layout();
  ASSERT_EQ(layout.uses.size(), 4U);
  EXPECT_EQ(layout.bytes, 3 * 64U);
  EXPECT_EQ(layout.uses[3].offset, layout.uses[2].offset);  // only `between` ended before `inside` began
  EXPECT_EQ(
      (std::set<std::uint64_t>{layout.uses[0].offset, layout.uses[1].offset, layout.uses[2].offset}).size(),
      3U);
}

TEST(Scratch, AHostNodeCannotTouchIt) {
  Scene scene;
  scene.d.add(testing::host("look", {{"s", scene.scratch(8, "mine")}}, {}));
  const Status status = scene.d.try_read().status();
  EXPECT_EQ(status.reason(), Reason::scratch_plane);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("'mine'"));
}

// Whatever the graph: planes in use at the same stage share no byte, and all lie inside.
TEST(Scratch, PlanesInUseTogetherNeverShareBytes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    Scene scene;
    std::vector<View> written = {scene.d.array({64})};
    for (int i = 0; i < 40; ++i) {
      const View from = written[random() % written.size()];
      const View to = scene.scratch(64, "s" + std::to_string(i));
      scene.d.add(Scene::copy(from, to));
      written.push_back(to);
    }
    const Graph graph = scene.d.graph();
    const ScratchLayout layout = scene.layout();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lives(graph.planes.size(), {~0U, 0});
    for (const Leaf& leaf : leaves(graph)) {
      for (const auto* side : {&leaf.touches.reads, &leaf.touches.writes}) {
        for (const NamedView& view : *side) {
          auto& [first, last] = lives[view.view.plane];
          first = std::min(first, leaf.stage);
          last = std::max(last, leaf.stage);
        }
      }
    }
    for (const ScratchUse& a : layout.uses) {
      EXPECT_LE(a.offset + a.bytes, layout.bytes);
      for (const ScratchUse& b : layout.uses) {
        if (a.plane >= b.plane) continue;
        const bool together =
            lives[a.plane].first <= lives[b.plane].second && lives[b.plane].first <= lives[a.plane].second;
        const bool share = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && share) << a.name << " and " << b.name;
      }
    }
  }
}

}  // namespace
}  // namespace eagle::graph
