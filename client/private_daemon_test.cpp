// PrivateDaemon with small scripts in the place of eagled; the real one is met in tests/conformance.
#include "client/private_daemon.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace eagle {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::chrono::steady_clock::time_point far() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

class PrivateDaemonTest : public ::testing::Test {
protected:
  PrivateDaemonTest() {
    char pattern[] = "/tmp/private_daemon_test-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~PrivateDaemonTest() override {
    fs::remove_all(folder_);
    ::unsetenv("EAGLED");
    ::unsetenv("XDG_RUNTIME_DIR");
  }
  // Makes a program and names it in EAGLED. It leaves its arguments in `arguments`.
  void eagled_is(const std::string& script) {
    const std::string path = folder_ + "/eagled-for-test";
    std::ofstream(path) << "#!/bin/sh\necho \"$@\" > " << folder_ << "/arguments\n" << script << '\n';
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    ::setenv("EAGLED", path.c_str(), 1);
  }
  [[nodiscard]] std::size_t private_directories() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      count += entry.path().filename().string().starts_with("eagled-private-");
    }
    return count;
  }
  std::string folder_;
};

constexpr const char* serves = "echo ready >&4; exec sleep 1000";

TEST_F(PrivateDaemonTest, IsSharedByTheProcessAndEndsWithTheLastUser) {
  eagled_is(serves);
  auto a = PrivateDaemon::of_process(far());
  ASSERT_TRUE(a.ok()) << a.status().to_string();
  auto b = PrivateDaemon::of_process(far());
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(*a, *b);
  const pid_t pid = (*a)->pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  EXPECT_EQ(private_directories(), 1u);
  a->reset();
  EXPECT_EQ(::kill(pid, 0), 0);
  b->reset();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(private_directories(), 0u);
}

TEST_F(PrivateDaemonTest, ListensInADirectoryThatIsOursAlone) {
  eagled_is(serves);
  const auto daemon = PrivateDaemon::of_process(far());
  ASSERT_TRUE(daemon.ok()) << daemon.status().to_string();
  const std::string path = (*daemon)->endpoint().path;
  EXPECT_THAT(path, ::testing::StartsWith(folder_ + "/eagled-private-"));
  struct stat status {};
  ASSERT_EQ(::stat(fs::path(path).parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  std::string arguments;
  std::getline(std::ifstream(folder_ + "/arguments"), arguments);
  EXPECT_EQ(arguments, "--listen unix:" + path + " --no-keeper --owner-fd 3 --ready-fd 4");
}

TEST_F(PrivateDaemonTest, InheritsNothingButWhatItNeeds) {
  const int leaky = ::dup2(0, 50);  // not close-on-exec
  ASSERT_EQ(leaky, 50);
  eagled_is("ls /proc/self/fd > " + folder_ + "/descriptors; " + serves);
  const auto daemon = PrivateDaemon::of_process(far());
  ASSERT_TRUE(daemon.ok()) << daemon.status().to_string();
  std::ifstream listing(folder_ + "/descriptors");
  const std::vector<std::string> numbers(std::istream_iterator<std::string>(listing), {});
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), std::to_string(leaky)), 0) << leaky;
  ::close(leaky);
}

TEST_F(PrivateDaemonTest, OneThatDiedIsReplaced) {
  eagled_is(serves);
  const auto first = PrivateDaemon::of_process(far());
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  ::kill((*first)->pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>((*first)->pid()), &info, WEXITED | WNOWAIT), 0);
  const auto second = PrivateDaemon::of_process(far());
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_NE((*first)->pid(), (*second)->pid());
}

TEST_F(PrivateDaemonTest, PassesOnWhyItDidNotStart) {
  eagled_is("echo 'error: no room on the moon' >&4; exit 1");
  const Status status = PrivateDaemon::of_process(far()).status();
  EXPECT_EQ(status.reason(), Reason::no_daemon);
  EXPECT_THAT(status.message(), HasSubstr("no room on the moon"));
  EXPECT_EQ(private_directories(), 0u);
}

TEST_F(PrivateDaemonTest, SaysSoWhenItEndsWithoutAWord) {
  eagled_is("exit 3");
  const Status status = PrivateDaemon::of_process(far()).status();
  EXPECT_EQ(status.reason(), Reason::no_daemon);
  EXPECT_THAT(status.message(), HasSubstr("before it was ready"));
}

TEST_F(PrivateDaemonTest, IsNotWaitedForPastTheDeadline) {
  eagled_is("exec sleep 1000");
  const Status status =
      PrivateDaemon::of_process(std::chrono::steady_clock::now() + std::chrono::milliseconds(50)).status();
  EXPECT_EQ(status.reason(), Reason::no_daemon);
  EXPECT_THAT(status.message(), HasSubstr("in time"));
}

TEST_F(PrivateDaemonTest, AProgramThatIsNotThereIsNamed) {
  ::setenv("EAGLED", "/no/such/eagled", 1);
  const Status status = PrivateDaemon::of_process(far()).status();
  EXPECT_EQ(status.reason(), Reason::no_daemon);
  EXPECT_THAT(status.message(), HasSubstr("/no/such/eagled"));
}

TEST_F(PrivateDaemonTest, IsFoundOnPath) {
  eagled_is(serves);
  ::unsetenv("EAGLED");
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", ("/no/such:" + folder_).c_str(), 1);
  fs::rename(folder_ + "/eagled-for-test", folder_ + "/eagled");
  const auto found = find_eagled();
  // A build folder may hold the real one beside this test, which comes first.
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "eagled";
  EXPECT_EQ(*found, fs::exists(beside) ? beside.string() : folder_ + "/eagled");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(PrivateDaemonTest, AForkedChildStartsItsOwnAndLeavesOursAlone) {
  eagled_is(serves);
  auto daemon = PrivateDaemon::of_process(far());
  ASSERT_TRUE(daemon.ok()) << daemon.status().to_string();
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = PrivateDaemon::of_process(far());
    const bool fine = own.ok() && (*own)->pid() != (*daemon)->pid();
    if (own.ok()) own->reset();
    daemon->reset();
    ::_exit(fine ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::kill((*daemon)->pid(), 0), 0);
  EXPECT_TRUE(fs::exists(fs::path((*daemon)->endpoint().path).parent_path()));
}

TEST_F(PrivateDaemonTest, RemovesWhatKilledClientsLeft) {
  eagled_is(serves);
  const std::string left = folder_ + "/eagled-private-killed";
  fs::create_directory(left);
  std::ofstream(left + "/eagled.sock") << "";
  std::ofstream(left + "/client.lock") << "";
  const auto daemon = PrivateDaemon::of_process(far());
  ASSERT_TRUE(daemon.ok()) << daemon.status().to_string();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(private_directories(), 1u);
}

}  // namespace
}  // namespace eagle
