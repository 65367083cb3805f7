#include "client/departing_owners.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <utility>

namespace eagle {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  UniqueFd ours, theirs;
};

// Says so as it goes.
struct Owner {
  explicit Owner(std::promise<void> its_end) : end(std::move(its_end)) {}
  ~Owner() { end.set_value(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  std::promise<void> end;
};

struct Departing {
  Departing() {
    std::promise<void> end;
    gone = end.get_future();
    auto owner = std::make_shared<Owner>(std::move(end));
    alive = owner;
    keep_until_closed(std::move(pipe.ours), std::move(owner));
  }
  Pipe pipe;
  std::weak_ptr<Owner> alive;
  std::future<void> gone;
};

TEST(DepartingOwners, GoOnceTheOtherSideHasLetGo) {
  Departing first, second, third;
  second.pipe.theirs.reset();
  second.gone.wait();
  EXPECT_FALSE(first.alive.expired());
  EXPECT_FALSE(third.alive.expired());
  first.pipe.theirs.reset();
  third.pipe.theirs.reset();
  first.gone.wait();
  third.gone.wait();
}

TEST(DepartingOwners, ComeAgainAfterAllHaveGone) {
  for (int i = 0; i < 3; ++i) {
    Departing one;
    one.pipe.theirs.reset();
    one.gone.wait();
  }
}

TEST(DepartingOwners, MayBringOthers) {
  Departing inner;
  struct Outer {
    Pipe pipe;
    std::shared_ptr<Owner> owner;
    ~Outer() { keep_until_closed(std::move(pipe.ours), std::move(owner)); }
  };
  auto outer = std::make_shared<Outer>();
  std::promise<void> end;
  auto gone = end.get_future();
  outer->owner = std::make_shared<Owner>(std::move(end));
  outer->pipe.theirs.reset();
  Pipe pipe;
  keep_until_closed(std::move(pipe.ours), std::move(outer));
  pipe.theirs.reset();
  gone.wait();
  inner.pipe.theirs.reset();
  inner.gone.wait();
}

}  // namespace
}  // namespace eagle
