#include "engine/run/team_thread.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace eagle::run {
namespace {

// Threads that a region of two really had.
int open_a_team() {
  std::atomic<int> members = 0;
#pragma omp parallel num_threads(2)
  ++members;
  return members;
}

TEST(TeamThread, IsTheCallingThreadInAProcessThatWasNotForked) {
  EXPECT_FALSE(in_forked_child());
  const auto caller = std::this_thread::get_id();
  EXPECT_TRUE(with_team([caller] { return std::this_thread::get_id() == caller; }));
}

// Opened in place, the child's team would wait for ever for threads that only the parent has.
TEST(TeamThread, AForkedChildOpensATeamThoughItsParentHadOne) {
#ifdef EAGLE_SANITIZED
  GTEST_SKIP() << "sanitizers do not follow threads into a forked child";
#endif
  const int here = open_a_team();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // the watchdog of the child
    const bool right = in_forked_child() && with_team(open_a_team) == here && with_team(open_a_team) == here;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace eagle::run
