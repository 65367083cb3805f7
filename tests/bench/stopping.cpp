// How long after somebody wants a run to stop it has stopped.
//
//   build/release/bin/bench_stopping [--repeats R] [--threads T]
//
// Runs that would take ten seconds and more are stopped after some 50 to 150 ms: by a flag that another
// thread sets, by a progress callback that returns false, by their timeout, by a SIGINT whose handler sets
// the flag; in process and through a daemon of their own. Minimum, median and maximum of R, in milliseconds,
// from the wish to the call's return; and how many of the stopped runs had all samples at one step.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/kernel_builder.h"
#include "eagle/client/stepping.h"
#include "tests/bench/need.h"
#include "tests/conformance/daemon_process.h"

namespace {

using namespace eagle;
using bench::die;
using bench::need;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum class Kind { light, heavy, loop, reducing };

// Never done. Heavy: a few hundred operations a step; loop: a loop of 10,000 trips; reducing: a sum over all
// samples.
std::shared_ptr<const Kernel> kernel_of(Kind kind) {
  KernelBuilder k("stopping");
  const auto x = k.state("x", {}), v = k.state("v", {});
  k.terminated("done");
  if (kind == Kind::reducing) k.declare_reduction("total", {}, kernel::ReduceOp::sum);
  const auto dt = k.real(1e-3);
  auto at = x, speed = v;
  for (int i = 0; i < (kind == Kind::heavy ? 100 : 1); ++i) {
    const auto next = k.add(at, k.mul(dt, speed));
    speed = k.sub(speed, k.mul(dt, at));
    at = next;
  }
  if (kind == Kind::loop) {
    auto carried = k.begin_while({k.integer(0), at}, 10'000);
    carried = k.while_condition(k.boolean(true));
    carried = k.end_while({k.add(carried[0], k.integer(1)), k.add(k.mul(carried[1], k.real(0.5)), dt)});
    at = carried[1];
  }
  k.commit("x", at);
  k.commit("v", speed);
  if (kind == Kind::reducing) k.commit("total", at);
  k.commit("done", k.lt(at, k.real(-1e300)));
  return std::make_shared<const Kernel>(need(k.finish()));
}

// The wish of the moment.
std::atomic<bool>* flag_of_signal = nullptr;
std::atomic<std::int64_t> wished_ns = 0;
void wish_now() { wished_ns = Clock::now().time_since_epoch().count(); }
void on_signal(int) { flag_of_signal->store(true); }

enum class Way { flag, progress, timeout, signal };
constexpr std::pair<Way, const char*> ways[] = {
    {Way::flag, "flag"}, {Way::progress, "progress"}, {Way::timeout, "timeout"}, {Way::signal, "SIGINT"}};

struct Stopped {
  double after_ms = 0;
  bool at_one_step = false;
};

Stopped stop(const Session& session, const BoundPlan& model, Way way, milliseconds after) {
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  flag_of_signal = flag.get();
  SimulateOptions options{.max_steps = std::int64_t{1} << 60, .cancel = flag};
  const Clock::time_point start = Clock::now();
  if (way == Way::timeout) {
    options.timeout = after;
    wished_ns = (start + after).time_since_epoch().count();
  }
  if (way == Way::progress) {
    options.progress = [&](const RunProgress&) {
      if (Clock::now() < start + after) return true;
      wish_now();
      return false;
    };
  }
  std::jthread other;
  if (way == Way::flag || way == Way::signal) {
    other = std::jthread([&] {
      std::this_thread::sleep_until(start + after);
      wish_now();
      if (way == Way::flag) {
        flag->store(true);
      } else {
        ::kill(::getpid(), SIGINT);
      }
    });
  }
  const RunResult result = need(session.simulate(model, options));
  const Clock::time_point end = Clock::now();
  if (result.status != (way == Way::timeout ? RunStatus::deadline : RunStatus::cancelled))
    die("the run was not stopped");
  const Clock::time_point wished{Clock::duration(wished_ns.load())};
  return {std::chrono::duration<double, std::milli>(end - wished).count(), result.report.ranges.size() == 1};
}

// The longest that a thread that only looks at the clock was not run, on each of so many: what others on the
// machine add to every figure below.
void print_gaps(int threads) {
  std::vector<double> longest(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> team;
    for (double& gap : longest) {
      team.emplace_back([&gap] {
        Clock::time_point last = Clock::now();
        for (const Clock::time_point end = last + std::chrono::seconds(2); last < end;) {
          const Clock::time_point now = Clock::now();
          gap = std::max(gap, std::chrono::duration<double, std::milli>(now - last).count());
          last = now;
        }
      });
    }
  }
  std::printf("in two seconds a busy thread stood still for up to %.2f ms at a time\n",
              std::ranges::max(longest));
}

struct Case {
  const char* name;
  Kind kind;
  std::int64_t samples;
};

void run_case(const Session& session, const std::string& where, const Case& c, int repeats) {
  const auto x = need(session.zeros<double>({c.samples})), v = need(session.zeros<double>({c.samples}));
  const auto done = need(session.zeros<bool>({c.samples}));
  const auto total = need(session.zeros<double>({1}));
  BoundPlan model{kernel_of(c.kind), {{"x", x}, {"v", v}, {"done", done}}};
  if (c.kind == Kind::reducing) model.arguments.emplace_back("total", total);
  need(session.simulate(model, {.max_steps = 1}));  // compiles
  std::mt19937_64 random(1);
  for (const auto& [way, name] : ways) {
    std::vector<double> times;
    int level = 0;
    for (int i = 0; i < repeats; ++i) {
      const Stopped stopped = stop(session, model, way, milliseconds(50 + random() % 100));
      times.push_back(stopped.after_ms);
      level += stopped.at_one_step ? 1 : 0;
    }
    std::ranges::sort(times);
    std::printf("%-11s%-22s%-10s%8.2f%8.2f%8.2f   %d of %d\n", where.c_str(), c.name, name, times.front(),
                times[times.size() / 2], times.back(), level, repeats);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 15, threads = 2;
  CLI::App app("How long after somebody wants a run to stop it has stopped");
  app.add_option("--repeats", repeats)->check(CLI::Range(1, 10'000));
  app.add_option("--threads", threads)->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGINT, on_signal);
  const std::string eagled = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "eagled";
  ::setenv("EAGLED", eagled.c_str(), 0);
  const auto daemon = need(conformance::DaemonProcess::start(threads));

  std::printf(
      "%d threads; milliseconds from the wish to the end: minimum, median, maximum; all samples at one "
      "step\n",
      threads);
  print_gaps(threads);
  const Case cases[] = {{"1e5 light", Kind::light, 100'000},
                        {"1e7 light", Kind::light, 10'000'000},
                        {"1e5 heavy", Kind::heavy, 100'000},
                        {"1e4 loops", Kind::loop, 10'000},
                        {"1e6 reducing", Kind::reducing, 1'000'000}};
  const Session here = need(local({threads}));
  const Session there = need(connect(daemon->endpoint()));
  for (const Case& c : cases) {
    run_case(here, "in process", c, repeats);
    run_case(there, "daemon", c, repeats);
  }
  return 0;
}
