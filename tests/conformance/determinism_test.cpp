// The same bits from every host, team, target, vector width and tail: the reference interpreter's.
//
// Daemons and sessions are started for each target, so a case is one host on one target, for all teams.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "eagle/client/kernel_builder.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/typing.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

using kernel::Opcode;
using kernel::Role;
using kernel::Scalar;
using kernel::Type;

constexpr int teams[] = {1, 2, 3, 7};
// Around the blocks of every target (2 to 16 lanes, up to four copies), around leaves of 256; the last has
// tiles for every thread.
constexpr std::int64_t lengths[] = {1, 2, 7, 8, 9, 31, 33, 64, 65, 127, 129, 255, 257, 40'009};
constexpr std::int64_t cells = 37;

// Every function of reals, in both precisions: x and y are read, each has an output of either.
Kernel every_function() {
  KernelBuilder b("every_function");
  const std::vector<KernelBuilder::Value> reals = {b.scalar("x"), b.scalar("y"), b.scalar("z")};
  std::vector<KernelBuilder::Value> singles;
  for (const auto& real : reals) singles.push_back(b.convert(real, Scalar::f32));
  for (const kernel::Rule& rule : kernel::rules()) {
    if (!kernel::is_math(rule.code)) continue;
    const auto operands = static_cast<std::ptrdiff_t>(rule.operands);
    b.output(std::string(rule.name),
             b.convert(b.op(rule.code, {reals.begin(), reals.begin() + operands}), Scalar::f64));
    b.output(std::string(rule.name) + "_f32",
             b.convert(b.op(rule.code, {singles.begin(), singles.begin() + operands}), Scalar::f64));
  }
  return *b.finish();
}

// Loops that end sample by sample, a mask, random numbers, and what samples make together: two accum_adds to
// one accumulator, and reductions.
Kernel together() {
  KernelBuilder b("together");
  const auto x = b.scalar("x"), y = b.scalar("y");
  const auto key = b.index("key");
  const auto v = b.state("v", {});
  b.terminated("done");
  b.accumulator("h", {});
  b.declare_reduction("total", {}, ReduceOp::sum);
  b.declare_reduction("least", {}, ReduceOp::min);
  b.declare_reduction("most", {}, ReduceOp::max);
  const auto zero = b.integer(0), limit = b.op(Opcode::modulo, {key, b.integer(9)});
  const auto carried = b.begin_while({zero, v}, 10);
  const auto body = b.while_condition(b.lt(carried[0], limit));
  const auto noise = kernel::random::normal(b, b.integer(7), b.mul(body[0], b.integer(5)));
  const auto next =
      b.add(b.op(Opcode::sin, {body[1]}), b.mul(noise, b.op(Opcode::exp, {b.neg(b.mul(y, y))})));
  const auto result = b.end_while({b.add(body[0], b.integer(1)), next});
  b.commit("v", result[1]);
  b.accum_add("h", result[1], {key});
  b.accum_add("h", b.op(Opcode::atan2, {x, y}), {b.op(Opcode::modulo, {b.sample_index(), b.integer(11)})});
  b.commit("total", result[1]);
  b.commit("least", b.mul(x, y));
  b.commit("most", b.op(Opcode::tanh, {x}));
  b.commit("done", b.gt(result[1], b.real(1.2)));
  return *b.finish();
}

double sample(std::int64_t i, std::size_t which) {
  const double specials[] = {0.0, -0.0, 1.0, -1.0, 1e300, -1e-310, HUGE_VAL, std::nan(""), 0x1p-1074, 2.5e5};
  const std::int64_t place = i * 3 + static_cast<std::int64_t>(which) * 5;
  if (place % 13 == 4) return specials[static_cast<std::size_t>(place / 13) % std::size(specials)];
  return std::sqrt(static_cast<double>(i * 7 + 1)) * (place % 2 == 0 ? 0.37 : -0.011);
}

bool equal(const std::byte* a, const std::byte* b, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    double p = 0, q = 0;
    std::memcpy(&p, a + at, 8);
    std::memcpy(&q, b + at, 8);
    if (std::memcmp(&p, &q, 8) != 0 && !(std::isnan(p) && std::isnan(q))) return false;
  }
  return true;
}

struct Case {
  HostUnderTest host;
  const char* target;
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.host.name << " " << tested.target; }

