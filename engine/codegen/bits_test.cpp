// Compiled kernels give the reference interpreter's bits: random kernels and numbers, every target of this
// CPU, lengths around every block, one step and many.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/kernel/diff/derivative.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::Opcode;
using kernel::Planes;

constexpr std::uint64_t first_seed = 20'261'129;

// How many random kernels: EAGLE_LONG (tests/run.sh --long) makes a long run.
int kernels_to_try() { return std::getenv("EAGLE_LONG") == nullptr ? 200 : 20'000; }

struct Case {
  std::int64_t samples;
  std::int64_t steps;
};

struct Outcome {
  Planes planes;
  kernel::InterpreterResult counts;
};

Outcome interpreted(const Kernel& kernel, Planes planes, const Case& c,
                    const kernel::InterpreterPosition& position) {
  const std::vector<kernel::InterpreterPlane> addresses = planes.interpreter_planes();
  const auto counts = kernel::interpret_launch(kernel, addresses, c.samples, c.steps, position);
  return {std::move(planes), counts};
}

Outcome compiled(const Code& code, Planes planes, const Case& c,
                 const kernel::InterpreterPosition& position) {
  const std::vector<std::byte*> addresses = planes.addresses();
  KernelCall call;
  call.planes = addresses.data();
  call.component_strides = planes.strides.data();
  call.params = planes.params.data();
  call.lengths = planes.lengths.data();
  call.end = c.samples;
  call.max_steps = c.steps;
  call.first_sample = position.first_sample;
  call.total_samples = position.total_samples;
  call.first_step = position.first_step;
  code.function()(&call);
  return {std::move(planes), {call.finished, call.steps, call.clamped, call.zero_divisions, call.dropped}};
}

void expect_equal(const Kernel& kernel, const Outcome& ours, const Outcome& wanted) {
  ASSERT_EQ(kernel::first_difference(kernel, ours.planes, wanted.planes), "") << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.finished, wanted.counts.finished) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.steps, wanted.counts.steps) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.clamped, wanted.counts.clamped) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.zero_divisions, wanted.counts.zero_divisions) << kernel::to_text(kernel);
}

void collect(const kernel::Region& region, std::set<Opcode>& seen) {
  for (const kernel::Op& op : region.ops) {
    seen.insert(op.code);
    for (const kernel::Region& nested : op.regions) collect(nested, seen);
  }
}

class Bits : public testing::TestWithParam<const char*> {
protected:
  // Compiled and interpreted, over lengths around every block, one step and `most_steps`.
  void compare(const Kernel& kernel, std::uint64_t seed, std::int64_t most_steps, const Target& target) {
    const auto code = compiler_.compile(kernel, target);
    ASSERT_TRUE(code.ok()) << code.status().to_string() << "\n" << kernel::to_text(kernel);
    const std::int64_t lanes = code->code->lanes();
    for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{1}, lanes - 1, lanes, 2 * lanes + 3}) {
      for (const std::int64_t steps : {std::int64_t{1}, most_steps}) {
        SCOPED_TRACE(std::to_string(samples) + " samples, " + std::to_string(steps) + " steps");
        kernel::Random random(seed ^ static_cast<std::uint64_t>(samples * 31 + steps));
        const Planes planes = kernel::random_planes(kernel, samples, random);
        const kernel::InterpreterPosition position{static_cast<std::int64_t>(random.below(1000)), 5000,
                                                   static_cast<std::int64_t>(random.below(100))};
        const Case c{samples, steps};
        expect_equal(kernel, compiled(*code->code, planes, c, position),
                     interpreted(kernel, planes, c, position));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }

  Compiler compiler_;
};

TEST_P(Bits, OfRandomKernelsAreTheInterpreters) {
  ::setenv("EAGLED_CPU_TARGET", GetParam(), 1);
  const auto target = default_target();
  ::unsetenv("EAGLED_CPU_TARGET");
  if (!target.ok()) GTEST_SKIP() << target.status().message();

  std::set<Opcode> seen;
  kernel::RandomKernelOptions options;
  options.shared = 0;  // engine/run adds and reduces; shared_launch_test compares
  for (int i = 0; i < kernels_to_try(); ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = kernel::random_kernel(seed, options);
    collect(kernel.body, seen);
    compare(kernel, seed, 3, *target);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::printf("%d kernels from seed %llu: %zu of %zu opcodes\n", kernels_to_try(),
              static_cast<unsigned long long>(first_seed), seen.size(), kernel::rules().size());
  for (const kernel::Rule& rule : kernel::rules()) {
    if (rule.has_result() || rule.has_regions()) {
      EXPECT_TRUE(seen.contains(rule.code)) << rule.name << " never occurred";
    }
  }
}

TEST_P(Bits, OfDerivativesAreTheInterpreters) {
  ::setenv("EAGLED_CPU_TARGET", GetParam(), 1);
  const auto target = default_target();
  ::unsetenv("EAGLED_CPU_TARGET");
  if (!target.ok()) GTEST_SKIP() << target.status().message();

  kernel::RandomKernelOptions options;
  options.shared = 0;
  options.ops = 25;
  int compared = 0;
  for (int i = 0; i < kernels_to_try() / 4; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = kernel::random_kernel(seed, options);
    kernel::diff::Options by;  // not by tables: what is added to is for engine/run
    for (const kernel::Argument& argument : kernel.arguments) {
      if (argument.role != kernel::Role::table && kernel::diff::is_differentiable(argument))
        by.wrt.push_back(argument.name);
    }
    if (by.wrt.empty()) continue;
    for (const auto& derivative : {kernel::diff::vjp(kernel, by), kernel::diff::jvp(kernel, by)}) {
      if (!derivative.ok()) continue;  // it gives no reals
      ++compared;
      compare(derivative->kernel, seed, 1, *target);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  std::printf("%d derivatives\n", compared);
  EXPECT_GT(compared, kernels_to_try() / 8);
}

INSTANTIATE_TEST_SUITE_P(Target, Bits, testing::Values("", "x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const auto& instance) {
                           std::string name = *instance.param == '\0' ? "native" : instance.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace eagle::codegen
