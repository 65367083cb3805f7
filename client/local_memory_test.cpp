// Memory of arrays in this process that is used again.
#include "client/local_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/plane/stagger.h"

namespace eagle {
namespace {

using Block = LocalMemory::Block;
using std::chrono::seconds;

constexpr std::uint64_t large = 1u << 20;

struct LocalMemoryTest : testing::Test {
  std::shared_ptr<LocalMemory> memory = std::make_shared<LocalMemory>();
  Block block(std::uint64_t bytes, std::uint64_t number = 0, Contents contents = Contents::any) {
    return *memory->allocate(bytes, number, contents);
  }
};

bool all_zero(const Block& block, std::uint64_t bytes) {
  return std::all_of(block.data(), block.data() + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST_F(LocalMemoryTest, AnArrayOfEqualSizeHasTheMemoryOfTheLastOne) {
  const std::byte* before = nullptr;
  {
    const Block gone = block(large);
    before = gone.data();
  }
  EXPECT_GT(memory->kept_bytes(), large);
  EXPECT_EQ(block(large).data(), before);
}

TEST_F(LocalMemoryTest, ZerosAreZeroInMemoryThatIsUsedAgain) {
  for (const std::uint64_t bytes : {std::uint64_t{5000}, large, large + 1, 3 * large - 7}) {
    for (std::uint64_t number = 0; number < 5; ++number) {
      const Block zeros = block(bytes, number, Contents::zeros);
      EXPECT_TRUE(all_zero(zeros, bytes)) << bytes << " bytes, array " << number;
      std::memset(zeros.data(), 0xff, bytes);
    }
  }
}

TEST_F(LocalMemoryTest, ArraysBeginWhereTheirNumbersSayInMemoryThatIsUsedAgain) {
  for (std::uint64_t number = 0; number < 70; ++number) {
    const Block some = block(large, number);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some.data()) % plane::stagger::page,
              plane::stagger_of(number));
    std::memset(some.data(), 1, large);
  }
}

TEST_F(LocalMemoryTest, ArraysThatLiveNeverShareMemory) {
  std::vector<Block> all;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) all.push_back(block(large, static_cast<std::uint64_t>(i)));
    std::vector<const std::byte*> begins;
    for (const Block& one : all) begins.push_back(one.data());
    std::sort(begins.begin(), begins.end());
    for (std::size_t i = 1; i < begins.size(); ++i) ASSERT_GE(begins[i] - begins[i - 1], large);
    for (int i = 0; i < 4; ++i) all.pop_back();
  }
}

TEST_F(LocalMemoryTest, WhatIsKeptIsBoundedInBytesAndNumber) {
  std::vector<Block> all;
  for (int i = 0; i < 40; ++i) all.push_back(block(large));
  all.clear();
  EXPECT_LE(memory->kept_bytes(), LocalMemory::most_kept * (large + 2 * plane::stagger::page));
  for (int i = 0; i < 3; ++i) all.push_back(block(LocalMemory::most_kept_bytes / 2 - large));
  all.clear();
  EXPECT_LE(memory->kept_bytes(), LocalMemory::most_kept_bytes);
  EXPECT_GT(memory->kept_bytes(), 0U);
}

TEST_F(LocalMemoryTest, WhatIsOldGoesWithTheNextArray) {
  static_cast<void>(block(large));
  ASSERT_GT(memory->kept_bytes(), 0U);
  const auto later = LocalMemory::Clock::now() + LocalMemory::longest_kept + seconds(1);
  const auto other = memory->allocate(2 * large, 0, Contents::any, later);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(memory->kept_bytes(), 0U);
}

TEST_F(LocalMemoryTest, ACloseGivesEverythingBackAndKeepsNothingMore) {
  std::optional<Block> lives = block(large);
  static_cast<void>(block(2 * large));
  memory->close();
  EXPECT_EQ(memory->kept_bytes(), 0U);
  std::memset(lives->data(), 1, large);
  lives.reset();
  EXPECT_EQ(memory->kept_bytes(), 0U);
}

TEST_F(LocalMemoryTest, MoreThanASystemHasIsRefused) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_EQ(memory->allocate(bytes, 0, Contents::any).status().reason(), Reason::out_of_memory);
  }
}

// Another thread may have held the lock when the process forked.
TEST_F(LocalMemoryTest, AForkedChildGivesItsCopyBackAndKeepsNothing) {
  std::optional<Block> lives = block(large);
  std::memset(lives->data(), 7, large);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool same = lives->data()[large - 1] == std::byte{7};
    lives.reset();
    ::_exit(same && memory->kept_bytes() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lives->data()[0], std::byte{7});
}

}  // namespace
}  // namespace eagle
