// A daemon that is exchanged for another program while it runs (SIGUSR2): what its clients notice, which is
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

class Exchange : public Survival {
protected:
  void start_copy(const std::vector<std::string>& options = {}) {
    process = must(DaemonProcess::start(1, options, 0, true));
    session.emplace(connected());
  }
  void ask() const { ASSERT_EQ(::kill(process->pid(), SIGUSR2), 0); }
  // Returns when another worker serves.
  void exchange() const {
    const pid_t before = worker();
    ask();
    wait_until([&] { return worker() != before; });
  }
  // In the place of the daemon's program.
  void install_copy() const {
    std::filesystem::copy_file(std::getenv("EAGLED"), process->program() + ".new");
    std::filesystem::rename(process->program() + ".new", process->program());
  }
  void install_script(const std::string& text) const {
    const std::string path = process->program() + ".new";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    ::chmod(path.c_str(), 0755);
    std::filesystem::rename(path, process->program());
  }
  [[nodiscard]] std::string at(const std::string& name) const { return process->folder() + "/" + name; }
  // Whether the keeper runs the file that is at its program's path now.
  [[nodiscard]] bool runs_what_is_installed() const {
    struct stat runs {};
    struct stat installed {};
    return ::stat(("/proc/" + std::to_string(process->pid()) + "/exe").c_str(), &runs) == 0 &&
           ::stat(process->program().c_str(), &installed) == 0 && runs.st_ino == installed.st_ino;
  }
};

