#include "engine/run/host.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "engine/run/thread_limits.h"

namespace eagle::run {
namespace {

TEST(OmpNumThreads, FirstLevelCounts) {
  EXPECT_EQ(omp_num_threads("4"), 4);
  EXPECT_EQ(omp_num_threads(" 3 , 2"), 3);
}

TEST(OmpNumThreads, WhatOpenMpWouldNotTakeIsIgnored) {
  for (const char* value : {"", " ", "0", "-2", "many", "4x", "99999999999"}) {
    EXPECT_EQ(omp_num_threads(value), std::nullopt) << "'" << value << "'";
  }
}

TEST(TeamBound, TheLeastCounts) {
  EXPECT_EQ(team_bound(8, std::nullopt, std::nullopt), 8);
  EXPECT_EQ(team_bound(8, 3, std::nullopt), 3);
  EXPECT_EQ(team_bound(8, 3, 2), 2);
  EXPECT_EQ(team_bound(2, 3, 4), 2);
  EXPECT_EQ(team_bound(0, std::nullopt, std::nullopt), 1);
}

TEST(AvailableThreads, ObeyTheEnvironment) {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string saved = before ? before : "";
  ::setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(available_threads(), 1);
  if (before) {
    ::setenv("OMP_NUM_THREADS", saved.c_str(), 1);
  } else {
    ::unsetenv("OMP_NUM_THREADS");
  }
  EXPECT_GE(available_threads(), 1);
}

TEST(TeamThatStarts, LeavesSomethingForOtherThreads) {
  EXPECT_EQ(team_that_starts(8, 7 + spare_threads), 8);
  EXPECT_EQ(team_that_starts(8, 6 + spare_threads), 7);
  EXPECT_EQ(team_that_starts(8, spare_threads), 1);
  EXPECT_EQ(team_that_starts(8, 0), 1);
  EXPECT_EQ(team_that_starts(1, 0), 1);
}

// What a process of a user who may have `processes` processes and threads finds, or a negative number. Limits
// do not hold for root, so it is another user there.
int startable_under_a_limit(rlim_t processes, int wanted) {
  constexpr uid_t nobody_else = 54'321;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{processes, processes};
    if (::getuid() == 0 && ::setresuid(nobody_else, nobody_else, nobody_else) != 0) ::_exit(255);
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(254);
    ::_exit(startable_threads(wanted));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "it was ended by a signal";
  return WEXITSTATUS(status);
}

TEST(StartableThreads, AreNoMoreThanTheUserMayHave) {
  EXPECT_EQ(startable_under_a_limit(1, 8), 1);
  if (::getuid() != 0)
    GTEST_SKIP() << "who else runs as this user is not known: only root can be a fresh one";
  EXPECT_EQ(startable_under_a_limit(1 + 4 + spare_threads, 8), 5);
  EXPECT_EQ(startable_under_a_limit(1 + 7 + spare_threads, 8), 8);
}

TEST(StartableThreads, AreAllThatAreWantedWhereNothingIsInTheWay) {
  EXPECT_EQ(startable_threads(1), 1);
  EXPECT_EQ(startable_threads(3), 3);
}

TEST(ThisHost, NamesThisProcessAndMachine) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(this_host().pid, ::getpid());
  EXPECT_EQ(this_host().host_name, name);
}

TEST(ThisHost, IsRightInAForkedChild) {
  const std::int64_t parent = this_host().pid;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(this_host().pid == ::getpid() && this_host().pid != parent ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace eagle::run
