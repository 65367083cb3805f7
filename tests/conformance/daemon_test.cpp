// What only a daemon can do: die, be found, be looked at from outside.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "engine/base/unique_fd.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

// Asks until it is so; a test that waits in vain is ended by its watchdog.
void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

class Daemon : public ::testing::Test {
protected:
  void SetUp() override {
    auto started = DaemonProcess::start();
    if (!started.ok() && started.status().code() == Code::unavailable)
      GTEST_SKIP() << started.status().message();
    ASSERT_TRUE(started.ok()) << started.status().to_string();
    process = std::move(*started);
    auto opened = connect(process->endpoint());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    session.emplace(std::move(*opened));
  }

  std::unique_ptr<DaemonProcess> process;
  std::optional<Session> session;
};

TEST_F(Daemon, IsTheProcessThatItSaysItIs) {
  const auto info = session->info();
  ASSERT_TRUE(info.ok()) << info.status().to_string();
  EXPECT_EQ(info->host.pid, process->worker());
  EXPECT_EQ(info->endpoint, process->endpoint());
  EXPECT_EQ(info->transport, "memfd + ring");
  EXPECT_EQ(info->sessions, 1u);
  EXPECT_GT(info->plane_budget_bytes, 0u);
}

// A worker notices that its keeper is gone, and may end a short launch before that.
TEST_F(Daemon, KilledDuringALaunchIsReportedByItsEndpoint) {
  const UniqueFd worker(static_cast<int>(::syscall(SYS_pidfd_open, process->worker(), 0)));
  ASSERT_TRUE(worker.valid());
  const auto x = session->full<double>({8}, 1.5);
  Graph g(*session);
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               process->kill();
                               pollfd ended{worker.get(), POLLIN, 0};
                               ::poll(&ended, 1, 60'000);
                               return Status();
                             },
                             {{}, {{"x", *x}}}))
                  .ok());
  ASSERT_TRUE(g.build().ok());
  expect_refused(g.launch().status(), Reason::connection_lost, {"launch", process->endpoint()});
  expect_refused(session->info().status(), Reason::connection_lost, {"info", process->endpoint()});
  expect_refused(session->allocate(8).status(), Reason::connection_lost, {process->endpoint()});
  EXPECT_EQ((*x)[7], 1.5) << "arrays stay readable";
}

TEST_F(Daemon, KilledDuringARunIsReportedByItsEndpoint) {
  const auto n = session->zeros<double>({4096});
  const auto done = session->zeros<bool>({4096});
  const BoundPlan model{counter(), {{"n", *n}, {"limit", 1e300}, {"done", *done}}};
  std::jthread killer([&] {
    while (std::atomic_ref<double>((*n)[0]).load() == 0) std::this_thread::yield();
    process->kill();
  });
  expect_refused(session->simulate(model, {std::int64_t{1} << 60, {}, {}}).status(), Reason::connection_lost,
                 {"simulate", process->endpoint()});
}

TEST_F(Daemon, AClosedSessionHoldsItsArraysAndNothingElse) {
  const auto other = connect(process->endpoint());
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  {
    const auto kept = other->full<double>({1 << 20}, 1.5);
    {
      const auto dropped = other->zeros<double>({1 << 20});
      const auto small = other->zeros<double>({8});
      Graph g(*other);
      ASSERT_TRUE(g.add({affine(), {{"x", *small}, {"y", *small}, {"a", 1.0}, {"b", 1.0}}}).ok());
      ASSERT_TRUE(g.build().ok());
      EXPECT_EQ(session->info()->graphs, 1u);
      ASSERT_TRUE(other->close().ok());
    }
    // A daemon that is busy hears of what has gone when it has time.
    wait_until([&] { return session->info()->graphs == 0 && session->info()->planes <= 1; });
    EXPECT_EQ(session->info()->planes, 1u);
    EXPECT_EQ(session->info()->plane_bytes, (8u << 20) + 4096);  // with the page in which it begins somewhere
    EXPECT_EQ((*kept)[0], 1.5);
  }
  // It hears of the end by itself; ask until it has.
  wait_until([&] { return session->info()->sessions == 1 && session->info()->planes == 0; });
}

TEST_F(Daemon, ASessionEndsWithItsLastHandle) {
  {
    const auto other = connect(process->endpoint());
    ASSERT_TRUE(other.ok()) << other.status().to_string();
    ASSERT_TRUE(other->zeros<double>({8}).ok());
    EXPECT_EQ(session->info()->sessions, 2u);
  }
  wait_until([&] { return session->info()->sessions == 1 && session->info()->planes == 0; });
}

