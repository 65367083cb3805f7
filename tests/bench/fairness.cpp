// Fairness: what tenants get of the team's time, and how long a small launch waits beside a large one.
//
// A daemon without sockets in this process, launched through rings as clients do. Prints, for weights 1:3,
// the shares of measured team seconds; then the latency of launches of about 100 us every 10 ms beside a
// tenant that saturates the team in several ways; then that of a one-node launch with nobody else there.
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/ring_client.h"
#include "server/ring/ring.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using Clock = std::chrono::steady_clock;
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
  // x <- x + 1, so many nodes in a row.
  std::uint64_t chain(std::size_t samples, int nodes) {
    GraphScene scene(*session);
    const auto x = scene.plane<double>(samples, 0.0);
    for (int i = 0; i < nodes; ++i) add_increment(scene, x);
    return server::testing::build(daemon_, *session, scene);
  }
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

// Keeps the team busy until it is told to stop: some launches always wait behind the one that runs.
class Saturation {
public:
  Saturation(Client& client, std::size_t samples, std::int64_t count, int depth = 4)
      : thread_([graphs = graphs_of(client, samples, depth), &client, count](const std::stop_token& stop) {
          std::vector<RingClient::Posted> posted;
          for (const std::uint64_t graph : graphs) posted.push_back(client.post(graph, count));
          for (std::size_t next = 0; !stop.stop_requested(); next = (next + 1) % graphs.size()) {
            client.finish(posted[next]);
            posted[next] = client.post(graphs[next], count);
          }
          for (const RingClient::Posted& each : posted) client.finish(each);
        }) {}

private:
  static std::vector<std::uint64_t> graphs_of(Client& client, std::size_t samples, int depth) {
    std::vector<std::uint64_t> graphs;
    for (int i = 0; i < depth; ++i) graphs.push_back(client.chain(samples, 1));
    return graphs;
  }
  std::jthread thread_;
};

void show_shares(Daemon& daemon, std::chrono::seconds duration) {
  Client one(daemon, light);
  Client three(daemon, heavy);
  struct Case {
    const char* name;
    std::size_t light_samples;
    std::int64_t light_count;
    std::size_t heavy_samples;
    std::int64_t heavy_count;
  };
  std::printf("weights 1:3                          team seconds        ratio (3 is fair)\n");
  for (const Case& each : {Case{"launches of the same kind", 100'000, 20, 100'000, 20},
                           Case{"long launches against short ones", 1'000'000, 40, 1000, 5000},
                           Case{"one kernel of 8M samples against short", 8'000'000, 1, 1000, 5000}}) {
    const Saturation of_one(one, each.light_samples, each.light_count);
    const Saturation of_three(three, each.heavy_samples, each.heavy_count, 16);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double one_before = seconds_of(daemon, "uid:1");
    const double three_before = seconds_of(daemon, "uid:3");
    std::this_thread::sleep_for(duration);
    const double one_s = seconds_of(daemon, "uid:1") - one_before;
    const double three_s = seconds_of(daemon, "uid:3") - three_before;
    std::printf("%-38s %6.2f : %-6.2f %14.2f\n", each.name, one_s, three_s, three_s / one_s);
  }
}

struct Latencies {
  std::vector<double> us;
  void show(const char* name) {
    std::sort(us.begin(), us.end());
    const auto at = [&](double part) {
      return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
    };
    std::printf("%-38s %9.1f %9.1f %9.1f %9.1f\n", name, at(0.5), at(0.9), at(0.99), us.back());
  }
};

Latencies small_launches(Client& client, std::uint64_t graph, std::int64_t count, int launches,
                         std::chrono::microseconds every) {
  Latencies found;
  Clock::time_point next = Clock::now();
  for (int i = 0; i < launches; ++i) {
    std::this_thread::sleep_until(next);
    next += every;
    const Clock::time_point began = Clock::now();
    client.launch(graph, count);
    found.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
  }
  return found;
}

void show_latencies(Daemon& daemon, int launches) {
  Client small(daemon, light);
  Client large(daemon, 7);
  const std::uint64_t graph = small.chain(1000, 1);
  std::int64_t count = 1;  // so that a launch takes about 100 us
  for (double took = 0; took < 100; count *= 2)
    took = small_launches(small, graph, count, 20, std::chrono::microseconds(0)).us[10];
  const std::chrono::microseconds every(10'000);
  std::printf("\n100 us of work every 10 ms, us          median       90%%       99%%       max\n");
  small_launches(small, graph, count, launches, every).show("alone");
  {
    const Saturation busy(large, 100'000, 20);
    small_launches(small, graph, count, launches, every).show("beside short launches");
  }
  {
    const Saturation busy(large, 1'000'000, 20);
    small_launches(small, graph, count, launches, every).show("beside long launches");
  }
  {
    const Saturation busy(large, 16'000'000, 1, 2);
    small_launches(small, graph, count, launches, every).show("beside one kernel of 16M samples");
  }
  std::printf("\none node of 8 samples, us               median       90%%       99%%       max\n");
  const std::uint64_t tiny = small.chain(8, 1);
  small_launches(small, tiny, 1, 20'000, std::chrono::microseconds(0)).show("through the ring");
}

int run(int argc, char** argv) {
  int seconds = 3;
  int launches = 500;
  CLI::App app("Shares of the team's time, and latencies of small launches");
  app.add_option("--seconds", seconds, "of each case of shares");
  app.add_option("--launches", launches, "of each case of latencies");
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
  std::printf("%d threads\n\n", (*daemon)->info().threads);
  show_shares(**daemon, std::chrono::seconds(seconds));
  show_latencies(**daemon, launches);
  return 0;
}

}  // namespace
}  // namespace eagle::server

int main(int argc, char** argv) { return eagle::server::run(argc, argv); }
