#include "engine/plane/packed.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace eagle::plane {
namespace {

View view_of(std::int64_t offset, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  View view;
  view.offset = offset;
  view.dtype = DType::i32;
  view.item_bytes = 4;
  view.shape = std::move(shape);
  view.strides = std::move(strides);
  return view;
}

// What a walk over the indices finds, element by element.
std::vector<std::byte> walked(const View& view, const std::vector<std::byte>& plane) {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> index(view.shape.size());
  for (std::int64_t n = 0; n < elements(view); ++n) {
    std::int64_t offset = view.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * view.strides[axis];
    bytes.insert(bytes.end(), plane.begin() + offset, plane.begin() + offset + view.item_bytes);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < view.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return bytes;
}

std::vector<std::byte> numbered_plane() {
  std::vector<std::byte> plane(4096);
  for (std::size_t i = 0; i < plane.size(); ++i) plane[i] = static_cast<std::byte>(i * 31 >> 2);
  return plane;
}

TEST(Packed, IsTheElementsInRowMajorOrderHoweverTheyLie) {
  const std::vector<std::byte> plane = numbered_plane();
  for (const View& view :
       {view_of(0, {1024}, {4}), view_of(8, {3, 5}, {20, 4}), view_of(8, {3, 5}, {4, 40}),
        view_of(400, {7}, {-16}), view_of(100, {4, 6}, {0, 4}), view_of(100, {2, 3, 4}, {512, -32, 4}),
        view_of(12, {}, {}), view_of(12, {1, 1, 9}, {999, -5, 8}), view_of(12, {0, 4}, {4, 4})}) {
    ASSERT_TRUE(check(view, plane.size()).ok()) << to_string(view);
    const Packed packed = *Packed::of(view);
    const std::vector<std::byte> expected = walked(view, plane);
    ASSERT_EQ(packed.bytes(), expected.size()) << to_string(view);
    std::vector<std::byte> found(expected.size());
    packed.read(plane.data(), 0, found);
    EXPECT_EQ(found, expected) << to_string(view);
  }
}

TEST(Packed, ATransferMayBeCutAtAnyByteAndGoOnThere) {
  const std::vector<std::byte> plane = numbered_plane();
  const View view = view_of(900, {5, 3, 6}, {-160, 52, 8});
  ASSERT_TRUE(check(view, plane.size()).ok());
  const Packed packed = *Packed::of(view);
  const std::vector<std::byte> expected = walked(view, plane);
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> read(expected.size());
    std::vector<std::byte> target(plane.size(), std::byte{0xee});
    for (std::size_t at = 0; at < read.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 90, read.size() - at);
      packed.read(plane.data(), at, std::span(read).subspan(at, count));
      packed.write(target.data(), at, std::span(expected).subspan(at, count));
      at += count;
    }
    ASSERT_EQ(read, expected);
    ASSERT_EQ(walked(view, target), expected);
    // And nothing beside the view was touched.
    ASSERT_EQ(static_cast<std::size_t>(std::count(target.begin(), target.end(), std::byte{0xee})),
              plane.size() - expected.size() +
                  static_cast<std::size_t>(std::count(expected.begin(), expected.end(), std::byte{0xee})));
  }
}

TEST(Packed, WhatWouldHaveTooManyBytesIsRefused) {
  const View view = view_of(0, {std::int64_t{1} << 61, 1}, {0, 0});
  ASSERT_TRUE(check(view, 4).ok());
  EXPECT_EQ(Packed::of(view).status().reason(), Reason::bad_value);
}

TEST(Packed, WhatIsWrittenHoldsNoByteTwiceWithoutEnd) {
  EXPECT_TRUE(check_target(view_of(0, {4}, {4}), 16).ok());
  EXPECT_TRUE(check_target(view_of(0, {2}, {12}), 16).ok());
  EXPECT_TRUE(check_target(view_of(0, {0, 5}, {0, 0}), 16).ok());
  EXPECT_EQ(check_target(view_of(0, {5}, {0}), 16).reason(), Reason::bad_value);
  EXPECT_EQ(check_target(view_of(0, {std::int64_t{1} << 59}, {0}), 4096).reason(), Reason::bad_value);
}

}  // namespace
}  // namespace eagle::plane
