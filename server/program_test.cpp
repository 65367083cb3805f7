// eagled as a program: how it starts, says so, and ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "server/testing_client.h"

namespace eagle::server {
namespace {

using server::testing::SideClient;
using server::testing::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int ready_fd = 30;
constexpr int owner_fd = 31;

// A child process, ended with the test.
class Child {
public:
  // `inherited`: descriptors and the numbers that the child has them at.
  Child(std::vector<std::string> words, const std::vector<std::pair<int, int>>& inherited) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const auto& [from, to] : inherited) ::posix_spawn_file_actions_adddup2(&actions, from, to);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // What waitpid says.
  int wait() {
    int status = -1;
    EXPECT_EQ(::waitpid(std::exchange(pid_, 0), &status, 0) > 0, true);
    return status;
  }

private:
  pid_t pid_ = 0;
};

std::string eagled() {
  const char* path = std::getenv("EAGLED");
  return path == nullptr ? "eagled" : path;
}

// The keeper of a worker.
pid_t parent_of(std::int64_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  pid_t parent = -1;
  while (status >> word && word != "PPid:") {
  }
  status >> parent;
  return parent;
}

// Everything that comes until the writers have closed.
std::string read_all(int fd) {
  std::string text;
  char byte = 0;
  while (::read(fd, &byte, 1) == 1) text += byte;
  return text;
}

class Program : public ::testing::Test {
protected:
  // Starts eagled and waits until it says how that went.
  Child start(std::vector<std::string> options, std::vector<std::pair<int, int>> inherited = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd said(ends[0]);
    UniqueFd says(ends[1]);
    options.insert(options.begin(), {eagled(), "--ready-fd", std::to_string(ready_fd)});
    inherited.emplace_back(says.get(), ready_fd);
    Child child(options, inherited);
    says.reset();
    said_ = read_all(said.get());
    return child;
  }
  [[nodiscard]] std::string endpoint() const { return "unix:" + path(); }
  [[nodiscard]] std::string path() const { return directory_ / "eagled.sock"; }

  TemporaryDirectory directory_;
  std::string said_;
};

TEST_F(Program, ServesAndEndsOnSigterm) {
  Child child = start({"--listen", endpoint()});
  EXPECT_EQ(said_, "ready\n");
  SideClient client(path());
  EXPECT_EQ(parent_of(client.open().host().pid()), child.pid());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(client.at_end());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Program, IsOneProcessWithoutAKeeper) {
  Child child = start({"--listen", endpoint(), "--no-keeper"});
  EXPECT_EQ(said_, "ready\n");
  SideClient client(path());
  const auto opened = client.open();
  EXPECT_EQ(opened.host().pid(), child.pid());
  EXPECT_FALSE(opened.survives());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(Program, EndsWithItsOwner) {
  int until_end[2];
  ASSERT_EQ(::pipe2(until_end, O_CLOEXEC), 0);
  Child owner({"/bin/cat"}, {{until_end[0], 0}});
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, owner.pid(), 0)));
  ASSERT_TRUE(process.valid());
  Child child =
      start({"--listen", endpoint(), "--owner-fd", std::to_string(owner_fd)}, {{process.get(), owner_fd}});
  EXPECT_EQ(said_, "ready\n");
  ::close(until_end[0]);
  ::close(until_end[1]);
  EXPECT_EQ(owner.wait(), 0);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(Program, TellsWhyItDoesNotStart) {
  EXPECT_NE(start({"--listen", "tcp:host:7411"}).wait(), 0);
  EXPECT_THAT(said_, StartsWith("error: "));
  EXPECT_THAT(said_, HasSubstr("tcp:host:7411"));
  EXPECT_NE(start({"--listen", "unix:/tmp/" + std::string(200, 'p')}).wait(), 0);
  EXPECT_THAT(said_, HasSubstr("107"));
}

TEST_F(Program, HasThePlaneBudgetThatItWasGiven) {
  // More than any machine has.
  EXPECT_NE(start({"--listen", endpoint(), "--plane-budget", "1E"}).wait(), 0);
  EXPECT_THAT(said_, HasSubstr("plane budget"));
}

TEST_F(Program, TwoDoNotShareASocket) {
  const Child first = start({"--listen", endpoint()});
  EXPECT_EQ(said_, "ready\n");
  EXPECT_NE(start({"--listen", endpoint()}).wait(), 0);
  EXPECT_THAT(said_, HasSubstr("another daemon answers"));
  SideClient client(path());
  EXPECT_EQ(parent_of(client.open().host().pid()), first.pid());
}

TEST_F(Program, TakesThePlaceOfOneThatWasKilled) {
  pid_t worker = 0;
  {
    const Child killed = start({"--listen", endpoint()});
    EXPECT_EQ(said_, "ready\n");
    SideClient client(path());
    worker = static_cast<pid_t>(client.open().host().pid());
  }
  // It ends with its keeper, some time after it, and answers until then.
  while (::kill(worker, 0) == 0) std::this_thread::yield();
  ASSERT_TRUE(std::filesystem::exists(path()));
  const Child next = start({"--listen", endpoint()});
  EXPECT_EQ(said_, "ready\n");
}

TEST_F(Program, RefusesDescriptorsThatAreNotOpen) {
  EXPECT_NE(start({"--listen", endpoint(), "--owner-fd", "999"}).wait(), 0);
  EXPECT_THAT(said_, HasSubstr("--owner-fd: 999"));
}

TEST_F(Program, SaysItsVersion) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd said(ends[0]);
  UniqueFd says(ends[1]);
  Child child({eagled(), "--version"}, {{says.get(), 1}});
  says.reset();
  EXPECT_EQ(read_all(said.get()), "eagled " EAGLE_VERSION "\n");
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace eagle::server
