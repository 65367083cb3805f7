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
