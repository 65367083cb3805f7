#include "server/principal.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eagle::server {
namespace {

class PrincipalTest : public testing::Test {
protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_.reset(ends[0]);
    theirs_.reset(ends[1]);
  }
  UniqueFd ours_;
  UniqueFd theirs_;
};

TEST_F(PrincipalTest, IsWhoeverConnected) {
  const auto principal = principal_of(ours_.get());
  ASSERT_TRUE(principal.ok()) << principal.status().to_string();
  EXPECT_EQ(principal->uid, ::getuid());
  EXPECT_EQ(principal->gid, ::getgid());
  EXPECT_EQ(principal->pid, ::getpid());
}

TEST_F(PrincipalTest, ItsProcessRunsUntilItEnds) {
  const auto principal = principal_of(ours_.get());
  ASSERT_TRUE(principal.ok());
  EXPECT_TRUE(runs(process_of(ours_.get(), *principal).get()));
}

TEST_F(PrincipalTest, WhatIsNoSocketHasNone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read(ends[0]);
  const UniqueFd write(ends[1]);
  EXPECT_EQ(principal_of(read.get()).status().reason(), Reason::system);
}

// Seen from a user namespace without any mapping, every uid outside of it is the overflow uid.
TEST_F(PrincipalTest, NobodyInParticularIsRefused) {
  constexpr int no_namespace = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(no_namespace);
    ::_exit(principal_of(ours_.get()).status().reason() == Reason::unauthenticated ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == no_namespace) GTEST_SKIP() << "this system makes no user namespaces";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace eagle::server