TEST_F(Exchange, AnIdleClientNoticesNothing) {
  start_copy();
  const auto x = must(session->full<double>({50'000}, 1.5));
  const auto g = stepping(*session, x);
  must(g->launch(2));
  const Session idle = connected();
  const auto kept = must(idle.full<double>({10}, 7.0));
  const auto kept_graph = stepping(idle, kept, "idle");
  const auto before = held();
  install_copy();
  EXPECT_FALSE(runs_what_is_installed());
  exchange();
  EXPECT_TRUE(runs_what_is_installed());
  EXPECT_EQ(::kill(process->pid(), 0), 0) << "the pid is the same";
  EXPECT_EQ(x[49'999], 3.5);
  must(g->launch(3));
  EXPECT_EQ(x[0], 6.5);
  must(kept_graph->launch());
  EXPECT_EQ(kept[9], 8.0);
  EXPECT_EQ(held(), before);
  // And it ends as any other does.
  EXPECT_EQ(process->terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(at("eagled.sock")));
}

TEST_F(Exchange, ManyArraysAndANewClientGoAlong) {
  start_copy();
  std::vector<Array<double>> arrays;
  for (int i = 0; i < 400; ++i) arrays.push_back(must(session->full<double>({33'000}, i)));
  const auto before = held();
  exchange();
  EXPECT_EQ(held(), before);
  const Session late = connected();
  const auto y = must(late.full<double>({4}, 1.0));
  must(stepping(late, y)->launch());
  EXPECT_EQ(y[0], 2.0);
  must(stepping(*session, arrays[333])->launch());
  EXPECT_EQ(arrays[333][32'999], 334.0);
}

// Whatever a client does all the time: not one of its calls fails.
TEST_F(Exchange, UnderLoadNothingFails) {
  start_copy();
  enum class Kind { ring, grpc, enqueue_ring, enqueue_grpc, host_node, nested, short_calls, last };
  std::atomic<bool> enough = false;
  std::atomic<std::int64_t> calls = 0;
  std::vector<std::int64_t> each(static_cast<std::size_t>(Kind::last));
  std::vector<std::string> failures(each.size());
  std::vector<double> values(each.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < each.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto kind = static_cast<Kind>(i);
      ConnectOptions options;
      options.ring = kind != Kind::grpc && kind != Kind::enqueue_grpc;
      options.timeout = std::chrono::seconds(60);
      try {
        const Session mine = connected(options);
        const auto x = must(mine.full<double>({1}, 0.0));
        const auto other = must(mine.full<double>({1}, 0.0));
        const auto inner = stepping(mine, other, "inner " + std::to_string(i));
        Graph g(mine);
        must(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}, "load " + std::to_string(i)));
        if (kind == Kind::host_node || kind == Kind::nested) {
          must(g.add_node(
              opaque([&]() -> Status { return kind == Kind::nested ? inner->launch().status() : Status(); },
                     {{{"x", x}}, {}})));
        }
        must(g.build());
        while (!enough) {
          if (kind == Kind::enqueue_ring || kind == Kind::enqueue_grpc) {
            must(g.enqueue());
            must(g.synchronize().status());
          } else {
            must(g.launch().status());
          }
          if (kind == Kind::short_calls) {
            const auto made = must(mine.full<double>({40'000}, 1.0));
            must(g.update({{{"", {}, "a"}, 1.0}}));
            must(mine.info().status());
            const auto built = stepping(mine, made, "short");
          }
          ++each[i];
          ++calls;
        }
        values[i] = x[0];
      } catch (const std::exception& failure) {
        failures[i] = failure.what();
      }
    });
  }
  const auto go_on = [&] {
    const std::int64_t before = calls;
    wait_until([&] {
      return calls > before + 50 ||
             std::any_of(failures.begin(), failures.end(), [](const auto& f) { return !f.empty(); });
    });
  };
  for (int time = 0; time < 3; ++time) {
    go_on();
    install_copy();
    exchange();
  }
  go_on();
  enough = true;
  threads.clear();
  for (std::size_t i = 0; i < each.size(); ++i) {
    EXPECT_EQ(failures[i], "") << "client " << i;
    EXPECT_EQ(values[i], static_cast<double>(each[i])) << "client " << i << ": each ran once";
  }
}

TEST_F(Exchange, WhatRunsIsFinishedFirst) {
  start_copy();
  const auto x = must(session->full<double>({4}, 0.0));
  const auto y = must(session->full<double>({4}, 0.0));
  const auto part = stepping(*session, y, "part of the host call");
  const pid_t before = worker();
  int calls = 0;
  Graph g(*session);
  must(g.add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}));
  must(g.add_node(opaque(
      [&] {
        if (++calls == 1) ask();
        return part->launch().status();
      },
      {{{"x", x}}, {}})));
  must(g.build());
  must(g.launch(20));
  EXPECT_EQ(x[0], 20.0);
  EXPECT_EQ(y[0], 20.0);
  wait_until([&] { return worker() != before; });
  must(g.launch());
  EXPECT_EQ(x[0], 21.0);
}

TEST_F(Exchange, WhatDoesNotFinishInTimeStopsAtAWholeReplay) {
  start_copy({"--drain-timeout", "0"});
  const auto x = must(session->full<double>({16}, 0.0));
  const auto g = stepping(*session, x);
  std::jthread asker([&] {
    wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 0; });
    ask();
  });
  const auto launched = g->launch(endless);
  asker.join();
  EXPECT_EQ(launched.status().reason(), Reason::cancelled) << launched.status().to_string();
  const double whole = x[0];
  must(g->launch());
  EXPECT_EQ(x[15], whole + 1) << "and nothing is half written";
}

TEST_F(Exchange, AProgramThatCannotGoOnIsRefused) {
  start_copy();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  const pid_t before = worker();
  install_script("touch " + at("asked") + "; exit 3");
  ask();
  wait_until([&] { return std::filesystem::exists(at("asked")); });
  must(g->launch());
  EXPECT_EQ(worker(), before);
  std::filesystem::remove(process->program());
  ask();  // there is none at all
  must(g->launch());
  EXPECT_EQ(worker(), before);
  install_copy();
  exchange();
  must(g->launch());
  EXPECT_EQ(x[0], 4.0);
}

TEST_F(Exchange, OptionsThatAreNoGoodAnyMoreAreRefused) {
  const std::string config = "/tmp/eagle-exchange-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(config) << "drain_timeout = 5\n";
  start_copy({"--config", config});
  const pid_t before = worker();
  std::ofstream(config) << "drain_timeout = \"long\"\n";
  install_script(std::string(std::getenv("EAGLED")) + " \"$@\"; said=$?; touch " + at("answered") +
                 "; exit $said");
  ask();
  wait_until([&] { return std::filesystem::exists(at("answered")); });
  // Whether it was refused shows when another one is not.
  std::ofstream(config) << "drain_timeout = 6\n";
  install_copy();
  exchange();
  EXPECT_NE(worker(), before);
  EXPECT_TRUE(runs_what_is_installed());
  std::filesystem::remove(config);
}

// The one that was asked then is refused, and what was wrong with it may be mended by now.
TEST_F(Exchange, AskedWhileAnAnswerIsAwaitedItIsAskedAgain) {
  start_copy();
  const pid_t before = worker();
  install_script("touch " + at("asked") + "; while [ ! -e " + at("go") + " ]; do sleep 0.01; done; exit 1");
  ask();
  wait_until([&] { return std::filesystem::exists(at("asked")); });
  install_copy();
  ask();
  // The signal is there before the answer: the keeper hears of both, in whichever order.
  std::ofstream(at("go")) << "\n";
  wait_until([&] { return worker() != before; });
  EXPECT_TRUE(runs_what_is_installed());
}

TEST_F(Exchange, AFileThatChangedSinceItWasAskedIsAskedAgain) {
  start_copy();
  const std::string real = std::getenv("EAGLED");
  install_script("cp " + real + " " + at("next") + "; mv " + at("next") + " " + process->program() +
                 "; exec " + real + " \"$@\"");
  ask();
  wait_until([&] { return runs_what_is_installed(); });
  must(session->info().status());
}

TEST_F(Exchange, AskedManyTimesItHappensAndEnds) {
  start_copy();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  const pid_t before = worker();
  for (int i = 0; i < 5; ++i) {
    ask();
    must(g->launch());
  }
  wait_until([&] { return worker() != before; });
  exchange();
  exchange();
  must(g->launch());
  EXPECT_EQ(x[0], 7.0);
  EXPECT_EQ(process->terminate(), 0);
}

TEST_F(Exchange, AWorkerThatDiesAfterwardsIsReplacedByOneOfTheNewProgram) {
  start_copy();
  const auto x = must(session->full<double>({8}, 1.0));
  const auto g = stepping(*session, x);
  install_copy();
  exchange();
  kill_worker();
  must(g->launch());
  EXPECT_EQ(x[0], 2.0);
  struct stat runs {};
  struct stat installed {};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(worker()) + "/exe").c_str(), &runs), 0);
  ASSERT_EQ(::stat(process->program().c_str(), &installed), 0);
  EXPECT_EQ(runs.st_ino, installed.st_ino);
}

// The worker dies between any two steps of handing over.
class ExchangeFault : public Exchange, public ::testing::WithParamInterface<const char*> {};

TEST_P(ExchangeFault, LosesNothing) {
  start_to_fail_at(GetParam());
  const auto x = must(session->full<double>({40'000}, 1.0));
  const auto g = stepping(*session, x);
  must(g->launch());
  const auto before = held();
  exchange();
  EXPECT_EQ(held(), before);
  must(g->launch());
  EXPECT_EQ(x[39'999], 3.0);
}

// Outcomes that nobody has asked for yet go along, or are lost with the worker: nothing runs twice.
TEST_F(Exchange, AWorkerThatDiesAsItHandsOutcomesOverRunsNothingTwice) {
  start_to_fail_at("handover.outcomes");
  ConnectOptions options;
  options.ring = false;
  const Session mine = connected(options);
  const auto x = must(mine.full<double>({4}, 0.0));
  const auto g = stepping(mine, x);
  must(g->enqueue());
  wait_until([&] { return std::atomic_ref<double>(x.span()[3]).load() > 0; });
  exchange();
  EXPECT_EQ(g->synchronize().status().reason(), Reason::worker_restarted);
  EXPECT_EQ(x[0], 1.0);
}

TEST_F(Exchange, AnOutcomeThatNobodyHasAskedForYetIsHandedOver) {
  start_copy();
  ConnectOptions options;
  options.ring = false;
  const Session mine = connected(options);
  const auto x = must(mine.full<double>({4}, 0.0));
  const auto g = stepping(mine, x);
  must(g->enqueue(3));
  wait_until([&] { return std::atomic_ref<double>(x.span()[3]).load() == 3.0; });
  exchange();
  EXPECT_EQ(must(g->synchronize()).launches, 3);
  EXPECT_EQ(x[0], 3.0);
}

INSTANTIATE_TEST_SUITE_P(Each, ExchangeFault,
                         ::testing::Values("handover.begin", "handover.drained", "handover.answered"),
                         name_of_fault);

}  // namespace
}  // namespace eagle::conformance
