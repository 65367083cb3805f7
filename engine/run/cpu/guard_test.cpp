#include "engine/run/cpu/guard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace eagle::run {
namespace {

// Cells of a plane that starts at an odd address, so that none of them is aligned.
class Guards : public testing::Test {
protected:
  template <typename T>
  graph::NamedView cell(std::int64_t offset, plane::DType dtype, T value) {
    std::memcpy(plane() + offset, &value, sizeof value);
    return {"cell", {0, offset, dtype, sizeof value, {1}, {sizeof value}}};
  }

  bool holds(graph::Guard guard) {
    const PlaneMemory memory{plane(), 64};
    const StatusOr<BoundGuard> bound = BoundGuard::bind(guard, {&memory, 1});
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    return bound.ok() && bound->holds();
  }

  std::byte* plane() { return bytes_ + 1; }

private:
  alignas(8) std::byte bytes_[72] = {};
};

TEST_F(Guards, HoldWhereTheCellIsNotZero) {
  EXPECT_FALSE(holds({cell<std::int64_t>(0, plane::DType::i64, 0), {}, false}));
  EXPECT_TRUE(holds({cell<std::int64_t>(0, plane::DType::i64, -1), {}, false}));
  EXPECT_TRUE(holds({cell<std::int64_t>(0, plane::DType::i64, std::int64_t{1} << 40), {}, false}));
  EXPECT_TRUE(holds({cell<std::int32_t>(0, plane::DType::i32, 1 << 30), {}, false}));
  EXPECT_TRUE(holds({cell<std::uint8_t>(0, plane::DType::boolean, 1), {}, false}));
  EXPECT_FALSE(holds({cell<std::uint8_t>(0, plane::DType::boolean, 0), {}, false}));
}

TEST_F(Guards, LookAtTheirOwnCellAlone) {
  cell<std::int64_t>(0, plane::DType::i64, -1);
  cell<std::int64_t>(12, plane::DType::i64, -1);
  EXPECT_FALSE(holds({cell<std::int32_t>(8, plane::DType::i32, 0), {}, false}));
}

TEST_F(Guards, ANegatedOneHoldsOtherwise) {
  EXPECT_TRUE(holds({cell<std::int64_t>(0, plane::DType::i64, 0), {}, true}));
  EXPECT_FALSE(holds({cell<std::int64_t>(0, plane::DType::i64, 3), {}, true}));
}

TEST_F(Guards, ABaselineIsSubtracted) {
  const auto count = cell<std::int64_t>(0, plane::DType::i64, 7);
  EXPECT_FALSE(holds({count, cell<std::int64_t>(8, plane::DType::i64, 7), false}));
  EXPECT_TRUE(holds({count, cell<std::int64_t>(8, plane::DType::i64, 6), false}));
  EXPECT_TRUE(holds({count, cell<std::int64_t>(8, plane::DType::i64, 7), true}));
}

TEST_F(Guards, ADifferenceThatOverflowsIsNotZero) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_TRUE(
      holds({cell(0, plane::DType::i64, Limits::min()), cell(8, plane::DType::i64, Limits::max()), false}));
}

TEST_F(Guards, CellsOfDifferentWidthsCompareAsNumbers) {
  const auto narrow = cell<std::int32_t>(0, plane::DType::i32, -5);
  EXPECT_FALSE(holds({narrow, cell<std::int64_t>(8, plane::DType::i64, -5), false}));
  EXPECT_TRUE(holds({narrow, cell<std::int64_t>(8, plane::DType::i64, 0xFFFFFFFB), false}));
}

TEST_F(Guards, AnyByteButZeroIsTrue) {
  const auto two = cell<std::uint8_t>(0, plane::DType::boolean, 2);
  EXPECT_FALSE(holds({two, cell<std::uint8_t>(1, plane::DType::boolean, 1), false}));
}

TEST_F(Guards, SeeWhatWasStoredSinceTheyWereBound) {
  const PlaneMemory memory{plane(), 64};
  const StatusOr<BoundGuard> bound =
      BoundGuard::bind({cell<std::int64_t>(0, plane::DType::i64, 0), {}, false}, {&memory, 1});
  ASSERT_TRUE(bound.ok());
  EXPECT_FALSE(bound->holds());
  cell<std::int64_t>(0, plane::DType::i64, 1);
  EXPECT_TRUE(bound->holds());
}

TEST_F(Guards, MemoryOutOfReachIsRefusedByName) {
  const PlaneMemory memory{nullptr, 64};
  const auto bound = BoundGuard::bind({cell<std::int64_t>(0, plane::DType::i64, 0), {}, false}, {&memory, 1});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.status().reason(), Reason::private_array);
  EXPECT_NE(bound.status().message().find("'cell'"), std::string::npos) << bound.status().message();
}

}  // namespace
}  // namespace eagle::run
