// bench, verify: how fast a launch is here, and whether this host gives the promised bits, or a graph of a
// daemon the same on its CPU and its GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "client/ctl/command.h"
#include "client/ctl/graphs_list.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/self_check.h"
#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/v1/inspect.pb.h"
#include "engine/base/clock.h"
#include "engine/run/host.h"

namespace eagle::ctl {
namespace {

// ---- bench

struct BenchOptions {
  int launches = 2000;
  std::int64_t samples = 8;
};

struct Latency {
  std::string way;              // "in process", "ring", "grpc", "tcp"
  std::string note;             // why there is none, or what it is of
  std::vector<double> seconds;  // sorted; empty: there is none
};

StatusOr<Kernel> affine() {
  KernelBuilder builder("bench");
  const auto x = builder.scalar("x");
  builder.output("y", builder.add(builder.mul(x, builder.real(2.0)), builder.real(1.0)));
  return builder.finish();
}

// Launches of one small graph, one after the other, each timed by itself.
StatusOr<std::vector<double>> launches(const Session& session, const BenchOptions& asked) {
  EAGLE_ASSIGN_OR_RETURN(Kernel kernel, affine());
  EAGLE_ASSIGN_OR_RETURN(const Array<double> x, session.full<double>({asked.samples}, 1.0));
  EAGLE_ASSIGN_OR_RETURN(const Array<double> y, session.zeros<double>({asked.samples}));
  Graph graph(session, {.name = "eaglectl bench"});
  EAGLE_RETURN_IF_ERROR(graph.add({std::make_shared<const Kernel>(std::move(kernel)), {{"x", x}, {"y", y}}}));
  EAGLE_RETURN_IF_ERROR(graph.build());
  const int warm_up = std::min(200, asked.launches);
  for (int i = 0; i < warm_up; ++i) EAGLE_RETURN_IF_ERROR(graph.launch().status());
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(asked.launches));
  for (int i = 0; i < asked.launches; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    EAGLE_RETURN_IF_ERROR(graph.launch().status());
    seconds.push_back(seconds_since(begun));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

Latency measured(std::string way, const StatusOr<Session>& session, const BenchOptions& asked) {
  Latency latency{std::move(way), "", {}};
  if (!session.ok()) {
    latency.note = session.status().message();
    return latency;
  }
  const auto info = session->info();
  if (info.ok() && latency.way == "ring" && info->transport != "memfd + ring") {
    latency.note = "there is none: " + info->transport;
    return latency;
  }
  const auto seconds = launches(*session, asked);
  if (seconds.ok()) {
    latency.seconds = *seconds;
    if (info.ok()) latency.note = info->endpoint + ", " + info->transport;
  } else {
    latency.note = seconds.status().message();
  }
  return latency;
}

double at(const std::vector<double>& sorted, double part) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
}

// The daemon that was named or is found, else one of this process's own.
StatusOr<Session> daemon_session(const Options& options, bool ring) {
  EAGLE_ASSIGN_OR_RETURN(ConnectOptions how, connect_options(options));
  how.ring = ring;
  return eagle::connect(options.endpoint, how);
}

StatusOr<Exit> bench(const Options& options, const BenchOptions& asked) {
  ::unsetenv("EAGLE_RECORD");
  double load[3] = {0, 0, 0};
  const bool known = ::getloadavg(load, 3) >= 1;
  const int cpus = std::max(1, run::allowed_threads());
  const std::vector<Latency> all = {measured("in process", local(), asked),
                                    measured("ring", daemon_session(options, true), asked),
                                    measured("grpc", daemon_session(options, false), asked)};
  const bool busy = known && load[0] > 0.25 * cpus;
  const std::string honest =
      !known ? "the load of this host is not known"
      : busy ? "this host is busy: other work is in these figures, and the least of them says most"
             : "this host was quiet when it began";
  bool some = false;
  if (options.json) {
    Json list = Json::array();
    for (const Latency& one : all) {
      Json json = {{"way", one.way}, {"note", one.note}, {"launches", one.seconds.size()}};
      if (!one.seconds.empty()) {
        json["min_s"] = one.seconds.front();
        json["median_s"] = at(one.seconds, 0.5);
        json["p99_s"] = at(one.seconds, 0.99);
      }
      list.push_back(std::move(json));
      some = some || !one.seconds.empty();
    }
    print_json({{"samples", asked.samples},
                {"load_1min", known ? Json(load[0]) : Json()},
                {"threads", cpus},
                {"busy", busy},
                {"latencies", std::move(list)}});
    return some ? Exit::well : Exit::refused;
  }
  Table table({{"LAUNCH"},
               {"MIN", Table::Align::right},
               {"MEDIAN", Table::Align::right},
               {"P99", Table::Align::right},
               {"LAUNCHES", Table::Align::right},
               {"OF", Table::Align::left, 80}});
  for (const Latency& one : all) {
    some = some || !one.seconds.empty();
    if (one.seconds.empty()) {
      table.add({one.way, "-", "-", "-", "0", one.note});
    } else {
      table.add({one.way, seconds_text(one.seconds.front()), seconds_text(at(one.seconds, 0.5)),
                 seconds_text(at(one.seconds, 0.99)), count_text(one.seconds.size()), one.note});
    }
  }
  std::cout << table.text() << "\none kernel over "
            << plural(static_cast<std::uint64_t>(asked.samples), "sample")
            << ", one launch at a time, each waited for; "
            << plural(static_cast<std::uint64_t>(cpus), "thread") << "; load "
            << (known ? std::to_string(load[0]).substr(0, 4) : "?") << ": " << honest << '\n';
  return some ? Exit::well : Exit::refused;
}

// ---- verify

struct VerifyOptions {
  std::string graph;  // empty: this host
  std::string device;
  std::int64_t launches = 1;
};

Json to_json(const v1::Difference& difference) {
  constexpr std::array<const char*, 5> kinds = {"unknown", "element", "byte", "iterations", "counts"};
  Json json = {{"what", kinds[difference.what() < 0 || difference.what() > 4 ? 0 : difference.what()]},
               {"plane", difference.plane()},
               {"node", difference.node()},
               {"argument", difference.argument()},
               {"index", Json(difference.index())},
               {"cpu", difference.cpu()},
               {"gpu", difference.gpu()}};
  json["ulps"] = difference.has_ulps() ? Json(difference.ulps()) : Json();
  json["text"] = difference.text();
  return json;
}

StatusOr<Exit> verify_graph(const Options& options, const VerifyOptions& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const auto all, caller.session.graphs(GraphScope::visible));
  EAGLE_ASSIGN_OR_RETURN(const GraphInfo graph, find_graph(all, asked.graph));
  v1::VerifyRequest request;
  request.set_graph(graph.graph);
  request.set_session(graph.session);
  request.set_device(asked.device);
  request.set_launches(asked.launches);
  v1::VerifyReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->verify(request, reply));
  const bool equal = !reply.has_difference();
  if (options.json) {
    print_json({{"passed", equal},
                {"id", id_of(graph)},
                {"name", graph.name},
                {"device", reply.device()},
                {"gpu", reply.gpu()},
                {"backend", reply.backend()},
                {"schedule", Json(reply.schedule())},
                {"nodes", reply.nodes()},
                {"planes", reply.planes()},
                {"bytes", reply.bytes()},
                {"launches", asked.launches},
                {"difference", equal ? Json() : to_json(reply.difference())}});
    return equal ? Exit::well : Exit::unwell;
  }
  std::cout << plural(reply.nodes(), "node") << " over " << plural(reply.planes(), "plane") << " of "
            << bytes_text(reply.bytes()) << ", launched "
            << plural(static_cast<std::uint64_t>(asked.launches), "time")
            << " from a copy of its arrays, which stay as they are\n"
            << "the CPU and " << reply.gpu()
            << (equal ? " give the same bits\n" : " differ: " + reply.difference().text() + "\n");
  return equal ? Exit::well : Exit::unwell;
}

