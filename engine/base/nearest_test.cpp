#include "engine/base/nearest.h"

#include <gtest/gtest.h>

namespace eagle {
namespace {

TEST(Nearest, CountsWhatHasToBeChanged) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);  // Levenshtein's classic pair
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3u);
}

TEST(Nearest, FindsTheFirstOfTheNearest) {
  const std::vector<std::string> names = {"planes", "graphs", "graph"};
  EXPECT_EQ(*nearest("grahps", names), "graphs");
  EXPECT_EQ(*nearest("plane", names), "planes");
  EXPECT_EQ(nearest("x", {}), nullptr);
}

TEST(Nearest, LongWordsTakeBoundedTime) {
  const std::vector<std::string> names = {std::string(10'000'000, 'a'), "b"};
  EXPECT_EQ(*nearest(std::string(10'000'000, 'b'), names), "b");
}

}  // namespace
}  // namespace eagle
