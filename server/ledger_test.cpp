#include "server/ledger.h"
#include "server/limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace eagle::server {
namespace {

constexpr GraphHash hash{1, 2, 3};

std::vector<Ledger::Range> ranges(std::size_t count) {
  std::vector<Ledger::Range> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back({{i + 1, 7}, 64 * i, 8});
  return made;
}

class LedgerTest : public ::testing::Test {
protected:
  // As the process after this one sees it.
  [[nodiscard]] Ledger next() const { return *Ledger::open(UniqueFd(::dup(ledger_.fd()))); }
  Ledger ledger_ = *Ledger::create();
};

TEST_F(LedgerTest, SaysWhatWasCutOff) {
  const auto line = ledger_.note(5, hash, ranges(2));
  const auto cut = next().cut_off();
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].session, 5u);
  EXPECT_EQ(cut[0].written, ranges(2));
  EXPECT_FALSE(cut[0].all_planes);
  EXPECT_TRUE(next().running().empty()) << "it waits for its client";
}

TEST_F(LedgerTest, SuspectsWhatWasComputing) {
  auto line = ledger_.note(5, hash, ranges(1));
  line.computes(true);
  EXPECT_EQ(next().running(), std::vector<GraphHash>{hash});
  line.computes(false);
  EXPECT_TRUE(next().running().empty());
  line.cross_out();
  EXPECT_TRUE(next().cut_off().empty());
}

// A worker that dies before it has looked leaves the ledger as it is: that death is nobody's.
TEST_F(LedgerTest, LaysOneDeathToWhatWasComputing) {
  auto line = ledger_.note(5, hash, ranges(1));
  line.computes(true);
  EXPECT_EQ(next().take_running(), std::vector<GraphHash>{hash});
  EXPECT_TRUE(next().take_running().empty());
  ASSERT_EQ(next().cut_off().size(), 1u) << "its planes are torn all the same";
}

// A GPU that computes is waited for: what computed here meanwhile is what the process died of.
TEST_F(LedgerTest, LaysADeathToWhatAGpuComputesOnlyWhereNothingElseDid) {
  const GraphHash other{7};
  auto on_gpu = ledger_.note(5, other, ranges(1));
  auto here = ledger_.note(5, hash, ranges(1));
  on_gpu.computes(true, true);
  here.computes(true);
  EXPECT_EQ(next().running().size(), 2u);
  EXPECT_EQ(next().take_running(), std::vector<GraphHash>{hash});
  EXPECT_TRUE(next().running().empty());
  on_gpu.computes(true, true);
  EXPECT_EQ(next().take_running(), std::vector<GraphHash>{other});
  EXPECT_EQ(next().cut_off().size(), 2u);
}

TEST_F(LedgerTest, MoreThanThereIsRoomForIsEverything) {
  const auto line = ledger_.note(5, hash, ranges(100));
  EXPECT_TRUE(next().cut_off().at(0).all_planes);
}

TEST_F(LedgerTest, RangesAreKeptOnceAndOnlyUntilALineIsFull) {
  const auto column = [](std::int64_t i) {
    plane::View view;
    view.offset = 8 * i;
    view.shape = {4};
    view.strides = {8000};
    return view;
  };
  std::vector<Ledger::Range> made;
  add_range(made, {1, 7}, column(3));
  add_range(made, {1, 7}, column(3));
  ASSERT_EQ(made.size(), 1u);
  for (std::int64_t i = 0; i < 1000; ++i) add_range(made, {1, 7}, column(i));
  EXPECT_LT(made.size(), 100u) << "each addition looks through all of them";
  const auto line = ledger_.note(5, hash, made);
  EXPECT_TRUE(next().cut_off().at(0).all_planes);
}

TEST_F(LedgerTest, LinesAreUsedAgain) {
  for (int i = 0; i < 10'000; ++i) {
    auto line = ledger_.note(5, hash, ranges(1));
    line.computes(true);
    ASSERT_EQ(ledger_.running().size(), 1u);
  }
  EXPECT_TRUE(ledger_.cut_off().empty());
}

TEST_F(LedgerTest, WithoutALineLeftWorkGoesOn) {
  std::vector<Ledger::Line> lines;
  for (int i = 0; i < 9000; ++i) lines.push_back(ledger_.note(5, hash, ranges(1)));
  lines.back().computes(true);
  lines.clear();
  EXPECT_TRUE(ledger_.cut_off().empty());
}

