// Fairness: what tenants get of the team's time, and how long a small launch waits beside a large one.
//
// A daemon without sockets in this process, launched through rings as clients do. Prints, for each kind of
// work that saturates the team, the shares of measured team seconds of tenants of weights 1:3, and the
// latency of launches of about 100 us every 10 ms beside it; then the latency of a one-node launch with
// nobody else there. Latencies are given once as they are, and once less the time that the executor's thread
// and the client's waited for a processor: on a machine that others use, that is theirs.
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/ring_client.h"
#include "engine/kernel/builder.h"
#include "server/ring/ring.h"
#include "server/simulation_job.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using Clock = std::chrono::steady_clock;
using eagle::testing::fill;
using eagle::testing::set_view;
using server::testing::GraphScene;

constexpr uid_t light = 1;  // weight 1
constexpr uid_t heavy = 3;  // weight 3

// A client of some user, with a ring.
struct Client {
  Client(Daemon& daemon, uid_t uid) : daemon_(daemon) {
    Principal principal;
    principal.uid = uid;
    session = daemon.sessions().open(principal, "bench")->session;
    worker = *daemon.open_ring(session);
    const auto duplicate = [](int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); };
    ring = *RingClient::open(duplicate(worker->memory_fd()), duplicate(worker->doorbell()));
  }
  ~Client() {
    ring.reset();
    daemon_.sessions().end(session);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // x <- x + 1, so many nodes in a row.
  std::uint64_t chain(std::size_t samples, int nodes) {
    return build([&](GraphScene& scene) {
      const auto x = scene.plane<double>(samples, 0.0);
      for (int i = 0; i < nodes; ++i) add_increment(scene, x);
    });
  }
  std::uint64_t build(const std::function<void(GraphScene&)>& add) {
    GraphScene scene(*session);
    add(scene);
    return server::testing::build(daemon_, *session, scene);
  }
  [[nodiscard]] Daemon& daemon() { return daemon_; }
  RingClient::Posted post(std::uint64_t graph, std::int64_t count) {
    const auto posted = ring->post({graph, count, ++last_id_});
    if (!posted) {
      std::fprintf(stderr, "every slot of the ring is in use\n");
      std::exit(1);
    }
    return *posted;
  }
  void finish(const RingClient::Posted& posted) {
    const auto found = ring->finish(posted, {[] { return RingClient::Wish::go_on; }, nullptr});
    if (!found || !found->ok()) {
      std::fprintf(stderr, "launch: %s\n", found ? found->status().to_string().c_str() : "failed");
      std::exit(1);
    }
  }
  void launch(std::uint64_t graph, std::int64_t count) { finish(post(graph, count)); }

  std::shared_ptr<Session> session;
  std::unique_ptr<RingClient> ring;

private:
  Daemon& daemon_;
  std::shared_ptr<Ring> worker;
  std::atomic<std::uint64_t> last_id_ = 0;
};

double seconds_of(Daemon& daemon, const std::string& name) {
  for (const TenantReport& tenant : daemon.info().tenants) {
    if (tenant.name == name) return tenant.device_s;
  }
  return 0;
}

// ---- what saturates a team

// Work of a tenant that never ends until this does.
class Load {
public:
  Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  virtual ~Load() = default;
};

// Launches, of which some always wait behind the one that runs.
class Launches final : public Load {
public:
  Launches(Client& client, const std::function<void(GraphScene&)>& add, std::int64_t count)
      : thread_([graphs = graphs_of(client, add), &client, count](const std::stop_token& stop) {
          std::vector<RingClient::Posted> posted;
          for (const std::uint64_t graph : graphs) posted.push_back(client.post(graph, count));
          for (std::size_t next = 0; !stop.stop_requested(); next = (next + 1) % graphs.size()) {
            client.finish(posted[next]);
            posted[next] = client.post(graphs[next], count);
          }
          for (const RingClient::Posted& each : posted) client.finish(each);
        }) {}

private:
  static std::vector<std::uint64_t> graphs_of(Client& client, const std::function<void(GraphScene&)>& add) {
    constexpr int depth = 4;
    std::vector<std::uint64_t> graphs;
    for (int i = 0; i < depth; ++i) graphs.push_back(client.build(add));
    return graphs;
  }
  std::jthread thread_;
};

// A stepping run without end.
class Run final : public Load {
public:
  Run(Client& client, std::size_t samples) {
    constexpr double never = std::numeric_limits<double>::infinity();
    constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
    const auto scene = server::testing::oscillator_run(*client.session, samples, never, unbounded);
    SimulationEvents events;
    events.progress = [](std::int64_t, std::int64_t) {};
    events.done = [this](const StatusOr<step::RunResult>&) { ended_.put(1); };
    Daemon& daemon = client.daemon();
    auto job = SimulationJob::enter(daemon.executor(), client.session, 0, std::nullopt, std::move(events));
    if (!job.ok()) std::exit(1);
    job_ = *std::move(job);
    job_->prepare(daemon.engine(), daemon.gpus(), scene.message);
  }
  ~Run() override {
    job_->cancel();
    ended_.take();
  }

private:
  server::testing::Mailbox<int> ended_;
  std::shared_ptr<SimulationJob> job_;
};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Load>(Client&)> start;
};

