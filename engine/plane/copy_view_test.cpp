#include "engine/plane/copy_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace eagle::plane {
namespace {

View view(std::int64_t offset, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  return {0, offset, DType::f64, 8, std::move(shape), std::move(strides)};
}

TEST(CopyView, TakesAnyStridesOnBothSides) {
  std::vector<double> from(12), to(6, -1);
  std::iota(from.begin(), from.end(), 0.0);
  // Columns 3, 1 of a (3, 4) matrix, into rows.
  copy_view(view(24, {2, 3}, {-16, 32}), reinterpret_cast<const std::byte*>(from.data()),
            view(0, {2, 3}, {24, 8}), reinterpret_cast<std::byte*>(to.data()));
  EXPECT_EQ(to, (std::vector<double>{3, 7, 11, 1, 5, 9}));
}

TEST(CopyView, TouchesNothingElse) {
  const std::vector<double> from = {1, 2};
  std::vector<double> to(5, -1);
  copy_view(view(0, {2}, {8}), reinterpret_cast<const std::byte*>(from.data()), view(8, {2}, {16}),
            reinterpret_cast<std::byte*>(to.data()));
  EXPECT_EQ(to, (std::vector<double>{-1, 1, -1, 2, -1}));
}

TEST(CopyView, InPartsCopiesTheSame) {
  const std::int64_t rows = 3, columns = copy_part_bytes / 8;
  std::vector<double> from(static_cast<std::size_t>(rows * columns)), to(from.size(), -1);
  std::iota(from.begin(), from.end(), 0.0);
  int parts = 0;
  // A matrix, transposed and backwards.
  EXPECT_TRUE(copy_view(view(8 * (rows * columns - 1), {columns, rows}, {-8, -8 * columns}),
                        reinterpret_cast<const std::byte*>(from.data()),
                        view(0, {columns, rows}, {8 * rows, 8}), reinterpret_cast<std::byte*>(to.data()),
                        [&] { return ++parts == 0; }));
  EXPECT_GE(parts, 3);
  for (std::int64_t i = 0; i < columns; ++i) {
    for (std::int64_t j = 0; j < rows; ++j)
      ASSERT_EQ(to[static_cast<std::size_t>(i * rows + j)], (rows - j) * columns - 1 - i);
  }
}

TEST(CopyView, IsLeftWhenNobodyWantsItAnyMore) {
  const double from = 7;
  std::vector<double> to(2 * copy_part_bytes / 8, -1);
  const View all = view(0, {static_cast<std::int64_t>(to.size())}, {8});
  View same = all;
  same.strides = {0};
  int asked = 0;
  EXPECT_FALSE(copy_view(same, reinterpret_cast<const std::byte*>(&from), all,
                         reinterpret_cast<std::byte*>(to.data()), [&] { return ++asked == 2; }));
  EXPECT_EQ(to.front(), 7);
  EXPECT_EQ(to.back(), -1);
}

TEST(CopyView, OfNothingReadsNothing) {
  copy_view(view(0, {0, 3}, {24, 8}), nullptr, view(0, {0, 3}, {24, 8}), nullptr);
}

TEST(CopyView, OfOneElementIsThatElement) {
  const double from = 7;
  double to = 0;
  copy_view(view(0, {}, {}), reinterpret_cast<const std::byte*>(&from), view(0, {}, {}),
            reinterpret_cast<std::byte*>(&to));
  EXPECT_EQ(to, 7);
}

}  // namespace
}  // namespace eagle::plane
