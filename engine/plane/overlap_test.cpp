#include "engine/plane/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "engine/plane/testing.h"

namespace eagle::plane {
namespace {

using testing::array;
using testing::at;
using testing::cast;
using testing::slice;
using testing::transposed;

// Exactly so, in both directions, within a handful of steps, and `first` is a byte of both.
void expect_overlap(const View& a, const View& b, bool overlaps, std::int64_t steps = 64) {
  for (const auto& [left, right] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    SCOPED_TRACE(to_string(*left) + " | " + to_string(*right));
    const Overlap found = overlap(*left, *right);
    EXPECT_EQ(found.overlaps, overlaps);
    EXPECT_TRUE(found.exact);
    EXPECT_LE(found.steps, steps);
  }
}

View broadcast(View view, std::int64_t times) {
  view.shape.insert(view.shape.begin(), times);
  view.strides.insert(view.strides.begin(), 0);
  return view;
}

View field(std::int64_t records, std::int64_t record_bytes, std::int64_t offset, std::uint32_t bytes) {
  return {0, offset, DType::other, bytes, {records}, {record_bytes}};
}

TEST(Overlap, PiecesOfOneVector) {
  const View x = array({8});
  expect_overlap(slice(x, 0, 0, 4, 2), slice(x, 0, 1, 4, 2), false);
  expect_overlap(x, slice(x, 0, 4, 4), true);
  expect_overlap(x, slice(x, 0, 8, 0), false);
  expect_overlap(slice(x, 0, 7, 4, -2), slice(x, 0, 0, 4, 2), false);
  expect_overlap(slice(x, 0, 7, 8, -1), at(x, 0, 0), true);
  expect_overlap(slice(x, 0, 0, 4), slice(x, 0, 4, 4), false);
}

TEST(Overlap, PiecesOfOneMatrix) {
  const View m = array({6, 4});
  expect_overlap(at(m, 1, 0), at(m, 1, 1), false);
  expect_overlap(at(m, 0, 0), at(m, 1, 0), true);
  expect_overlap(m, transposed(m), true);
  expect_overlap(slice(m, 0, 0, 3), slice(m, 0, 3, 3), false);
  expect_overlap(slice(slice(m, 0, 0, 3), 1, 0, 2), slice(slice(m, 0, 2, 3), 1, 2, 2), false);
}

TEST(Overlap, ColumnBlocksOfATallMatrixDoNotMeet) {
  const View m = array({20'000, 8});
  expect_overlap(slice(m, 1, 0, 4), slice(m, 1, 4, 4), false);
  expect_overlap(slice(m, 1, 0, 5), slice(m, 1, 4, 4), true);
  expect_overlap(slice(m, 1, 0, 4, 2), slice(m, 1, 1, 4, 2), false);
  expect_overlap(slice(slice(m, 1, 0, 4), 0, 19'999, 20'000, -1), slice(m, 1, 4, 4), false);
  const View vast = array({std::int64_t{1} << 40, 100'000});
  expect_overlap(slice(vast, 1, 0, 50'000), slice(vast, 1, 50'000, 50'000), false);
  expect_overlap(slice(vast, 1, 0, 50'001), slice(vast, 1, 50'000, 50'000), true);
}

TEST(Overlap, BroadcastsAndScalars) {
  const View x = array({8});
  expect_overlap(broadcast(slice(x, 0, 0, 1), 5), slice(x, 0, 1, 7), false);
  expect_overlap(broadcast(slice(x, 0, 0, 1), 5), slice(x, 0, 0, 1), true);
  expect_overlap(at(x, 0, 3), at(x, 0, 3), true);
  expect_overlap(at(x, 0, 3), at(x, 0, 4), false);
  expect_overlap(broadcast(slice(x, 0, 0, 1), std::int64_t{1} << 40), x, true);
}

TEST(Overlap, BytesOfOneElement) {
  const View x = array({8});
  expect_overlap(slice(cast(x, DType::boolean), 0, 7, 2), slice(x, 0, 1, 7), true);
  expect_overlap(slice(cast(x, DType::boolean), 0, 7, 1), slice(x, 0, 1, 7), false);
}

TEST(Overlap, FieldsOfRecordsAndPartsOfComplexNumbers) {
  expect_overlap(field(100'000, 24, 0, 8), field(100'000, 24, 8, 16), false);
  expect_overlap(field(100'000, 24, 0, 9), field(100'000, 24, 8, 16), true);
  expect_overlap(field(1000, 16, 0, 8), field(1000, 16, 8, 8), false);
}

TEST(Overlap, SlidingWindows) {
  const View windows{0, 0, DType::f64, 8, {1'000'000, 16}, {8, 8}};
  expect_overlap(windows, array({10}, DType::f64, 8 * 1'000'015), false);
  expect_overlap(windows, array({10}, DType::f64, 8 * 1'000'014), true);
  const View stepped{0, 0, DType::f64, 8, {1'000'000, 16}, {16, 16}};
  expect_overlap(stepped, View{0, 8, DType::f64, 8, {1'000'000}, {16}}, false);
}

TEST(Overlap, DifferentStridesAreDecidedWithoutWalkingThem) {
  // 40 i = 24 j + 8 has solutions, 40 i = 24 j + 4 (width 4) has none.
  const View a{0, 0, DType::f32, 4, {1'000'000'000}, {40}};
  expect_overlap(a, View{0, 8, DType::f32, 4, {1'000'000'000}, {24}}, true);
  expect_overlap(a, View{0, 4, DType::f32, 4, {1'000'000'000}, {24}}, false);
  // Coprime strides whose first meeting lies past the end: 1'000'003 i = 999'983 j + 1 needs i of about
  // half a million (the inverse of 20 modulo 999'983).
  const View p{0, 1, DType::boolean, 1, {1000}, {999'983}};
  const View q{0, 0, DType::boolean, 1, {1000}, {1'000'003}};
  expect_overlap(p, q, false);
  View longer_p = p;
  View longer_q = q;
  longer_p.shape = longer_q.shape = {1'000'000};
  expect_overlap(longer_p, longer_q, true);
}

TEST(Overlap, OtherPlanesNeverMeet) { expect_overlap(array({8}), array({8}, DType::f64, 0, 1), false); }

TEST(Overlap, PastTheWorkCapTheAnswerIsYes) {
  // Subset sums of odd-looking strides against an unreachable byte: a hard instance by construction.
  View a{0, 0, DType::boolean, 1, {}, {}};
  View b{0, 1, DType::boolean, 1, {}, {}};
  std::mt19937_64 random(11);
  for (int i = 0; i < 16; ++i) {
    a.shape.push_back(2);
    b.shape.push_back(2);
    a.strides.push_back(2 * static_cast<std::int64_t>(random() % 1'000'000'000'000));
    b.strides.push_back(2 * static_cast<std::int64_t>(random() % 1'000'000'000'000));
  }
  a.strides[3] += 1;  // not all even, so that the greatest common divisor decides nothing
  const Overlap found = overlap(a, b, 1000);
  EXPECT_TRUE(found.overlaps);
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.steps, 1000);
}

TEST(Overlap, BandsHoldWhatAViewTouches) {
  constexpr std::uint64_t seed = 31;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int banded = 0;
  for (int round = 0; round < 10'000; ++round) {
    const View view = testing::random_view(random, 300);
    SCOPED_TRACE(to_string(view) + "/" + std::to_string(view.item_bytes));
    const Band band = band_of(view);
    banded += band.stride > 0 ? 1 : 0;
    for (const std::int64_t byte : testing::bytes_touched(view)) {
      const std::int64_t column = band.stride > 0 ? byte % band.stride : byte;
      ASSERT_GE(column, band.first);
      ASSERT_LT(column, band.last);
    }
  }
  EXPECT_GT(banded, 1000);
}

TEST(Overlap, ColumnsOfAMatrixHaveBandsOfTheirOwn) {
  const View m = array({6, 4});
  const Band band = band_of(at(m, 1, 2));
  EXPECT_EQ(band.stride, 32);
  EXPECT_EQ(band.first, 16);
  EXPECT_EQ(band.last, 24);
  EXPECT_EQ(band_of(m).stride, 0);
}

TEST(Overlap, AnEmptyViewHasAnEmptyBand) {
  for (const auto& [shape, strides] :
       {std::pair(std::vector<std::int64_t>{0, 4}, std::vector<std::int64_t>{32, 8}),
        {{0, 4}, {100, 8}},
        {{4, 0}, {100, 8}}}) {
    const Band band = band_of(View{0, 0, DType::f64, 8, shape, strides});
    EXPECT_EQ(band.stride, 0);
    EXPECT_EQ(band.first, band.last);
  }
}

TEST(Overlap, AgreesWithComparingBytes) {
  constexpr std::uint64_t seed = 20'240'611;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int meetings = 0;
  constexpr int rounds = 40'000;
  for (int round = 0; round < rounds; ++round) {
    const View a = testing::random_view(random, 300);
    const View b = testing::random_view(random, 300);
    const std::set<std::int64_t> in_a = testing::bytes_touched(a);
    const std::set<std::int64_t> in_b = testing::bytes_touched(b);
    std::vector<std::int64_t> common;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(common));
    const Overlap found = overlap(a, b);
    SCOPED_TRACE(to_string(a) + "/" + std::to_string(a.item_bytes) + " | " + to_string(b) + "/" +
                 std::to_string(b.item_bytes));
    ASSERT_TRUE(found.exact);
    ASSERT_EQ(found.overlaps, !common.empty());
    if (found.overlaps) {
      ++meetings;
      ASSERT_TRUE(std::binary_search(common.begin(), common.end(), found.first));
    }
  }
  // Both answers were asked for often enough to mean something.
  EXPECT_GT(meetings, rounds / 20);
  EXPECT_LT(meetings, rounds * 19 / 20);
}

}  // namespace
}  // namespace eagle::plane