TEST_F(Daemon, HoldsNoMoreAfterAThousandArraysAndGraphsThanBefore) {
  const auto before = session->info();
  for (int i = 0; i < 1000; ++i) {
    const auto x = session->zeros<double>({i % 10 == 0 ? 40'000 : 8});
    ASSERT_TRUE(x.ok()) << x.status().to_string();
    if (i % 10 != 0) continue;
    Graph g(*session);
    ASSERT_TRUE(g.add({affine(), {{"x", *x}, {"y", *x}, {"a", 1.0}, {"b", 1.0}}}).ok());
    ASSERT_TRUE(g.build().ok());
  }
  // One segment is kept for the next small arrays.
  wait_until([&] {
    const auto after = session->info();
    return after->graphs == before->graphs && after->planes <= before->planes + 1;
  });
}

// What went while the worker could not listen it is told of with the next call that it answers, and it is
// asked to stop what runs all the same. (Its keeper may put another worker in the place of one that is silent
// for long, and the end is the same.)
TEST_F(Daemon, AWorkerThatWasBusyHearsOfWhatWentAndStopsWhatItIsAskedTo) {
  const auto y = session->zeros<double>({8});
  std::jthread wakes;
  {
    const auto x = session->zeros<double>({1 << 20});
    ASSERT_TRUE(x.ok()) << x.status().to_string();
    const auto worker = static_cast<pid_t>(session->info()->host.pid);
    ASSERT_EQ(::kill(worker, SIGSTOP), 0);
    wakes = std::jthread([worker] {  // once the array's end has been waited for in vain
      std::this_thread::sleep_for(std::chrono::milliseconds(1'200));
      ::kill(worker, SIGCONT);
    });
  }
  wait_until([&] {
    const auto info = session->info();
    return info.ok() && info->plane_bytes < 8u << 20;
  });
  Graph g(*session);
  ASSERT_TRUE(g.add({affine(), {{"x", *y}, {"y", *y}, {"a", 1.0}, {"b", 1.0}}}).ok());
  ASSERT_TRUE(g.build().ok());
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::jthread canceller([&] {
    while (std::atomic_ref<double>((*y)[0]).load() == 0) std::this_thread::yield();
    *cancel = true;
  });
  expect_refused(g.launch(std::int64_t{1} << 60, {{}, cancel}).status(), Reason::cancelled,
                 {"replays were whole"});
}

TEST_F(Daemon, EndsCleanlyWhileASessionIsOpen) { EXPECT_EQ(process->terminate(), 0); }

// ---- finding one

struct Environment {
  explicit Environment(const char* its_name, const std::string& value) : name(its_name) {
    if (const char* old = std::getenv(name)) before = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  const char* name;
  std::optional<std::string> before;
};

TEST_F(Daemon, IsFoundByEagleEndpoint) {
  const Environment endpoint("EAGLE_ENDPOINT", process->endpoint());
  const auto found = connect();
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->info()->host.pid, process->worker());
}

TEST_F(Daemon, AWrongEagleEndpointIsNotPassedOver) {
  const Environment endpoint("EAGLE_ENDPOINT", "unix:/no/such/eagled.sock");
  expect_refused(connect().status(), Reason::no_daemon,
                 {"EAGLE_ENDPOINT", "/no/such/eagled.sock", "eagled --listen"});
}

TEST_F(Daemon, IsFoundInTheUsersRuntimeDirectory) {
  if (std::filesystem::exists("/run/eagled/eagled.sock"))
    GTEST_SKIP() << "the system's own daemon comes first";
  char folder[] = "/tmp/eagle-runtime-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Environment runtime("XDG_RUNTIME_DIR", folder);
  const Environment endpoint("EAGLE_ENDPOINT", "");
  std::filesystem::create_symlink(process->endpoint().substr(5), std::string(folder) + "/eagled.sock");
  const auto found = connect();
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->info()->host.pid, process->worker());
  std::filesystem::remove_all(folder);
}

TEST_F(Daemon, WhereNoneIsFoundAPrivateOneServesTheProcessAndEndsWithIt) {
  if (std::filesystem::exists("/run/eagled/eagled.sock"))
    GTEST_SKIP() << "the system's own daemon comes first";
  char folder[] = "/tmp/eagle-runtime-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Environment runtime("XDG_RUNTIME_DIR", folder);
  const Environment endpoint("EAGLE_ENDPOINT", "");
  std::int64_t pid = 0;
  {
    const auto first = connect();
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    const auto second = connect();
    ASSERT_TRUE(second.ok()) << second.status().to_string();
    pid = first->info()->host.pid;
    EXPECT_EQ(second->info()->host.pid, pid) << "one for the whole process";
    EXPECT_NE(pid, process->worker());
    const auto x = first->full<double>({8}, 1.0);
    Graph g(*first);
    ASSERT_TRUE(g.add({affine(), {{"x", *x}, {"y", *x}, {"a", 1.0}, {"b", 1.0}}}).ok());
    ASSERT_TRUE(g.build().ok());
    ASSERT_TRUE(g.launch().ok());
    EXPECT_EQ((*x)[0], 2.0);
  }
  EXPECT_EQ(::kill(static_cast<pid_t>(pid), 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "it left something behind";
  std::filesystem::remove_all(folder);
}

// The process may still be dying when its client, which heard first, looks for a daemon again.
TEST_F(Daemon, APrivateOneThatWasKilledIsReplacedAtOnce) {
  if (std::filesystem::exists("/run/eagled/eagled.sock"))
    GTEST_SKIP() << "the system's own daemon comes first";
  char folder[] = "/tmp/eagle-runtime-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Environment runtime("XDG_RUNTIME_DIR", folder);
  const Environment endpoint("EAGLE_ENDPOINT", "");
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    const auto first = connect();
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    const std::int64_t pid = first->info()->host.pid;
    ASSERT_EQ(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
    const auto second = connect();
    ASSERT_TRUE(second.ok()) << second.status().to_string();
    EXPECT_NE(second->info()->host.pid, pid);
  }
  std::filesystem::remove_all(folder);
}

// What eaglectl prints, or ends with. Its program is told by EAGLECTL (ctest sets it).
std::string eaglectl_output(const std::string& arguments, int expected_status = 0) {
  const char* program = std::getenv("EAGLECTL");
  if (program == nullptr) return "EAGLECTL is not set";
  FILE* pipe = ::popen(("'" + std::string(program) + "' " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), expected_status) << text;
  return text;
}

TEST_F(Daemon, HasItsGraphsListedAndDrawnByEaglectl) {
  if (std::getenv("EAGLECTL") == nullptr) GTEST_SKIP() << "EAGLECTL is not set (ctest sets it)";
  const std::string at = "--endpoint " + process->endpoint() + " ";
  EXPECT_EQ(eaglectl_output(at + "graphs"), "no graphs\n");
  const auto x = session->zeros<double>({8});
  ASSERT_TRUE(x.ok());
  Graph g(*session, {"step"});
  ASSERT_TRUE(g.add_node(opaque([] { return Status(); }, {{}, {{"x", *x}}}), "seed").ok());
  ASSERT_TRUE(g.add_node(opaque([] { return Status(); }, {{{"x", *x}}, {}}), "look").ok());
  ASSERT_TRUE(g.build().ok());

  const std::vector<GraphInfo> graphs = session->graphs().value();
  ASSERT_EQ(graphs.size(), 1U);
  char id[40];
  std::snprintf(id, sizeof id, "%016llx.%llu", static_cast<unsigned long long>(graphs[0].session),
                static_cast<unsigned long long>(graphs[0].graph));
  EXPECT_THAT(eaglectl_output(at + "graphs"), ::testing::HasSubstr(std::string(id).substr(0, 8) + ".1"));
  EXPECT_THAT(eaglectl_output(at + "--json graphs"), ::testing::HasSubstr("\"name\":\"step\""));
  EXPECT_EQ(eaglectl_output(at + "show step"), g.show().value());
  EXPECT_EQ(eaglectl_output(at + "show step --svg"), g.to_svg().value());
  EXPECT_EQ(eaglectl_output(at + "show step --dot"), g.to_dot().value());
  EXPECT_EQ(eaglectl_output(at + "show " + id + " --mermaid"), g.to_mermaid().value());
  EXPECT_THAT(eaglectl_output(at + "show stop", 1), ::testing::HasSubstr("no graph 'stop'"));
}

TEST_F(Daemon, IsWhatEaglectlShows) {
  if (std::getenv("EAGLECTL") == nullptr) GTEST_SKIP() << "EAGLECTL is not set (ctest sets it)";
  const auto output = [](const std::string& arguments) { return eaglectl_output(arguments); };
  const std::string pid = std::to_string(process->worker());
  EXPECT_THAT(output("--endpoint " + process->endpoint() + " --json info"),
              ::testing::HasSubstr("\"pid\":" + pid + ","));
  EXPECT_THAT(output("info --endpoint " + process->endpoint()), ::testing::ContainsRegex("pid +" + pid));
}

}  // namespace
}  // namespace eagle::conformance
