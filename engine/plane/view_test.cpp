#include "engine/plane/view.h"

#include <gmock/gmock.h>

#include <limits>

#include "engine/plane/testing.h"

namespace eagle::plane {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

View strided(std::int64_t offset, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  return {0, offset, DType::f64, 8, std::move(shape), std::move(strides)};
}

TEST(View, AcceptsExactlyTheBytesOfItsPlane) {
  EXPECT_TRUE(check(strided(0, {8}, {8}), 64).ok());
  EXPECT_TRUE(check(strided(56, {8}, {-8}), 64).ok());
  EXPECT_TRUE(check(strided(56, {}, {}), 64).ok());
  EXPECT_TRUE(check(strided(0, {1000, 8}, {0, 8}), 64).ok());
  EXPECT_EQ(check(strided(0, {8}, {8}), 63).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(1, {8}, {8}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(48, {8}, {-8}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(-8, {2}, {8}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(57, {}, {}), 64).reason(), Reason::view_outside_plane);
}

TEST(View, SaysWhatReachesOutside) {
  const Status status = check(strided(64, {4, 100}, {800, 8}), 3200);
  EXPECT_EQ(status.reason(), Reason::view_outside_plane);
  EXPECT_EQ(status.message(),
            "float64 (4, 100) strides (800, 8) at byte 64 with elements of 8 bytes reaches outside its plane "
            "of 3200 bytes");
}

TEST(View, AnEmptyViewTouchesNothingButLiesInItsPlane) {
  EXPECT_TRUE(check(strided(64, {0}, {8}), 64).ok());
  EXPECT_TRUE(check(strided(0, {0, largest, largest}, {8, largest, smallest}), 64).ok());
  EXPECT_EQ(check(strided(65, {0}, {8}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(-1, {0}, {8}), 64).reason(), Reason::view_outside_plane);
  const Extent none = extent(strided(64, {0}, {8}));
  EXPECT_EQ(none.first, 0);
  EXPECT_EQ(none.last, 0);
  EXPECT_EQ(elements(strided(0, {0, largest, largest}, {8, 8, 8})), 0);
}

TEST(View, NoStrideWrapsAround) {
  const std::int64_t half = std::int64_t{1} << 62;
  EXPECT_EQ(check(strided(0, {3}, {half}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(0, {5}, {half}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(0, {largest}, {largest}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(0, {2}, {smallest}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(0, {largest}, {smallest}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(smallest, {}, {}), 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(largest, {}, {}), ~std::uint64_t{0}).reason(), Reason::view_outside_plane);
  const View many = strided(0, std::vector<std::int64_t>(32, 3), std::vector<std::int64_t>(32, largest));
  EXPECT_EQ(check(many, 64).reason(), Reason::view_outside_plane);
  EXPECT_EQ(check(strided(0, {largest, 2}, {0, 0}), 64).reason(), Reason::bad_value);
}

TEST(View, StridesOfSingleElementsDoNotCount) {
  EXPECT_TRUE(check(strided(0, {1, 8}, {largest, 8}), 64).ok());
  EXPECT_TRUE(check(strided(0, {8, 1}, {8, smallest}), 64).ok());
}

TEST(View, RefusesAFormThatIsNone) {
  EXPECT_EQ(check(strided(0, {8}, {}), 64).reason(), Reason::bad_value);
  EXPECT_EQ(check(strided(0, {-1}, {8}), 64).reason(), Reason::bad_value);
  EXPECT_EQ(
      check(strided(0, std::vector<std::int64_t>(33, 1), std::vector<std::int64_t>(33, 8)), 64).reason(),
      Reason::bad_value);
  View view = strided(0, {8}, {8});
  view.item_bytes = 4;
  EXPECT_THAT(check(view, 64).message(), HasSubstr("8 bytes for float64, found 4"));
  view.dtype = static_cast<DType>(9);
  EXPECT_THAT(check(view, 64).message(), HasSubstr("unknown element type 9"));
  view.dtype = DType::other;
  EXPECT_TRUE(check(view, 64).ok());
  view.item_bytes = 0;
  EXPECT_EQ(check(view, 64).reason(), Reason::bad_value);
  EXPECT_THAT(check(view, 64).message(),
              HasSubstr("expected elements of at least 1 bytes for other, found 0"));
}

TEST(View, TheExtentBoundsTheBytes) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    const View view = testing::random_view(random, 400);
    SCOPED_TRACE(to_string(view));
    const std::set<std::int64_t> bytes = testing::bytes_touched(view);
    const Extent bounds = extent(view);
    ASSERT_EQ(bounds.first, bytes.empty() ? 0 : *bytes.begin());
    ASSERT_EQ(bounds.last, bytes.empty() ? 0 : *bytes.rbegin() + 1);
    ASSERT_EQ(elements(view) == 0, bytes.empty());
  }
}

TEST(View, PrintsAsPythonWrites) {
  EXPECT_EQ(to_string(testing::array({8})), "float64 (8,) strides (8,) at byte 0");
  EXPECT_EQ(to_string(testing::array({}, DType::boolean, 3)), "bool () strides () at byte 3");
}

}  // namespace
}  // namespace eagle::plane
