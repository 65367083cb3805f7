#include <gmock/gmock.h>

#include "engine/graph/edges.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using plane::testing::slice;
using plane::testing::transposed;
using testing::Description;
using testing::View;

Status copied(Description d, const View& from, const View& to,
              PrivateKernelPlanes planes = PrivateKernelPlanes::refused) {
  return d.add(testing::copy("", from, to)).try_read(planes).status();
}

void expect_refused(const Status& status, Reason reason, const char* words) {
  EXPECT_EQ(info(status.reason()).wire_name, info(reason).wire_name) << status.message();
  EXPECT_THAT(status.message(), ::testing::HasSubstr("node 0 'copy'"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr(words));
}

TEST(ReadCopy, AnyStridesAndTypesOfOneShape) {
  Description d;
  const View m = d.array({4, 6});
  const View n = d.array({6, 4}, DType::i32);
  EXPECT_TRUE(copied(d, transposed(m), n).ok());
  EXPECT_TRUE(copied(d, slice(m, 1, 5, 6, -1), transposed(n)).ok());
}

TEST(ReadCopy, OverlapsAreRefused) {
  Description d;
  const View x = d.array({8});
  expect_refused(copied(d, x, x), Reason::plane_overlap, "share bytes");
  expect_refused(copied(d, slice(x, 0, 0, 4), slice(x, 0, 3, 4)), Reason::plane_overlap, "share bytes");
  EXPECT_TRUE(copied(d, slice(x, 0, 0, 4, 2), slice(x, 0, 1, 4, 2)).ok());
}

TEST(ReadCopy, ADestinationHoldsEachElementOnce) {
  Description d;
  const View x = d.array({3, 4});
  View y = d.array({8});
  y.shape = {3, 4};
  y.strides = {0, 8};
  expect_refused(copied(d, x, y), Reason::plane_overlap, "several indices");
  y.strides = {8, 8};
  expect_refused(copied(d, x, y), Reason::plane_overlap, "'dst'");
  View from = y;
  from.strides = {0, 8};
  EXPECT_TRUE(copied(d, from, x).ok()) << "a source may be a broadcast";
}

TEST(ReadCopy, StridesOfAxesThatTakeNoStepDoNotMatter) {
  Description d;
  View one = d.array({8});
  one.shape = {1, 8};
  one.strides = {0, 8};
  EXPECT_TRUE(copied(d, d.array({1, 8}), one).ok());
  View none = one;
  none.shape = {0, 3};
  none.strides = {0, 0};
  EXPECT_TRUE(copied(d, d.array({0, 3}), none).ok());
}

TEST(ReadCopy, ADestinationOutsideOfItsPlaneAndFieldsOfALaterVersionAreRefused) {
  Description d;
  const View x = d.array({8});
  expect_refused(copied(d, x, slice(d.array({8}), 0, 1, 8)), Reason::view_outside_plane, "'dst'");
  v1::Node node = testing::copy("", x, d.array({8}));
  v1::Copy& message = *node.mutable_copy();
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1234, 1);
  expect_refused(d.add(node).try_read().status(), Reason::malformed_graph, "field 1234");
}

TEST(ReadCopy, AnotherShapeIsRefused) {
  Description d;
  const View x = d.array({8});
  expect_refused(copied(d, x, d.array({9})), Reason::wrong_shape, "(9,)");
}

TEST(ReadCopy, UnknownElementTypesAreCopiedAsTheyAre) {
  Description d;
  View a = d.array({8});
  View b = d.array({8});
  a.dtype = b.dtype = DType::other;
  EXPECT_TRUE(copied(d, a, b).ok());
  const View known = d.array({8});
  expect_refused(copied(d, a, known), Reason::wrong_dtype, "convert");
  expect_refused(copied(d, known, b), Reason::wrong_dtype, "convert");
  a.item_bytes = 4;
  expect_refused(copied(d, a, b), Reason::wrong_dtype, "convert");
}

TEST(ReadCopy, PrivateMemoryIsForTheClientsOwnProcess) {
  Description d;
  const View x = d.private_array({8});
  const View y = d.array({8});
  expect_refused(copied(d, x, y), Reason::private_array, "'src'");
  EXPECT_TRUE(copied(d, x, y, PrivateKernelPlanes::allowed).ok());
}

TEST(ReadCopy, AnIndexIsOneIntegerAndChoosesFromOneMoreAxis) {
  Description d;
  const View row = d.array({3}), stack = d.array({4, 3}), cell = d.array({1}, DType::i64);
  const auto indexed = [&](const View& from, const View& to, const View& index) {
    Description fresh = d;
    v1::Node node = testing::copy("", from, to);
    testing::to_message("which", index, *node.mutable_copy()->mutable_index());
    return fresh.add(std::move(node)).try_read();
  };
  for (const auto& graph : {indexed(row, stack, cell), indexed(stack, row, cell)}) {
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  }
  expect_refused(indexed(row, stack, row).status(), Reason::wrong_dtype, "'which'");
  expect_refused(indexed(row, stack, d.array({2}, DType::i64)).status(), Reason::wrong_shape, "one element");
  expect_refused(indexed(stack, stack, cell).status(), Reason::wrong_shape, "one more axis");
  expect_refused(indexed(d.array({4}), stack, cell).status(), Reason::wrong_shape, "one more axis");
  expect_refused(indexed(row, d.array({0, 3}), cell).status(), Reason::wrong_shape, "at least one row");
}

TEST(ReadCopy, OnlyOneRowOfAStackIsWritten) {
  Description d;
  const View row = d.array({3}), stack = d.array({4, 3}), cell = d.array({1}, DType::i64);
  v1::Node node = testing::copy("keep", row, stack);
  testing::to_message("which", cell, *node.mutable_copy()->mutable_index());
  d.add(std::move(node));
  const Graph graph = d.graph();
  const std::vector<Leaf> all = leaves(graph);
  std::vector<std::string> reads;
  for (const NamedView& read : all.front().touches.reads) reads.push_back(read.name);
  EXPECT_THAT(reads, ::testing::ElementsAre("src", "which", "dst")) << "the other rows keep what they had";
}

TEST(ReadDerivative, AVjpKernelDoesNotEnterAGraph) {
  Description d;
  kernel::KernelBuilder builder("affine_vjp");
  builder.derivative_of("affine");
  const auto x = builder.scalar("x");
  builder.output("bar_x", x);
  const std::uint32_t kernel = d.kernel(builder);
  d.add(testing::launch("direct", kernel, {{"x", d.array({8})}, {"bar_x", d.array({8})}}));
  const Status status = d.try_read().status();
  EXPECT_EQ(status.reason(), Reason::derivative_kernel);
  for (const char* word : {"node 0 'direct'", "'affine_vjp'", "'affine'", "eagle.diff"}) {
    EXPECT_THAT(status.message(), ::testing::HasSubstr(word));
  }
}

}  // namespace
}  // namespace eagle::graph
