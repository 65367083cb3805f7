#include <gtest/gtest.h>

#include <string>

#include "proto/ring/layout.h"

namespace eagle::ring {
namespace {

constexpr std::size_t most = 64;

TEST(RingText, ComesBack) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9}, most}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
    Text<most> shared;
    shared.set("what was there before, which is longer than some");
    shared.set(text);
    EXPECT_EQ(shared.get(), text) << size;
  }
}

TEST(RingText, IsCutWhereItDoesNotFit) {
  Text<most> shared;
  shared.set(std::string(most + 100, 'x'));
  EXPECT_EQ(shared.get(), std::string(most, 'x'));
}

TEST(RingText, IsCutBetweenCharacters) {
  Text<most> shared;
  shared.set(std::string(most - 1, 'x') + "\u00fc and more");  // two bytes, of which one would fit
  EXPECT_EQ(shared.get(), std::string(most - 1, 'x'));
}

}  // namespace
}  // namespace eagle::ring
