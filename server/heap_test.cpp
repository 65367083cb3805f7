#include "server/heap.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace eagle::server {
namespace {

std::uint64_t resident() {
  std::uint64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Blocks as those of a message, of which one at the end stays: so the C library gives back nothing by itself.
class Blocks {
public:
  explicit Blocks(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / size; ++i) {
      blocks_.push_back(std::make_unique<std::byte[]>(size));  // cleared, hence touched
    }
    last_ = std::make_unique<std::byte[]>(size);
  }
  void free() {
    blocks_.clear();
    blocks_.shrink_to_fit();
  }

private:
  static constexpr std::size_t size = 200;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::unique_ptr<std::byte[]> last_;
};

constexpr std::uint64_t many = 4 * Heap::may_stay;

// Sanitizers bring an allocator of their own.
bool allocator_is_the_c_librarys() {
  const std::uint64_t before = ::mallinfo2().uordblks;
  const Blocks blocks(1u << 20);
  return ::mallinfo2().uordblks >= before + (1u << 20);
}

TEST(Heap, GivesBackWhatWasFreedAndAsksForItOnce) {
  if (!allocator_is_the_c_librarys()) GTEST_SKIP() << "the allocator is a sanitizer's";
  Heap heap;
  EXPECT_FALSE(heap.has_much_free());
  const std::uint64_t before = resident();
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    // Another thread has another arena.
    std::jthread([&] {
      Blocks blocks(many);
      EXPECT_GE(resident(), before + many);
      EXPECT_FALSE(heap.has_much_free()) << "it is in use";
      blocks.free();
      EXPECT_TRUE(heap.has_much_free());
      EXPECT_FALSE(heap.has_much_free()) << "it is about to be given back";
      heap.give_back();
      EXPECT_LT(resident(), before + Heap::may_stay);
      EXPECT_FALSE(heap.has_much_free());
    }).join();
  }
}

// As by a message that comes while memory is given back and goes soon after.
TEST(Heap, WhatIsFreedAfterwardsIsGivenBackToo) {
  if (!allocator_is_the_c_librarys()) GTEST_SKIP() << "the allocator is a sanitizer's";
  Heap heap;
  EXPECT_FALSE(heap.has_much_free());
  const std::uint64_t before = resident();
  std::jthread([&] {
    Blocks first(many);
    first.free();
    EXPECT_TRUE(heap.has_much_free());
    Blocks second(many);  // out of what is free still
    heap.give_back();
    second.free();
    EXPECT_TRUE(heap.has_much_free());
    heap.give_back();
    EXPECT_LT(resident(), before + Heap::may_stay);
  }).join();
}

TEST(Heap, IsAskedForNothingWhileWhatItHasIsInUse) {
  Heap heap;
  EXPECT_FALSE(heap.has_much_free());
  const Blocks blocks(many);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(heap.has_much_free());
}

}  // namespace
}  // namespace eagle::server
