#include "client/imported_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace eagle {
namespace {

class Nowhere final : public Buffer {
public:
  explicit Nowhere(const ImportedMemory& memory)
      : Buffer(nullptr, memory.bytes, false, "cuda:0"), owner_(memory.owner) {}

private:
  std::shared_ptr<const void> owner_;
};

class ImportedRangesTest : public ::testing::Test {
protected:
  StatusOr<std::shared_ptr<Buffer>> import(std::uint64_t address, std::uint64_t bytes,
                                           std::shared_ptr<const void> owner = nullptr) {
    return ranges.find_or({address, bytes, std::move(owner)},
                          [&](const ImportedMemory& memory) -> StatusOr<std::shared_ptr<Buffer>> {
                            ++made;
                            return std::shared_ptr<Buffer>(std::make_shared<Nowhere>(memory));
                          });
  }
  ImportedRanges ranges;
  int made = 0;
};

TEST_F(ImportedRangesTest, TheSameBytesAreTheSameArrayWhileSomebodyHasIt) {
  auto first = import(1000, 64);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*import(1000, 64), *first);
  EXPECT_EQ(made, 1);
  first = std::shared_ptr<Buffer>();
  EXPECT_TRUE(import(1000, 64).ok());
  EXPECT_EQ(made, 2);
}

TEST_F(ImportedRangesTest, AllWhoGaveTheBytesAreKeptOnceEachUntilTheArrayGoes) {
  auto first = std::make_shared<const int>(1), second = std::make_shared<const int>(2);
  const std::weak_ptr<const int> one = first, two = second;
  auto array = import(1000, 64, std::move(first));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(import(1000, 64, second).ok());
  EXPECT_EQ(two.use_count(), 2);
  second.reset();
  EXPECT_FALSE(one.expired());
  EXPECT_FALSE(two.expired());
  array = std::shared_ptr<Buffer>();
  EXPECT_TRUE(one.expired());
  EXPECT_TRUE(two.expired());
}

TEST_F(ImportedRangesTest, BytesThatShareSomeAreRefused) {
  const auto first = import(1000, 64);
  for (const auto& [address, bytes] : {std::pair(1000u, 32u), std::pair(1063u, 1u), std::pair(900u, 101u),
                                       std::pair(900u, 1000u), std::pair(1001u, 64u)}) {
    EXPECT_EQ(import(address, bytes).status().reason(), Reason::plane_overlap) << address;
  }
  EXPECT_TRUE(import(1064, 8).ok());
  EXPECT_TRUE(import(992, 8).ok());
}

TEST_F(ImportedRangesTest, OnceAnArrayIsGoneItsBytesMayBePartOfAnother) {
  auto first = import(1000, 64);
  first = std::shared_ptr<Buffer>();
  EXPECT_TRUE(import(1000, 32).ok());
}

TEST_F(ImportedRangesTest, WhatCannotBeMadeLeavesNothing) {
  const auto failed = ranges.find_or({1000, 64, nullptr}, [](const ImportedMemory& /*memory*/) {
    return StatusOr<std::shared_ptr<Buffer>>(Status(Reason::bad_value, "no"));
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(import(1032, 64).ok());
}

}  // namespace
}  // namespace eagle
