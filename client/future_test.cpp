// Future: what becomes of continuations when handles go.
#include "eagle/client/future.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

namespace eagle {
namespace {

TEST(Future, TheLastHandleMayGoInAContinuationThatOthersFollow) {
  std::promise<void> begin, ended;
  std::optional<Future<int>> only(std::in_place, [started = begin.get_future().share()](const auto&) {
    started.wait();
    return StatusOr<int>(7);
  });
  const Executor in_place = [](const std::function<void()>& function) { function(); };
  int told = 0;
  only->then(in_place, [&](const StatusOr<int>&) { only.reset(); });
  only->then(in_place, [&](const StatusOr<int>& outcome) { told = *outcome; });
  only->then(in_place, [&](const StatusOr<int>&) { ended.set_value(); });
  begin.set_value();
  ended.get_future().wait();
  EXPECT_EQ(told, 7);
  EXPECT_FALSE(only.has_value());
}

}  // namespace
}  // namespace eagle
