#include "engine/graph/wire.h"

#include <gmock/gmock.h>

namespace eagle::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Plane labelled(const std::string& label) {
  Plane plane;
  plane.label = label;
  return plane;
}

TEST(RefusePrivate, NamesTheArrayWhereItHasAName) {
  EXPECT_THAT(refuse_private(labelled("x"), "node 0", "the kernel").message(),
              AllOf(StartsWith("node 0: the array 'x' is private memory"), HasSubstr("the kernel runs")));
  EXPECT_THAT(refuse_private(labelled(""), "node 0", "the kernel").message(),
              StartsWith("node 0: the array is private memory"));
}

TEST(RefusePrivate, IsForMemoryOfTheClientAlone) {
  Plane shared;
  shared.shared = PlaneId{1, 0};
  EXPECT_TRUE(refuse_private(shared, "node 0", "the kernel").ok());
  Plane scratch;
  scratch.scratch = true;
  EXPECT_TRUE(refuse_private(scratch, "node 0", "the kernel").ok());
}

TEST(RefuseScratch, NamesThePlaneWhereItHasAName) {
  Plane plane = labelled("s");
  EXPECT_TRUE(refuse_scratch(plane, "node 0").ok());
  plane.scratch = true;
  EXPECT_EQ(refuse_scratch(plane, "node 0").reason(), Reason::scratch_plane);
  EXPECT_THAT(refuse_scratch(plane, "node 0").message(), StartsWith("node 0: 's' is a scratch plane"));
  plane.label.clear();
  EXPECT_THAT(refuse_scratch(plane, "node 0").message(), StartsWith("node 0: it is a scratch plane"));
}

}  // namespace
}  // namespace eagle::graph
