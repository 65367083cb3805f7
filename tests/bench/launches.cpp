// Launches from C++ through a daemon, next to a bare ring between two processes.
//
//   build/release/bin/bench_launches --daemon ENDPOINT [--repeats R] [--seconds S] [--json] [--row TEXT]
//   [--ours]
//
// One caller with one node of 1,024 samples (line 1); 1 and 64 callers with a session each and a node of 8
// samples, one launch in flight each, and one caller with 8 launches enqueued for each wait (line 19); the
// bytes of a launch message (line 20). All forms of a row run in turn, R times, S seconds each; a value is
// seconds a launch. Each form's launches are counted in what they compute.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "eagle/v1/service.pb.h"
#include "proto/ring/layout.h"
#include "tests/bench/need.h"
#include "tests/bench/ring_twin.h"
#include "tests/bench/rows.h"

namespace {

using namespace eagle;
using bench::die;
using bench::MeasuredForm;
using bench::MeasuredRow;
using bench::need;
using Clock = std::chrono::steady_clock;

constexpr std::size_t sessions_of_many = 64;
constexpr std::int64_t small = 8, medium = 1024;
constexpr std::int64_t client_spin_ns = 50'000;

std::shared_ptr<const Kernel> increment() {
  KernelBuilder k("increment");
  const auto x = k.state("x", {});
  k.commit("x", k.add(x, k.real(1.0)));
  return std::make_shared<const Kernel>(need(k.finish()));
}

// x <- x + 1 over so many samples, in a session of its own.
struct Client {
  Client(const std::string& endpoint, std::int64_t samples, bool ring, std::size_t count = 1)
      : session(opened(endpoint, ring)) {
    for (std::size_t i = 0; i < count; ++i) {
      arrays.push_back(need(session.zeros<double>({samples})));
      Graph& g = graphs.emplace_back(session);
      need(g.add({increment(), {{"x", arrays.back()}}}));
      need(g.build());
    }
  }
  static Session opened(const std::string& endpoint, bool ring) {
    ConnectOptions options;
    options.ring = ring;
    return need(connect(endpoint, options));
  }
  void launch() { need(graphs.front().launch().status()); }
  void check(std::size_t graph, std::uint64_t launches) const {
    const double found = arrays[graph][arrays[graph].size() - 1];
    if (found != static_cast<double>(launches))
      die("x is " + std::to_string(found) + " after " + std::to_string(launches) + " launches");
  }

