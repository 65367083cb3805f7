// A service that has eagle as a library: ten oscillators until their clock has run out, in the daemon that
// `connect()` finds, or with --local in this process; drawn as a graph, too. Exit status 0 when the numbers
// are right.
#include <eagle/client/graph.h>
#include <eagle/client/kernel_builder.h>
#include <eagle/client/session.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "consumer: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T check(eagle::StatusOr<T> result) {
  if (!result.ok()) give_up(result.status().to_string());
  return std::move(*result);
}

eagle::Kernel oscillator() {
  eagle::KernelBuilder k("oscillator");
  const auto x = k.state("x", {});
  const auto v = k.state("v", {});
  const auto t = k.state("t", {});
  const auto dt = k.param("dt");
  const auto t_end = k.param("t_end");
  k.terminated("done");
  const auto next = k.add(t, dt);
  k.commit("x", k.add(x, k.mul(dt, v)));
  k.commit("v", k.sub(v, k.mul(dt, x)));
  k.commit("t", next);
  k.commit("done", k.ge(next, t_end));
  return check(k.finish());
}

}  // namespace

int main(int argc, char** argv) {
  const bool local = argc == 2 && std::string_view(argv[1]) == "--local";
  const eagle::Session session = check(local ? eagle::local() : eagle::connect());
  constexpr std::int64_t samples = 10;
  const auto x = check(session.full<double>({samples}, 1.0));
  const auto v = check(session.zeros<double>({samples}));
  const auto t = check(session.zeros<double>({samples}));
  const auto done = check(session.zeros<bool>({samples}));
  const eagle::BoundPlan model = {
      std::make_shared<const eagle::Kernel>(oscillator()),
      {{"x", x}, {"v", v}, {"t", t}, {"dt", 0.5}, {"t_end", 2.0}, {"done", done}}};
  const eagle::RunResult result =
      check(session.simulate(model, {.max_steps = 100, .timeout = {}, .cancel = {}}));
  // Four steps of a half, all of whose numbers are short binary fractions:
  // (1, 0) -> (1, -.5) -> (.75, -1) -> (.25, -1.375) -> (-.4375, -1.5).
  if (result.report.steps != 4) give_up("expected 4 steps, found " + std::to_string(result.report.steps));
  for (std::int64_t i = 0; i < samples; ++i) {
    if (x[i] != -0.4375 || v[i] != -1.5)
      give_up("expected x = -0.4375, v = -1.5, found " + std::to_string(x[i]));
  }
  std::printf("%lld steps, x = %g, computed by process %lld\n", static_cast<long long>(result.report.steps),
              x[0], static_cast<long long>(result.report.host.pid));
  return 0;
}