kernel::Kernel histogram() {
  kernel::KernelBuilder k("histogram");
  const auto x = k.scalar("x");
  k.accumulator("h", kernel::Type{kernel::Scalar::f64});
  k.accum_add("h", x, {k.index("key")});
  return eagle::testing::finish(k);
}

kernel::Kernel total() {
  kernel::KernelBuilder k("total");
  const auto x = k.scalar("x");
  k.declare_reduction("sum", kernel::Type{kernel::Scalar::f64}, kernel::ReduceOp::sum);
  k.commit("sum", x);
  return eagle::testing::finish(k);
}

// Several launches of it take tens of milliseconds, so that a client that is held up is not missed.
Kind launches(const char* name, std::int64_t count, const std::function<void(GraphScene&)>& add) {
  return {name, [=](Client& client) { return std::make_unique<Launches>(client, add, count); }};
}

constexpr std::size_t many = 8'000'000;

std::vector<Kind> all_kinds() {
  return {
      launches("short launches", 50'000,
               [](GraphScene& scene) { add_increment(scene, scene.plane<double>(1000, 0.0)); }),
      launches("kernel of 8M samples", 8,
               [](GraphScene& scene) { add_increment(scene, scene.plane<double>(many, 0.0)); }),
      launches("chain of 16 over 1M", 20,
               [](GraphScene& scene) {
                 const auto x = scene.plane<double>(1'000'000, 0.0);
                 for (int i = 0; i < 16; ++i) add_increment(scene, x);
               }),
      launches("reduction of 8M", 8,
               [](GraphScene& scene) {
                 const auto x = scene.plane<double>(many, 1.0);
                 const auto sum = scene.plane<double>(1, 0.0);
                 fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(), scene.kernel(total()),
                      {{"x", x.array}, {"sum", sum.array}});
               }),
      launches("reduce node of 8M", 8,
               [](GraphScene& scene) {
                 v1::Reduce& reduce = *eagle::testing::add_node(scene.message, "").mutable_reduce();
                 reduce.set_op(v1::REDUCE_SUM);
                 set_view(*reduce.mutable_x()->mutable_view(), scene.plane<double>(many, 1.0).array);
                 set_view(*reduce.mutable_out()->mutable_view(), scene.plane<double>(1, 0.0).array);
               }),
      launches("4M additions into 100k", 4,
               [](GraphScene& scene) {
                 const auto x = scene.plane<double>(4'000'000, 1.0);
                 const auto h = scene.plane<double>(100'000, 0.0);
                 const auto key = scene.plane<std::int64_t>(4'000'000, 0);
                 for (std::size_t i = 0; i < key.values.size(); ++i)
                   key.values[i] = static_cast<std::int64_t>(i * 7919 % 100'000);
                 fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(),
                      scene.kernel(histogram()), {{"x", x.array}, {"h", h.array}, {"key", key.array}});
               }),
      launches("copy of 8M to f32", 8,
               [](GraphScene& scene) {
                 v1::Copy& copy = *eagle::testing::add_node(scene.message, "").mutable_copy();
                 set_view(*copy.mutable_source(), scene.plane<double>(many, 1.0).array);
                 set_view(*copy.mutable_destination(), scene.plane<float>(many, 0.0F).array);
               }),
      {"stepping run, 100k samples", [](Client& client) { return std::make_unique<Run>(client, 100'000); }},
      {"stepping run, 4M samples", [](Client& client) { return std::make_unique<Run>(client, 4'000'000); }},
  };
}

// ---- shares

// Team seconds of the tenant of weight 3 over those of weight 1, and what both had of the time.
void measure_shares(Daemon& daemon, const Kind& of_one, const Kind& of_three,
                    std::chrono::milliseconds duration) {
  Client one(daemon, light);
  Client three(daemon, heavy);
  const auto first = of_one.start(one);
  const auto second = of_three.start(three);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Clock::time_point began = Clock::now();
  const double one_before = seconds_of(daemon, "uid:1");
  const double three_before = seconds_of(daemon, "uid:3");
  std::this_thread::sleep_for(duration);
  const double one_s = seconds_of(daemon, "uid:1") - one_before;
  const double three_s = seconds_of(daemon, "uid:3") - three_before;
  const double all_s = std::chrono::duration<double>(Clock::now() - began).count();
  std::printf("   %5.2f (%3.0f %%)", three_s / one_s, 100 * (one_s + three_s) / all_s);
  std::fflush(stdout);
}

void show_shares(Daemon& daemon, const std::vector<Kind>& kinds, const Kind& short_ones,
                 std::chrono::milliseconds duration) {
  std::printf("team seconds of weight 3 over weight 1; of the time\n");
  std::printf("%-30s %s\n", "", "against short launches;  short against it;  both");
  for (const Kind& kind : kinds) {
    std::printf("%-30s", kind.name);
    measure_shares(daemon, kind, short_ones, duration);
    measure_shares(daemon, short_ones, kind, duration);
    measure_shares(daemon, kind, kind, duration);
    std::printf("\n");
  }
}

// ---- latencies

// Seconds that a thread of this process has been ready and not run.
double waited_s(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
  double ran = 0, waited = 0;
  file >> ran >> waited;
  return waited * 1e-9;
}

pid_t thread_of(Executor& executor) {
  class Asks final : public Job {
  public:
    Next advance() override {
      found.put(::gettid());
      return Next::done;
    }
    void cancel() override {}
    server::testing::Mailbox<pid_t> found;
  };
  const auto asks = std::make_shared<Asks>();
  if (!executor.submit(asks).ok()) return 0;
  return asks->found.take();
}

struct Latencies {
  std::vector<double> us;
  std::vector<double> own_us;  // less the time that others had the processors

  static double at(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  }
  void show(const char* name) const {
    std::printf("%-30s %9.0f %9.0f %9.0f %9.0f   %9.0f %9.0f %9.0f\n", name, at(us, 0.5), at(us, 0.9),
                at(us, 0.99), at(us, 1), at(own_us, 0.5), at(own_us, 0.99), at(own_us, 1));
    std::fflush(stdout);
  }
};

Latencies small_launches(Client& client, std::uint64_t graph, std::int64_t count, int launches,
                         std::chrono::microseconds every) {
  const pid_t executor = thread_of(client.daemon().executor());
  const pid_t self = ::gettid();
  Latencies found;
  Clock::time_point next = Clock::now();
  for (int i = 0; i < launches; ++i) {
    std::this_thread::sleep_until(next);
    next += every;
    const double before = every.count() > 0 ? waited_s(executor) + waited_s(self) : 0;
    const Clock::time_point began = Clock::now();
    client.launch(graph, count);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
    const double after = every.count() > 0 ? waited_s(executor) + waited_s(self) : 0;
    found.us.push_back(us);
    found.own_us.push_back(std::max(us - 1e6 * (after - before), 0.0));
  }
  return found;
}

void show_latencies(Daemon& daemon, const std::vector<Kind>& kinds, int launches) {
  Client small(daemon, light);
  const std::uint64_t graph = small.chain(1000, 1);
  std::int64_t count = 1;  // so that a launch takes about 100 us
  for (double took = 0; took < 100; count *= 2)
    took = Latencies::at(small_launches(small, graph, count, 20, std::chrono::microseconds(0)).us, 0.5);
  const std::chrono::microseconds every(10'000);
  std::printf(
      "\n100 us of work every 10 ms, us    median       90%%       99%%       max      less waiting for a "
      "processor: median, 99%%, max\n");
  small_launches(small, graph, count, launches, every).show("alone");
  for (const Kind& kind : kinds) {
    Client large(daemon, 7);
    const auto busy = kind.start(large);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    small_launches(small, graph, count, launches, every).show(kind.name);
  }
  std::printf("\none node of 8 samples, us         median       90%%       99%%       max\n");
  const std::uint64_t tiny = small.chain(8, 1);
  small_launches(small, tiny, 1, 20'000, std::chrono::microseconds(0)).show("through the ring");
}

int run(int argc, char** argv) {
  double seconds = 1;
  int launches = 500;
  CLI::App app("Shares of the team's time, and latencies of small launches");
  app.add_option("--seconds", seconds, "of each case of shares");
  app.add_option("--launches", launches, "of each case of latencies");
  std::string only;
  app.add_option("--only", only, "kinds with this in their name");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::warn);
  Daemon::Options options;
  options.plane_budget_bytes = std::uint64_t{2} << 30;
  auto daemon = Daemon::create(std::move(options));
  if (!daemon.ok()) {
    std::fprintf(stderr, "%s\n", daemon.status().to_string().c_str());
    return 1;
  }
  (*daemon)->sessions().tenants().set_rules(
      {[](const Principal& principal) { return "uid:" + std::to_string(principal.uid); },
       [](const std::string& name) {
         TenantPolicy policy;
         policy.weight = name == "uid:3" ? 3 : 1;
         return policy;
       }});
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  std::printf("%d threads; load of the machine before: %.1f\n\n", (*daemon)->info().threads, load);
  std::vector<Kind> kinds = all_kinds();
  const Kind short_ones = kinds.front();
  std::erase_if(kinds,
                [&](const Kind& kind) { return std::string(kind.name).find(only) == std::string::npos; });
  show_shares(**daemon, kinds, short_ones, std::chrono::milliseconds(static_cast<int>(1000 * seconds)));
  show_latencies(**daemon, kinds, launches);
  return 0;
}

}  // namespace
}  // namespace eagle::server

int main(int argc, char** argv) { return eagle::server::run(argc, argv); }
