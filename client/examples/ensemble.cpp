// A million oscillators, each stepped until its own clock has run out, in an eagled that `connect()` finds or
// starts; with `--local` in this process. Both give the same bits.
#include <eagle/client/kernel_builder.h>
#include <eagle/client/session.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace {

// The value, or the end of the program with the reason.
template <typename T>
T check(eagle::StatusOr<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.status().to_string().c_str());
  std::exit(1);
}

// One explicit Euler step of x'' = -omega^2 x for one sample, which is done when t reaches t_end.
eagle::Kernel oscillator() {
  eagle::KernelBuilder k("oscillator");
  const auto x = k.state("x", {});
  const auto v = k.state("v", {});
  const auto t = k.state("t", {});
  const auto omega = k.scalar("omega");
  const auto dt = k.param("dt");
  const auto t_end = k.param("t_end");
  k.terminated("done");
  const auto next_t = k.add(t, dt);
  k.commit("x", k.add(x, k.mul(dt, v)));
  k.commit("v", k.sub(v, k.mul(k.mul(k.mul(dt, omega), omega), x)));
  k.commit("t", next_t);
  k.commit("done", k.ge(next_t, t_end));
  return check(k.finish());
}

}  // namespace

int main(int argc, char** argv) {
  const bool local = argc == 2 && std::string_view(argv[1]) == "--local";
  if (argc > 2 || (argc == 2 && !local)) {
    std::fprintf(stderr, "usage: %s [--local]\n", argv[0]);
    return 2;
  }
  const eagle::Session session = check(local ? eagle::local() : eagle::connect());

  constexpr std::int64_t samples = 1'000'000;
  const auto x = check(session.full<double>({samples}, 1.0));
  const auto v = check(session.zeros<double>({samples}));
  const auto t = check(session.zeros<double>({samples}));
  const auto omega = check(session.zeros<double>({samples}));
  const auto done = check(session.zeros<bool>({samples}));
  for (std::int64_t i = 0; i < samples; ++i)
    omega[i] = 1.0 + static_cast<double>(i) * (2.0 / (samples - 1));  // 1 to 3

  const eagle::BoundPlan model = {
      std::make_shared<const eagle::Kernel>(oscillator()),
      {{"x", x}, {"v", v}, {"t", t}, {"omega", omega}, {"dt", 1e-3}, {"t_end", 1.0}, {"done", done}}};
  const eagle::RunResult result =
      check(session.simulate(model, {.max_steps = 2000, .timeout = {}, .cancel = {}}));

  std::printf("steps     %lld\n", static_cast<long long>(result.report.steps));
  std::printf("finished  %lld\n", static_cast<long long>(result.report.finished));
  std::printf("status    %s\n", std::string(eagle::step::name_of(result.status)).c_str());
  std::printf("x[:3]     %.17g %.17g %.17g\n", x[0], x[1], x[2]);
  std::printf("host pid  %lld\n", static_cast<long long>(result.report.host.pid));
  return 0;
}
