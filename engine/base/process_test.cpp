#include "engine/base/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eagle {
namespace {

// What `say` tells of a forked child: its exit status.
template <typename Say>
int in_child(const Say& say) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(say() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Process, IsWhatTheKernelCallsIt) {
  EXPECT_EQ(this_process(), ::getpid());
  EXPECT_EQ(this_process(), ::getpid());
}

TEST(Process, IsAnotherOneInAForkedChildAndItsChild) {
  static_cast<void>(this_process());
  const auto right = [] { return this_process() == ::getpid() && this_process() == ::getpid(); };
  EXPECT_EQ(in_child([&] { return right() && in_child(right) == 0; }), 0);
  EXPECT_TRUE(right());
}

}  // namespace
}  // namespace eagle
