#include "client/departing_owners.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <utility>

#include "engine/base/detached.h"

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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Where the system has no thread, here for want of room for its stack.
TEST(DepartingOwnersDeathTest, WaitForTheNextWhereThereIsNoThreadForThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Pipe pipe;
        std::promise<void> end;
        auto gone = end.get_future();
        auto owner = std::make_shared<Owner>(std::move(end));
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit before{};
        if (pages == 0 || ::getrlimit(RLIMIT_AS, &before) != 0) std::exit(1);
        rlimit none = before;
        none.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (512u << 10);
        if (::setrlimit(RLIMIT_AS, &none) != 0) std::exit(2);
        if (start_detached([] {}).ok()) std::exit(3);
        keep_until_closed(std::move(pipe.ours), std::move(owner));
        if (::setrlimit(RLIMIT_AS, &before) != 0) std::exit(4);
        Departing next;
        pipe.theirs.reset();
        gone.wait();
        next.pipe.theirs.reset();
        next.gone.wait();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}
#endif

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