  Session session;
  std::vector<Array<double>> arrays;
  std::vector<Graph> graphs;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Each caller calls again and again in a thread of its own; seconds a call, of all together. `counts` gets
// what each has done.
double seconds_a_call(std::size_t callers, double seconds, const std::function<void(std::size_t)>& call,
                      std::vector<std::uint64_t>& counts) {
  counts.resize(callers);
  if (callers == 1) {  // in this thread, as a program that launches does it
    std::uint64_t done = 0;
    const auto start = Clock::now();
    while (seconds_since(start) < seconds) {
      for (int i = 0; i < 16; ++i) call(0);
      done += 16;
    }
    counts[0] += done;
    return seconds_since(start) / static_cast<double>(done);
  }
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> all = 0;
  std::barrier ready(static_cast<std::ptrdiff_t>(callers) + 1);
  std::vector<std::jthread> threads;
  for (std::size_t c = 0; c < callers; ++c) {
    threads.emplace_back([&, c] {
      ready.arrive_and_wait();
      std::uint64_t done = 0;
      for (; !stop.load(std::memory_order_relaxed); ++done) call(c);
      counts[c] += done;
      all += done;
    });
  }
  ready.arrive_and_wait();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  threads.clear();
  return seconds_since(start) / static_cast<double>(all.load());
}

struct Setup {
  std::string endpoint;
  int repeats = 9;
  double seconds = 0.2;
  std::string row;  // a part of the title of those that are measured
  bool ours = false;
};

struct Form {
  std::string name;
  std::string kind;
  std::function<double()> value;
  std::function<void()> check;
};

void measure(const Setup& setup, const std::string& title,
             const std::function<std::vector<Form>()>& make_forms, std::vector<MeasuredRow>& rows) {
  if (title.find(setup.row) == std::string::npos) return;
  std::vector<Form> forms = make_forms();
  if (setup.ours) std::erase_if(forms, [](const Form& form) { return form.kind != "ours"; });
  MeasuredRow& row = rows.emplace_back(MeasuredRow{title, "s", {}});
  for (const Form& form : forms) row.forms.push_back({form.name, form.kind, {}});
  for (int repeat = 0; repeat <= setup.repeats; ++repeat) {
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const double value = forms[i].value();
      if (repeat > 0) row.forms[i].values.push_back(value);  // the first one warms up
    }
  }
  for (const Form& form : forms) form.check();
}

Form ring_form(const Setup& setup, const std::string& name, std::size_t callers, std::int64_t samples,
               bool ring = true) {
  auto clients = std::make_shared<std::vector<std::unique_ptr<Client>>>();
  for (std::size_t c = 0; c < callers; ++c)
    clients->push_back(std::make_unique<Client>(setup.endpoint, samples, ring));
  auto counts = std::make_shared<std::vector<std::uint64_t>>();
  return {name, "ours",
          [=] {
            return seconds_a_call(
                callers, setup.seconds, [&](std::size_t c) { (*clients)[c]->launch(); }, *counts);
          },
          [=] {
            for (std::size_t c = 0; c < callers; ++c) (*clients)[c]->check(0, (*counts)[c]);
          }};
}

Form twin_form(const Setup& setup, const std::string& name, bench::RingTwin& twin, std::size_t callers,
               std::int64_t spin_ns) {
  const auto counts = std::make_shared<std::vector<std::uint64_t>>();
  const auto before = std::make_shared<std::uint64_t>(twin.calls());
  const auto served = std::make_shared<std::uint64_t>(0);
  return {name, "limit",
          [=, &twin] {
            *before = twin.calls();
            const double value = seconds_a_call(
                callers, setup.seconds, [&](std::size_t c) { twin.call(c, spin_ns); }, *counts);
            *served += twin.calls() - *before;
            return value;
          },
          [=] {
            std::uint64_t called = 0;
            for (const std::uint64_t count : *counts) called += count;
            if (called != *served) die(name + ": it served other calls than were made");
          }};
}

// Eight launches, of a graph each, are on their way before the first one is waited for.
Form enqueued_form(const Setup& setup, const std::string& name) {
  constexpr std::size_t depth = 8;
  const auto client = std::make_shared<Client>(setup.endpoint, small, true, depth);
  const auto counts = std::make_shared<std::vector<std::uint64_t>>();
  return {name, "ours",
          [=] {
            const auto round = [&](std::size_t) {
              for (Graph& graph : client->graphs) need(graph.enqueue());
              for (Graph& graph : client->graphs) need(graph.synchronize().status());
            };
            return seconds_a_call(1, setup.seconds, round, *counts) / static_cast<double>(depth);
          },
          [=] {
            for (std::size_t g = 0; g < depth; ++g) client->check(g, (*counts)[0]);
          }};
}

// What travels for one launch, by what both ways send.
MeasuredRow bytes_of_messages() {
  v1::LaunchRequest request;
  request.set_graph(1'000'000);
  request.set_count(1);
  request.set_launch_id(1'000'000'000);
  v1::LaunchReport report;
  report.set_launches(1);
  report.set_threads(2);
  report.set_wall_s(1e-6);
  // Of a slot: where an answer and its loops begin.
  static const ring::Slot slot;
  const auto at = [](const auto& field) {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&field) -
                                    reinterpret_cast<const std::byte*>(&slot));
  };
  const auto bytes = [](std::size_t size) { return std::vector{static_cast<double>(size)}; };
  return {"bytes of a launch message",
          "bytes",
          {{"request in the ring", "ours", bytes(at(slot.sequence))},
           {"answer in the ring", "ours", bytes(at(slot.iteration_count) - at(slot.failed))},
           {"request over gRPC", "ours", bytes(request.ByteSizeLong())},
           {"answer over gRPC", "ours", bytes(report.ByteSizeLong())}}};
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  bool json = false;
  CLI::App app("Launches from C++ through a daemon, next to a bare ring");
  app.add_option("--daemon", setup.endpoint, "its endpoint, unix:PATH")->required();
  app.add_option("--repeats", setup.repeats)->check(CLI::Range(1, 1000));
  app.add_option("--seconds", setup.seconds, "of each form and repeat")->check(CLI::Range(1e-4, 60.0));
  app.add_flag("--json", json);
  app.add_option("--row", setup.row, "those whose title has this in it");
  app.add_flag("--ours", setup.ours, "no twins: for profiles");
  CLI11_PARSE(app, argc, argv);

  // Their processes are made before this one has threads.
  std::vector<double> few(small), many(medium);
  const auto work = [](std::vector<double>& x) {
    return [&x] {
      for (double& value : x) value += 1.0;
      asm volatile("" ::"r"(x.data()) : "memory");
    };
  };
  bench::RingTwin twin(work(few)), wide_twin(work(many));

  std::vector<MeasuredRow> rows;
  using Forms = std::vector<Form>;
  measure(
      setup, "one node, 1,024 samples, from C++",
      [&] {
        return Forms{twin_form(setup, "bare ring", wide_twin, 1, client_spin_ns),
                     ring_form(setup, "eagle from C++ through eagled", 1, medium)};
      },
      rows);
  measure(
      setup, "1 session",
      [&] {
        return Forms{twin_form(setup, "bare ring", twin, 1, client_spin_ns),
                     ring_form(setup, "ring", 1, small), ring_form(setup, "gRPC", 1, small, false),
                     enqueued_form(setup, "ring, 8 enqueued a wait")};
      },
      rows);
  measure(
      setup, "64 sessions",
      [&] {
        return Forms{twin_form(setup, "bare ring, sleeping", twin, sessions_of_many, 0),
                     twin_form(setup, "bare ring, spinning 2 us", twin, sessions_of_many, 2'000),
                     ring_form(setup, "ring", sessions_of_many, small)};
      },
      rows);
  if (setup.row.empty()) rows.push_back(bytes_of_messages());
  if (json) {
    bench::print_json(rows);
  } else {
    bench::print_text(rows);
  }
  return 0;
}