bool runs_here(const std::string& target) {
#if defined(__x86_64__)
  if (target == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3") != 0;
  if (target == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4") != 0;
  return true;
#else
  return target.empty();
#endif
}

class Determinism : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (!runs_here(GetParam().target)) GTEST_SKIP() << "this CPU is no " << GetParam().target;
    ::setenv("EAGLED_CPU_TARGET", GetParam().target, 1);
  }
  void TearDown() override { ::unsetenv("EAGLED_CPU_TARGET"); }

  static void compare_all(const std::shared_ptr<const Kernel>& kernel) {
    for (const int team : teams) {
      // A session and a daemon of their own: those of the suite are for another target.
      std::unique_ptr<DaemonProcess> daemon;
      StatusOr<Session> session = GetParam().host.open_apart(team, daemon);
      if (!session.ok() && session.status().code() == Code::unavailable)
        GTEST_SKIP() << session.status().message();
      ASSERT_TRUE(session.ok()) << session.status().to_string();
      for (const std::int64_t n : lengths) {
        SCOPED_TRACE("team " + std::to_string(team) + ", " + std::to_string(n) + " samples");
        ASSERT_EQ(difference(*session, kernel, n), "");
      }
    }
  }

  // One launch by the session and by the interpreter: the name of the first argument that differs.
  static std::string difference(const Session& session, const std::shared_ptr<const Kernel>& kernel,
                                std::int64_t n) {
    BoundPlan plan{kernel, {}};
    std::vector<ArrayView> views;
    std::vector<std::vector<std::byte>> wanted;
    std::vector<kernel::InterpreterPlane> planes;
    std::vector<std::shared_ptr<void>> arrays;
    for (std::size_t a = 0; a < kernel->arguments.size(); ++a) {
      const kernel::Argument& argument = kernel->arguments[a];
      const std::int64_t length = argument.role == Role::reduce  ? 1
                                  : argument.role == Role::accum ? cells
                                                                 : n;
      const auto bind = [&]<typename T>(const auto& value) {
        auto array = std::make_shared<Array<T>>(session.zeros<T>({length}).value());
        for (std::int64_t i = 0; i < length; ++i) (*array)[i] = value(i);
        views.push_back(*array);
        plan.arguments.push_back({argument.name, *array});
        arrays.push_back(array);
      };
      if (argument.type.scalar == Scalar::boolean) {
        bind.operator()<bool>([](std::int64_t i) { return i % 10 == 6; });
      } else if (argument.type.scalar == Scalar::i64) {
        bind.operator()<std::int64_t>([](std::int64_t i) { return (i * i + 3 * i) % (cells + 4) - 2; });
      } else {
        bind.operator()<double>([&](std::int64_t i) { return sample(i, a); });
      }
      const auto* data = static_cast<const std::byte*>(views.back().data);
      wanted.emplace_back(data, data + views.back().item_bytes * length);
      planes.push_back({wanted.back().data(), views.back().item_bytes * length, length});
    }
    kernel::interpret_launch(*kernel, planes, n, 1, {0, n, 0});
    Graph g(session);
    if (const Status status = g.add(plan); !status.ok()) return status.to_string();
    if (const Status status = g.build(); !status.ok()) return status.to_string();
    if (const auto report = g.launch(); !report.ok()) return report.status().to_string();
    for (std::size_t a = 0; a < views.size(); ++a) {
      const auto* found = static_cast<const std::byte*>(views[a].data);
      const bool reals = kernel->arguments[a].type.scalar == Scalar::f64;
      const std::size_t bytes = wanted[a].size();
      if (reals ? !equal(found, wanted[a].data(), bytes) : std::memcmp(found, wanted[a].data(), bytes) != 0)
        return kernel->arguments[a].name;
    }
    return {};
  }
};

TEST_P(Determinism, EveryFunctionGivesTheInterpretersBits) {
  compare_all(std::make_shared<const Kernel>(every_function()));
}

TEST_P(Determinism, LoopsRandomNumbersAdditionsAndReductionsGiveTheInterpretersBits) {
  compare_all(std::make_shared<const Kernel>(together()));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const HostUnderTest& host : all_hosts()) {
    for (const char* target : {"", "x86-64", "x86-64-v3", "x86-64-v4"}) all.push_back({host, target});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Targets, Determinism, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name =
      tested.param.host.name + "_" + (*tested.param.target == 0 ? "native" : tested.param.target);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace eagle::conformance
