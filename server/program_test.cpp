// eagled as a program: how it starts, says so, and ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eagle/v1/state.pb.h"
#include "engine/plane/memory.h"
#include "server/keeper/exchange.h"
#include "server/keeper/journal.h"
#include "server/keeper/left_state.h"
#include "server/secret.h"
#include "server/sockets/listening_socket.h"
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

// However long each of them takes: no window of time has five of their deaths where the machine is slow.
TEST_F(Program, EndsWhenNoWorkerComesToServe) {
  const std::string tokens = directory_ / "tokens";
  std::ofstream(tokens) << "";
  std::filesystem::permissions(tokens,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Child child = start({"--listen", endpoint(), "--tokens", tokens, "--crash-window", "1"});
  ASSERT_EQ(said_, "ready\n");
  SideClient client(path());
  const auto worker = static_cast<pid_t>(client.open().host().pid());
  std::ofstream(tokens) << "no line of tokens";
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  const int ended = child.wait();
  EXPECT_TRUE(WIFEXITED(ended));
  EXPECT_EQ(WEXITSTATUS(ended), 1);
}

TEST_F(Program, WithoutAKeeperItCannotBeExchangedAndServesOn) {
  Child child = start({"--listen", endpoint(), "--no-keeper"});
  EXPECT_EQ(said_, "ready\n");
  child.signal(SIGUSR2);
  SideClient client(path());
  EXPECT_EQ(client.open().host().pid(), child.pid());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 0);
}

// ---- states of other keepers

StateChange entry(std::uint64_t session, StateKind kind, std::uint64_t id, std::string value) {
  StateChange change;
  change.key = {session, kind, id};
  change.value = std::move(value);
  return change;
}

// Numbers of a child's descriptors.
constexpr int state_at = 40;
constexpr int journal_at = 41;
constexpr int ledger_at = 42;
constexpr int socket_at = 43;
constexpr int plane_at = 44;

// What a keeper of the older format leaves: a session with a plane.
class OlderState {
public:
  explicit OlderState(const std::string& path) {
    v1::SessionRecord session;
    secret_.fill(7);
    const Digest digest = digest_of(secret_);
    session.set_secret_digest(digest.data(), digest.size());
    session.set_uid(::getuid());
    session.set_client("older");
    v1::PlaneRecord plane;
    plane.set_generation(1);
    plane.set_bytes(bytes);
    plane.set_label("kept");
    plane.set_bytes_id(7);
    const std::vector<StateChange> changes = {entry(5, StateKind::session, 0, session.SerializeAsString()),
                                              entry(5, StateKind::plane, 1, plane.SerializeAsString())};
    EXPECT_TRUE(journal_.apply(changes).ok());
    std::strcpy(reinterpret_cast<char*>(plane_.data()), "its bytes");
    struct stat file {};
    EXPECT_EQ(::stat(path.c_str(), &file), 0);
    state_.listening = {{"unix:" + path, socket_at}};
    state_.socket_device = file.st_dev;
    state_.socket_inode = file.st_ino;
    state_.journal = journal_at;
    state_.ledger = ledger_at;
    state_.bytes[7] = plane_at;
  }
  // For a child that inherits it.
  std::vector<std::pair<int, int>> inherited(int socket, std::uint32_t version) {
    file_ = *write_left_state(state_, version);
    return {{file_.get(), state_at},
            {journal_.fd(), journal_at},
            {ledger_.fd(), ledger_at},
            {socket, socket_at},
            {plane_.fd(), plane_at}};
  }
  [[nodiscard]] v1::SideRequest resume() const {
    v1::SideRequest request = testing::hello();
    request.mutable_hello()->mutable_resume()->set_session(5);
    request.mutable_hello()->mutable_resume()->set_secret(secret_.data(), secret_.size());
    return request;
  }

private:
  static constexpr std::uint64_t bytes = 5000;
  static constexpr std::size_t older_ledger_bytes = std::size_t{2048} * 480;
  Secret secret_{};
  Journal journal_ = *Journal::create();
  plane::Memory ledger_ = *plane::Memory::create(older_ledger_bytes, "older");
  plane::Memory plane_ = *plane::Memory::create(bytes, "kept");
  LeftState state_;
  UniqueFd file_;
};

TEST_F(Program, TakesThePlaceOfAKeeperOfTheFormatBefore) {
  const ListeningSocket socket = *ListeningSocket::open(path());
  OlderState older(path());
  ::setenv(state_variable, std::to_string(state_at).c_str(), 1);
  Child child({eagled(), "--listen", endpoint()}, older.inherited(socket.fd(), left_state_version - 1));
  ::unsetenv(state_variable);
  SideClient client(path());
  client.send("EAGLESC1");
  client.send(older.resume());
  const v1::SideReply reply = client.receive();
  ASSERT_TRUE(reply.has_hello()) << reply.error().message();
  EXPECT_EQ(reply.hello().session(), 5u);
  EXPECT_EQ(parent_of(reply.hello().host().pid()), child.pid());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(Program, SaysWhetherItCanGoOnWithAState) {
  const ListeningSocket socket = *ListeningSocket::open(path());
  for (const auto& [version, status] :
       {std::pair{left_state_version - 1, 0}, std::pair{left_state_version, 0},
        std::pair{left_state_version + 1, 1}}) {
    OlderState older(path());
    const auto inherited = older.inherited(socket.fd(), version);
    Child child({eagled(), "--listen", endpoint(), "--check-state"},
                {{inherited[0].first, 3}, {inherited[1].first, 4}, {inherited[2].first, 5}});
    const int ended = child.wait();
    EXPECT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), status) << "format " << version;
  }
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
