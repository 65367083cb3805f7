// Clients whose processes the daemon cannot see: in a pid namespace of their own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/unique_fd.h"
#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

constexpr const char* endpoint_variable = "EAGLE_TEST_ENDPOINT";

// The client: this program once more, in the namespace. It holds an array, and launches over it when asked.
TEST(ClientInANamespace, DISABLED_Works) {
  const char* const endpoint = std::getenv(endpoint_variable);
  if (endpoint == nullptr) GTEST_SKIP() << "it is started by the tests below";
  ConnectOptions options;
  options.timeout = std::chrono::seconds(60);
  const Session session = must(connect(endpoint, options));
  const auto x = must(session.full<double>({100}, 1.0));
  const auto g = stepping(session, x);
  char asked = 0;
  char answer = 'r';
  do {
    ASSERT_EQ(::write(STDOUT_FILENO, &answer, 1), 1);
    ASSERT_EQ(::read(STDIN_FILENO, &asked, 1), 1);
    const double before = x[99];
    if (asked == 'l') answer = g->launch().ok() && x[99] == before + 1 ? 'k' : 'e';
  } while (true);
}

class HiddenClient {
public:
  explicit HiddenClient(const std::string& endpoint) {
    int in[2];
    int out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    const UniqueFd its_in(in[0]);
    const UniqueFd its_out(out[1]);
    to_.reset(in[1]);
    from_.reset(out[0]);
    std::array<char, 4096> self{};
    EXPECT_GT(::readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    std::vector<std::string> words = {"unshare",
                                      "-Urpf",
                                      "--kill-child",
                                      self.data(),
                                      "--gtest_also_run_disabled_tests",
                                      "--gtest_filter=ClientInANamespace.*",
                                      "--gtest_brief=1"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, its_in.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, its_out.get(), STDOUT_FILENO);
    ::setenv(endpoint_variable, endpoint.c_str(), 1);
    EXPECT_EQ(::posix_spawnp(&unshare_, "unshare", &actions, nullptr, arguments.data(), environ), 0);
    ::unsetenv(endpoint_variable);
    ::posix_spawn_file_actions_destroy(&actions);
    while (ready_ != 'r' && ::read(from_.get(), &ready_, 1) == 1) {  // gtest says something first
    }
    const std::string process = std::to_string(unshare_);
    std::ifstream("/proc/" + process + "/task/" + process + "/children") >> client_;
  }
  ~HiddenClient() {
    signal(SIGCONT);
    kill();
    ::kill(unshare_, SIGKILL);
    ::waitpid(unshare_, nullptr, 0);
  }
  HiddenClient(const HiddenClient&) = delete;
  HiddenClient& operator=(const HiddenClient&) = delete;

  [[nodiscard]] bool ready() const { return ready_ == 'r' && client_ > 0; }
  void signal(int number) const {
    if (client_ > 0) ::kill(client_, number);
  }
  void kill() {
    signal(SIGKILL);
    client_ = -1;
  }
  // What the client says to that.
  [[nodiscard]] char ask(char what) const {
    char answer = 0;
    EXPECT_EQ(::write(to_.get(), &what, 1), 1);
    EXPECT_EQ(::read(from_.get(), &answer, 1), 1);
    return answer;
  }

private:
  pid_t unshare_ = -1;
  pid_t client_ = -1;
  UniqueFd to_;
  UniqueFd from_;
  char ready_ = 0;
};

class Namespaces : public Survival {
protected:
  void SetUp() override {
    if (std::system("unshare -Urpf true 2>/dev/null") != 0) {
      GTEST_SKIP() << "a pid namespace of one's own is not permitted here (unshare -Urpf)";
    }
  }
  [[nodiscard]] std::uint64_t sessions() const { return must(session->info()).sessions; }
};

TEST_F(Namespaces, AClientThatDiesWhileTheWorkerIsDeadIsNoticedThere) {
  start();
  HiddenClient client(process->endpoint());
  ASSERT_TRUE(client.ready());
  EXPECT_EQ(sessions(), 2u);
  kill_worker();
  EXPECT_EQ(client.ask('l'), 'k');
  const pid_t first = worker();
  client.kill();
  ::kill(first, SIGKILL);
  wait_until([&] { return sessions() == 1; });
  wait_until([&] { return held().first == 0; });
}

// Of an older kernel, which gives no descriptor of such a process: heartbeats tell.
TEST_F(Namespaces, OneThatIsIdleKeepsItsSessionAndOneThatIsSilentDoesNot) {
  ::setenv("EAGLED_WITHOUT", "pidfds", 1);
  ::setenv("EAGLED_HEARTBEAT_MS", "1000", 1);
  start();
  ::unsetenv("EAGLED_WITHOUT");
  ::unsetenv("EAGLED_HEARTBEAT_MS");
  HiddenClient idle(process->endpoint());
  HiddenClient silent(process->endpoint());
  ASSERT_TRUE(idle.ready() && silent.ready());
  EXPECT_EQ(sessions(), 3u);
  silent.signal(SIGSTOP);
  kill_worker();
  // By the time at which the silent one has lost its session, the idle one would have, too.
  wait_until([&] { return sessions() < 3; });
  EXPECT_EQ(sessions(), 2u);
  EXPECT_EQ(idle.ask('l'), 'k');
  // A connection that stays open says nothing: a forked child may have it.
  idle.signal(SIGSTOP);
  wait_until([&] { return sessions() == 1; });
}

}  // namespace
}  // namespace eagle::conformance