StatusOr<Exit> verify_host(const Options& options) {
  ::unsetenv("EAGLE_RECORD");
  std::vector<Check> checks;
  const Status done = self_check(golden(), [&](const Check& check) {
    checks.push_back(check);
    if (options.json) return;
    std::cout << (check.passed ? "pass  " : "FAIL  ") << check.name
              << (check.target.empty() ? "" : " (" + check.target + ")") << ": " << check.detail << std::endl;
  });
  EAGLE_RETURN_IF_ERROR(done);
  const bool passed =
      std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
  if (options.json) {
    Json list = Json::array();
    for (const Check& check : checks)
      list.push_back({{"name", check.name},
                      {"target", check.target},
                      {"passed", check.passed},
                      {"detail", check.detail}});
    print_json({{"passed", passed}, {"checks", std::move(list)}});
  } else {
    std::cout
        << (passed ? "this host gives the promised bits\n"
                   : "this host does NOT give the promised bits: report it, with `eaglectl doctor --all`\n");
  }
  return passed ? Exit::well : Exit::unwell;
}

}  // namespace

void add_check_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const bench_command = app.add_subcommand(
      "bench", "How long a launch takes on this host: in process, through the ring, over gRPC");
  const auto asked = std::make_shared<BenchOptions>();
  bench_command->add_option("--launches", asked->launches, "So many of each are timed")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  bench_command->add_option("--samples", asked->samples, "That the kernel computes")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  bench_command->final_callback([&chosen, asked] {
    chosen.command = [asked](const Options& options) { return bench(options, *asked); };
  });
  CLI::App* const verify_command = app.add_subcommand(
      "verify",
      "Whether this host gives the promised bits, on every target of its CPU and every GPU; of a graph: "
      "whether the daemon's CPU and GPU compute the same from the same arrays");
  const auto of = std::make_shared<VerifyOptions>();
  CLI::Option* const graph = verify_command->add_option(
      "GRAPH", of->graph,
      "Its name, or its id as `graphs` lists it; without one: this host, with kernels of its own");
  verify_command
      ->add_option("--device", of->device, "The GPU: cuda:1, or a UUID; else the graph's own, or the first")
      ->needs(graph);
  verify_command->add_option("--launches", of->launches, "So many replays on each side")
      ->needs(graph)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  verify_command->final_callback([&chosen, of] {
    chosen.command = [of](const Options& options) {
      return of->graph.empty() ? verify_host(options) : verify_graph(options, *of);
    };
  });
}

}  // namespace eagle::ctl
