#include "engine/step/packed_tile.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace eagle::step {
namespace {

constexpr std::int64_t lanes = 4;

// Ten samples: x of one component, v of two, a mask.
struct Home {
  std::vector<double> x = std::vector<double>(10);
  std::vector<float> v = std::vector<float>(20);
  std::vector<std::uint8_t> mask = std::vector<std::uint8_t>(10);

  Home() {
    std::iota(x.begin(), x.end(), 100.0);
    std::iota(v.begin(), v.end(), 0.0f);
  }
  std::vector<ColumnMemory> columns() {
    return {{reinterpret_cast<std::byte*>(x.data()), 0, 1, 8, true},
            {reinterpret_cast<std::byte*>(v.data()), 40, 2, 4, false},
            {reinterpret_cast<std::byte*>(mask.data()), 0, 1, 1, true}};
  }
};

double* x_of(PackedTile& tile) { return reinterpret_cast<double*>(tile.column(0)); }
std::byte* masks_of(PackedTile& tile) { return tile.column(2); }
float v_of(PackedTile& tile, int component, std::int64_t i) {
  return reinterpret_cast<float*>(tile.column(1) + component * tile.component_stride(1))[i];
}

TEST(PackedTile, LoadsTheLiveSamplesOfARangeAndFillsTheLastBlock) {
  Home home;
  home.mask[3] = home.mask[5] = 1;
  PackedTile tile(home.columns(), 2, 8, lanes);
  tile.load(2, 9);
  ASSERT_EQ(tile.size(), 5);
  EXPECT_EQ(tile.padded(), 8);
  EXPECT_EQ(std::vector<std::int64_t>(tile.numbers(), tile.numbers() + 5),
            (std::vector<std::int64_t>{2, 4, 6, 7, 8}));
  EXPECT_EQ(x_of(tile)[1], 104.0);
  EXPECT_EQ(v_of(tile, 1, 2), 16.0f);
  EXPECT_EQ(masks_of(tile)[4], std::byte{0});
  for (std::int64_t i = 5; i < 8; ++i) EXPECT_EQ(masks_of(tile)[i], std::byte{1});
}

TEST(PackedTile, StoresWhatIsWrittenWhereItCameFrom) {
  Home home;
  PackedTile tile(home.columns(), 2, 8, lanes);
  tile.load(1, 4);
  x_of(tile)[2] = -1;
  masks_of(tile)[0] = std::byte{1};
  tile.store();
  EXPECT_EQ(home.x, (std::vector<double>{100, 101, 102, -1, 104, 105, 106, 107, 108, 109}));
  EXPECT_EQ(home.mask[1], 1);
  EXPECT_EQ(home.mask[4], 0);
}

TEST(PackedTile, DropsFinishedSamplesAndKeepsTheOthersTogether) {
  Home home;
  PackedTile tile(home.columns(), 2, 10, lanes);
  tile.load(0, 10);
  for (const int finished : {0, 4, 5, 9}) {
    x_of(tile)[finished] = -finished - 1;
    masks_of(tile)[finished] = std::byte{1};
  }
  tile.drop_finished();
  ASSERT_EQ(tile.size(), 6);
  EXPECT_EQ(tile.padded(), 8);
  // Those that left are at home.
  EXPECT_EQ(home.x[0], -1);
  EXPECT_EQ(home.x[9], -10);
  EXPECT_EQ(home.mask[5], 1);
  // Those that stayed have their numbers and their values.
  std::vector<bool> seen(10);
  for (std::int64_t i = 0; i < 6; ++i) {
    const std::int64_t number = tile.numbers()[i];
    EXPECT_EQ(x_of(tile)[i], 100.0 + static_cast<double>(number));
    EXPECT_EQ(v_of(tile, 0, i), static_cast<float>(number));
    EXPECT_EQ(v_of(tile, 1, i), static_cast<float>(10 + number));
    EXPECT_EQ(masks_of(tile)[i], std::byte{0});
    seen[static_cast<std::size_t>(number)] = true;
  }
  EXPECT_EQ(seen, (std::vector<bool>{false, true, true, true, false, false, true, true, true, false}));
}

TEST(PackedTile, OrdersByKeyAndKeepsEqualOnesInOrder) {
  Home home;
  PackedTile tile(home.columns(), 2, 8, lanes);
  tile.load(0, 6);
  const std::vector<std::int64_t> keys = {2, 0, 1, 0, 2, 1};
  tile.order_by(keys);
  EXPECT_EQ(std::vector<std::int64_t>(tile.numbers(), tile.numbers() + 6),
            (std::vector<std::int64_t>{1, 3, 2, 5, 0, 4}));
  EXPECT_EQ(x_of(tile)[4], 100.0);
  EXPECT_EQ(v_of(tile, 1, 0), 11.0f);
}

TEST(PackedTile, CountsBlocksWithLiveSamples) {
  Home home;
  PackedTile tile(home.columns(), 2, 10, lanes);
  tile.load(0, 10);
  EXPECT_EQ(tile.live_blocks(), 3);
  for (int i = 4; i < 8; ++i) masks_of(tile)[i] = std::byte{1};
  EXPECT_EQ(tile.live_blocks(), 2);
}

TEST(CountLiveBlocks, TakesAnyByteButZeroAsFinished) {
  const std::vector<std::byte> masks = {std::byte{1}, std::byte{2}, std::byte{255},
                                        std::byte{1}, std::byte{0}, std::byte{1},
                                        std::byte{1}, std::byte{1}, std::byte{7}};
  EXPECT_EQ(count_live_blocks(masks.data(), 9, 4), 1);
  EXPECT_EQ(count_live_blocks(masks.data() + 1, 8, 4), 1);
  EXPECT_EQ(count_live_blocks(masks.data(), 8, 3), 1);
  EXPECT_EQ(count_live_blocks(masks.data(), 0, 4), 0);
}

TEST(PackedTile, WithoutAMaskNothingIsPadded) {
  Home home;
  PackedTile tile(home.columns(), PackedTile::npos, 10, lanes);
  tile.load(0, 6);
  EXPECT_EQ(tile.size(), 6);
  EXPECT_EQ(tile.padded(), 6);
}

}  // namespace
}  // namespace eagle::step