TEST_F(LedgerTest, HasALineForEachJobThatThereMayBe) {
  Limits limits;
  std::int64_t most = 0;
  for_each_limit(limits, [&](std::string_view key, const auto&, std::int64_t, std::int64_t bound) {
    if (key == "jobs") most = bound;
  });
  std::vector<Ledger::Line> lines;
  for (std::int64_t i = 0; i < most; ++i) lines.push_back(ledger_.note(5, hash, ranges(1)));
  EXPECT_EQ(static_cast<std::int64_t>(ledger_.cut_off().size()), most);
}

// The formats before this one, as a keeper of that version leaves them: 2,048 lines of 480 bytes, and later
// 4,096 windows of 32 bytes behind them.
TEST(OlderLedgers, AreReadForWhatTheyHave) {
  constexpr std::size_t lines = 2048 * 480, windows = 4096 * 32;
  for (const std::size_t bytes : {lines, lines + windows}) {
    const auto memory = *plane::Memory::create(bytes, "older");
    const auto put = [&](std::size_t at, std::uint64_t value) {
      std::memcpy(memory.data() + at, &value, sizeof value);
    };
    put(480, 1);  // the second line: noted, without ranges,
    put(488, 5);  // of session 5
    if (bytes > lines) {
      put(lines + 32, 7);       // the second window: session 7
      put(lines + 32 + 16, 3);  // launch 3 was the highest
      put(lines + 32 + 24, 1);  // and has begun
    }
    auto ledger = Ledger::adopt(UniqueFd(::dup(memory.fd())));
    ASSERT_TRUE(ledger.ok()) << ledger.status().to_string();
    ASSERT_EQ(ledger->cut_off().size(), 1u);
    EXPECT_EQ(ledger->cut_off()[0].session, 5u);
    EXPECT_EQ(ledger->begun(7, true).may_have(4), bytes == lines) << "where it does not say, it may have";
  }
}

// ---- what has begun

TEST_F(LedgerTest, TellsWhatCertainlyHasNotBegun) {
  auto begun = ledger_.begun(5);
  for (const std::uint64_t id : {10u, 12u, 11u, 80u}) begun.note(id);
  Ledger left = next();
  const auto known = left.begun(5, true);
  EXPECT_TRUE(known.may_have(80));
  EXPECT_FALSE(known.may_have(79));
  EXPECT_FALSE(known.may_have(81));
  EXPECT_TRUE(known.may_have(12)) << "too long ago to be known";
  EXPECT_TRUE(known.may_have(13));
  EXPECT_FALSE(known.may_have(17));
}

TEST_F(LedgerTest, NothingIsCertainOfASessionThatWasNotNoted) {
  Ledger left = next();
  EXPECT_TRUE(left.begun(6, true).may_have(1));
  EXPECT_FALSE(left.begun(6).may_have(1)) << "a new one";
  EXPECT_TRUE(Ledger::Begun().may_have(1));
}

TEST_F(LedgerTest, WhatASessionLeavesIsForgottenWithIt) {
  { auto begun = ledger_.begun(5); }
  auto stays = ledger_.begun(6);
  stays.note(3);
  Ledger left = next();
  EXPECT_TRUE(left.begun(5, true).may_have(1));
  left.forget_unclaimed();
  EXPECT_TRUE(left.begun(6, true).may_have(1)) << "nobody asked for it in time";
}

// As a map of all ids says, but for what is too old.
TEST_F(LedgerTest, WhatHasBegunIsWhatWasNoted) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto begun = ledger_.begun(5);
  std::set<std::uint64_t> noted;
  std::uint64_t top = 1000;
  for (int i = 0; i < 2000; ++i) {
    top += random() % 20 == 0 ? random() % 100 : random() % 3;
    const std::uint64_t id = top - random() % 50;
    begun.note(id);
    noted.insert(id);
    const std::uint64_t highest = *noted.rbegin();
    for (std::uint64_t asked = highest - 63; asked <= highest + 2; ++asked) {
      ASSERT_EQ(begun.may_have(asked), noted.count(asked) != 0) << asked << " of " << highest;
    }
    ASSERT_TRUE(begun.may_have(highest - 64));
  }
}

}  // namespace
}  // namespace eagle::server
