#include "engine/plane/torn_views.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace eagle::plane {
namespace {

View doubles(std::int64_t offset, std::int64_t count) { return {0, offset, DType::f64, 8, {count}, {8}}; }
// Column `column` of a row-major matrix of `columns`.
View column(std::int64_t column, std::int64_t rows, std::int64_t columns) {
  return {0, 8 * column, DType::f64, 8, {rows}, {8 * columns}};
}

TEST(Covers, ADenseViewCoversWhatLiesInItsBytes) {
  EXPECT_TRUE(covers(doubles(0, 10), doubles(16, 3)));
  EXPECT_TRUE(covers(doubles(0, 12), column(1, 3, 4)));
  EXPECT_FALSE(covers(doubles(0, 10), doubles(72, 2)));
  EXPECT_FALSE(covers(doubles(8, 10), doubles(0, 2)));
  const View transposed{0, 0, DType::f64, 8, {3, 4}, {8, 24}};
  EXPECT_TRUE(covers(transposed, doubles(0, 12)));
}

TEST(Covers, AViewWithGapsCoversItselfInAnyDirectionAndNothingElse) {
  EXPECT_TRUE(covers(column(1, 3, 4), column(1, 3, 4)));
  const View reversed{0, 8 + 2 * 32, DType::f64, 8, {3}, {-32}};
  EXPECT_TRUE(covers(reversed, column(1, 3, 4)));
  EXPECT_FALSE(covers(column(1, 3, 4), doubles(8, 3)));
  EXPECT_FALSE(covers(column(0, 3, 4), column(1, 3, 4)));
}

TEST(Covers, ABroadcastViewCoversItsOneElement) {
  const View broadcast{0, 0, DType::f64, 8, {5}, {0}};
  EXPECT_TRUE(covers(broadcast, doubles(0, 1)));
  EXPECT_FALSE(covers(broadcast, doubles(0, 2)));
}

TEST(TornViews, HoldsWhatIsMarkedUntilItIsDropped) {
  TornViews torn;
  EXPECT_FALSE(torn.any());
  torn.mark(doubles(0, 4), "x");
  torn.mark(doubles(64, 4), "y");
  ASSERT_TRUE(torn.any());
  const auto marks = torn.marks();
  ASSERT_EQ(marks.size(), 2u);
  const std::uint64_t first = marks[0].number;
  torn.drop({&first, 1});
  ASSERT_EQ(torn.marks().size(), 1u);
  EXPECT_EQ(torn.marks()[0].what, "y");
}

TEST(TornViews, AMarkOverAnotherReplacesIt) {
  TornViews torn;
  for (int i = 0; i < 1000; ++i) torn.mark(doubles(0, 4), "x");
  EXPECT_EQ(torn.marks().size(), 1u);
  torn.mark(doubles(0, 0), "nothing");
  EXPECT_EQ(torn.marks().size(), 1u);
}

TEST(TornViews, AcceptTakesWhatSharesAByte) {
  TornViews torn;
  torn.mark(doubles(0, 4), "x");
  torn.mark(doubles(32, 4), "y");
  torn.mark(doubles(64, 4), "z");
  EXPECT_EQ(torn.accept(doubles(24, 2)), 2u);
  ASSERT_EQ(torn.marks().size(), 1u);
  EXPECT_EQ(torn.marks()[0].what, "z");
  EXPECT_EQ(torn.accept(doubles(64, 1)), 1u);
  EXPECT_FALSE(torn.any());
}

// Marks that do not fit are joined: too much is marked then, never too little.
TEST(TornViews, IsBoundedAndForgetsNothing) {
  TornViews torn;
  constexpr std::int64_t many = 1000;
  for (std::int64_t i = 0; i < many; ++i) torn.mark(doubles(16 * i, 1), "x" + std::to_string(i));
  const auto marks = torn.marks();
  EXPECT_LE(marks.size(), TornViews::most_marks);
  for (std::int64_t i = 0; i < many; ++i) {
    const bool held = std::any_of(marks.begin(), marks.end(), [&](const TornViews::Mark& mark) {
      return extent(mark.view).first <= 16 * i && 16 * i + 8 <= extent(mark.view).last;
    });
    EXPECT_TRUE(held) << i;
  }
}

}  // namespace
}  // namespace eagle::plane
