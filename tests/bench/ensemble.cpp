// The main job's time, in process and through the daemon, on one and two threads, next to hand-written C++.
//
//   build/release/bin/bench_ensemble [--samples N] [--repeats R]
//
// All forms run in turn, R times; minimum and median are printed, and the ratio of minima to the
// interleaved form of the same number of threads. Every form's answer is compared bit for bit.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "tests/bench/ensemble_twin.h"
#include "tests/bench/need.h"

namespace {

using namespace eagle;
using bench::die;
using bench::need;

constexpr double dt = 1e-3;
constexpr double t_end = 1.0;
constexpr std::int64_t max_steps = 2000;

std::shared_ptr<const Kernel> oscillator() {
  KernelBuilder b("oscillator");
  const kernel::Type real;
  const auto x = b.state("x", real), v = b.state("v", real), t = b.state("t", real);
  const auto omega = b.scalar("omega");
  const auto step = b.param("dt"), end = b.param("t_end");
  b.terminated("done");
  const auto next_t = b.add(t, step);
  b.commit("x", b.add(x, b.mul(step, v)));
  b.commit("v", b.sub(v, b.mul(b.mul(b.mul(step, omega), omega), x)));
  b.commit("t", next_t);
  b.commit("done", b.ge(next_t, end));
  return std::make_shared<const Kernel>(need(b.finish()));
}

// A daemon of our own with a team of the given size; ended with this object.
class Daemon {
public:
  explicit Daemon(int threads) {
    std::string pattern = (std::filesystem::temp_directory_path() / "eagle-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) die("mkdtemp failed");
    directory_ = pattern;
    endpoint_ = "unix:" + directory_ + "/eagled.sock";
    std::error_code error;
    const char* named = std::getenv("EAGLED");
    std::string program =
        named != nullptr
            ? named
            : (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "eagled").string();
    std::string team = std::to_string(threads);
    std::array<std::string, 7> words = {program, "--listen",    endpoint_, "--threads",
                                        team,    "--log-level", "warn"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
      die("cannot start " + program);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  // Connects as soon as it serves.
  [[nodiscard]] Session session() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      StatusOr<Session> session = connect(endpoint_);
      if (session.ok()) return *session;
      if (std::chrono::steady_clock::now() > deadline) die(session.status().to_string());
      std::this_thread::yield();
    }
  }

private:
  std::string directory_;
  std::string endpoint_;
  pid_t pid_ = -1;
};

struct Arrays {
  Array<double> x, v, t, omega;
  Array<bool> done;

  Arrays(const Session& session, std::int64_t n)
      : x(need(session.zeros<double>({n}))),
        v(need(session.zeros<double>({n}))),
        t(need(session.zeros<double>({n}))),
        omega(need(session.zeros<double>({n}))),
        done(need(session.zeros<bool>({n}))) {}

  void reset() const {
    const std::int64_t n = x.size();
    std::ranges::fill(x.span(), 1.0);
    std::ranges::fill(v.span(), 0.0);
    std::ranges::fill(t.span(), 0.0);
    std::ranges::fill(done.span(), false);
    for (std::int64_t i = 0; i < n; ++i)
      omega[i] = 1.0 + 2.0 * static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(n - 1, 1));
  }
  [[nodiscard]] bench::Oscillators raw() const {
    return {x.span().data(),     v.span().data(),    t.span().data(),
            omega.span().data(), done.span().data(), x.size()};
  }
};

struct Form {
  std::string name;
  int threads;
  const Arrays* arrays;
  std::function<bool()> run;  // false: not on this machine
  std::vector<double> seconds = {};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t samples = 1'000'000;
  int repeats = 9;
  CLI::App app("The main job's time next to hand-written C++");
  app.add_option("--samples", samples)->check(CLI::PositiveNumber);
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const auto kernel = oscillator();
  std::vector<std::unique_ptr<Daemon>> daemons;
  std::vector<std::unique_ptr<Arrays>> arrays;
  std::vector<Form> forms;
  for (const int threads : {1, 2}) {
    const Session here = need(local({.threads = threads}));
    daemons.push_back(std::make_unique<Daemon>(threads));
    const Session there = daemons.back()->session();
    arrays.push_back(std::make_unique<Arrays>(here, samples));
    const Arrays* mine = arrays.back().get();
    arrays.push_back(std::make_unique<Arrays>(there, samples));
    const Arrays* theirs = arrays.back().get();
    const auto simulate = [kernel](const Session& session, const Arrays& a) {
      const BoundPlan plan{kernel,
                           {{"x", a.x.view()},
                            {"v", a.v.view()},
                            {"t", a.t.view()},
                            {"omega", a.omega.view()},
                            {"dt", dt},
                            {"t_end", t_end},
                            {"done", a.done.view()}}};
      need(session.simulate(plan, {.max_steps = max_steps, .timeout = {}, .cancel = {}}));
      return true;
    };
    forms.push_back({"interleaved C++ (AVX-512)", threads, mine,
                     [=] { return bench::interleaved_loop(mine->raw(), dt, t_end, max_steps, threads); }});
    forms.push_back({"plain C++ loop", threads, mine, [=] {
                       bench::plain_loop(mine->raw(), dt, t_end, max_steps, threads);
                       return true;
                     }});
    forms.push_back({"eagle in process", threads, mine, [=] { return simulate(here, *mine); }});
    forms.push_back({"eagle through eagled", threads, theirs, [=] { return simulate(there, *theirs); }});
  }

  std::vector<double> expected;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (Form& form : forms) {
      form.arrays->reset();
      const auto start = std::chrono::steady_clock::now();
      if (!form.run()) continue;
      form.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      const auto x = form.arrays->x.span();
      if (expected.empty()) expected.assign(x.begin(), x.end());
      if (std::memcmp(expected.data(), x.data(), x.size_bytes()) != 0)
        die(form.name + ": other bits than the first form");
    }
  }

  std::printf("oscillator, %lld samples x 1000 steps, %d runs in turn, %u CPUs\n\n",
              static_cast<long long>(samples), repeats, std::thread::hardware_concurrency());
  std::printf("%-28s %8s %10s %10s %8s\n", "form", "threads", "min ms", "median ms", "ratio");
  double limit = 0;
  for (const Form& form : forms) {
    if (form.seconds.empty()) {
      std::printf("%-28s %8d   not on this CPU\n", form.name.c_str(), form.threads);
      limit = 0;
      continue;
    }
    const double best = std::ranges::min(form.seconds);
    if (form.name.starts_with("interleaved")) limit = best;
    std::printf("%-28s %8d %10.2f %10.2f", form.name.c_str(), form.threads, 1e3 * best,
                1e3 * median(form.seconds));
    if (limit > 0) std::printf(" %8.2f", best / limit);
    std::printf("\n");
  }
  std::printf("\nall forms gave the same bits\n");
  return 0;
}
