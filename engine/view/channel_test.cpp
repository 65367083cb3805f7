#include "engine/view/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace eagle::view {
namespace {

ChannelNet net(std::vector<int> tops, std::vector<int> bottoms, int movable = 0) {
  ChannelNet made{std::move(tops), {}};
  for (const int x : bottoms) made.bottoms.push_back({x, x - movable, x + movable});
  return made;
}

TEST(Channel, ALineStraightDownTakesNoTrack) {
  std::vector<ChannelNet> nets = {net({5}, {5})};
  EXPECT_EQ(assign_tracks(nets), 0);
  EXPECT_EQ(nets[0].track, -1);
}

TEST(Channel, LinesThatDoNotTouchShareATrack) {
  std::vector<ChannelNet> nets = {net({1}, {4}), net({6}, {9})};
  EXPECT_EQ(assign_tracks(nets), 1);
}

TEST(Channel, NeighboursKeepAFreeColumn) {
  std::vector<ChannelNet> nets = {net({1}, {4}), net({5}, {9})};
  EXPECT_EQ(assign_tracks(nets), 2);
}

TEST(Channel, ALineThatEndsInAColumnLiesAboveOneThatStartsThere) {
  std::vector<ChannelNet> nets = {net({1}, {5}), net({5}, {9})};
  assign_tracks(nets);
  EXPECT_LT(nets[1].track, nets[0].track);
}

TEST(Channel, SwappedLinesMoveOneEndAside) {
  std::vector<ChannelNet> nets = {net({4}, {12}, 3), net({12}, {4}, 3)};
  EXPECT_EQ(assign_tracks(nets), 2);
  EXPECT_TRUE(nets[0].bottoms[0].x != 12 || nets[1].bottoms[0].x != 4);
}

// Pieces of different nets never lie on each other: tracks apart by a column, verticals apart in every
// column.
void expect_no_overlap(const std::vector<ChannelNet>& nets, int tracks) {
  std::map<int, std::vector<std::pair<int, int>>> rows;
  std::map<std::pair<int, int>, std::size_t> verticals;  // (x, track)
  for (std::size_t i = 0; i < nets.size(); ++i) {
    std::vector<int> xs = nets[i].tops;
    for (const ChannelBottom& bottom : nets[i].bottoms) {
      EXPECT_GE(bottom.x, bottom.lowest);
      EXPECT_LE(bottom.x, bottom.highest);
      xs.push_back(bottom.x);
    }
    const auto [low, high] = std::ranges::minmax(xs);
    const bool straight = nets[i].track < 0;
    ASSERT_EQ(straight, low == high);
    const auto claim = [&](int x, int from, int to) {
      for (int track = from; track <= to; ++track) {
        const auto [at, added] = verticals.try_emplace({x, track}, i);
        ASSERT_EQ(at->second, i) << "column " << x << " track " << track;
      }
    };
    for (const int x : nets[i].tops) claim(x, 0, straight ? tracks : nets[i].track);
    for (const ChannelBottom& bottom : nets[i].bottoms) claim(bottom.x, straight ? 0 : nets[i].track, tracks);
    if (!straight) rows[nets[i].track].emplace_back(low, high);
  }
  for (auto& [track, spans] : rows) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i) ASSERT_GT(spans[i].first, spans[i - 1].second + 1);
  }
}

TEST(Channel, RandomNetsNeverLieOnEachOther) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t limit) {
      return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    std::vector<int> tops;
    std::vector<int> bottoms;
    for (int i = 0; i < 30; ++i) {
      tops.push_back(8 * i);
      bottoms.push_back(8 * i + static_cast<int>(below(2)));
    }
    std::ranges::shuffle(tops, random);
    std::ranges::shuffle(bottoms, random);
    std::vector<ChannelNet> nets(2 + below(8));
    for (ChannelNet& made : nets) {
      for (std::size_t n = 1 + below(3); n > 0; --n) {
        made.tops.push_back(tops.back());
        tops.pop_back();
      }
      for (std::size_t n = 1 + below(3); n > 0; --n) {
        made.bottoms.push_back({bottoms.back(), bottoms.back() - 3, bottoms.back() + 3});
        bottoms.pop_back();
      }
    }
    const int tracks = assign_tracks(nets);
    expect_no_overlap(nets, tracks);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace eagle::view
