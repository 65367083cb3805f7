// Kernels whose samples share, as launches run them: the interpreter's bits, whatever the team and the
// target.
#include "engine/run/cpu/shared_launch.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/kernel/builder.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/run/control.h"

namespace eagle::run {
namespace {

using kernel::Kernel;
using kernel::KernelBuilder;
using kernel::Planes;
using kernel::ReduceOp;
using kernel::Scalar;
using kernel::Type;

constexpr std::uint64_t first_seed = 20'261'129;
constexpr const char* targets[] = {"", "x86-64", "x86-64-v3", "x86-64-v4"};

std::optional<codegen::Target> target_named(const char* name) {
  ::setenv("EAGLED_CPU_TARGET", name, 1);
  StatusOr<codegen::Target> target = codegen::default_target();
  ::unsetenv("EAGLED_CPU_TARGET");
  if (!target.ok()) return std::nullopt;
  return *target;
}

struct Outcome {
  Planes planes;
  KernelCounts counts;
  std::int64_t finished = 0;
  int pieces = 1;
};

Outcome interpreted(const Kernel& kernel, Planes planes, std::int64_t samples, std::int64_t first_step) {
  const auto addresses = planes.interpreter_planes();
  const auto found = kernel::interpret_launch(kernel, addresses, samples, 1, {0, samples, first_step});
  return {std::move(planes), {found.clamped, found.zero_divisions, found.dropped, 0}, found.finished};
}

// The launch as a graph would bind it to these planes, and one step by a team.
Outcome launched(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<const codegen::Code> code,
                 Planes planes, std::int64_t samples, std::int64_t first_step, int team,
                 const Control* control = nullptr, bool in_pieces = false) {
  graph::KernelLaunch launch;
  launch.samples = samples;
  std::vector<PlaneMemory> memory;
  for (std::size_t a = 0; a < kernel->arguments.size(); ++a) {
    graph::Bound& bound = launch.arguments.emplace_back();
    bound.bits = planes.params[a];
    bound.layout = {planes.lengths[a], planes.strides[a]};
    memory.push_back({planes.bytes[a].data(), planes.bytes[a].size()});
    if (kernel->arguments[a].role == kernel::Role::param) continue;
    bound.view.emplace();
    bound.view->plane = static_cast<std::uint32_t>(a);
    bound.view->offset = planes.element_bytes[a];
  }
  StatusOr<BoundLaunch> bound = BoundLaunch::bind(launch, *kernel, std::move(code), memory);
  EXPECT_TRUE(bound.ok()) << bound.status().to_string();
  const std::optional<SharedLaunch> shared = SharedLaunch::of(launch, kernel, *bound);
  EXPECT_TRUE(shared.has_value());
  std::vector<ThreadSpace> spaces(static_cast<std::size_t>(team));
  for (ThreadSpace& space : spaces) space.make_room(shared->needs(team));
  std::vector<Place> places(spaces.size());
  Piece piece{team, places, spaces, control, in_pieces ? Slice(0) : Slice()};
  BoundLaunch::Outcome outcome;
  Progress progress;
  int pieces = 0;
  do {
    outcome += shared->step(*bound, piece, first_step, progress);
    ++pieces;
  } while (progress.left);
  EXPECT_TRUE(in_pieces || pieces == 1) << pieces;
  return {std::move(planes), outcome.counts, outcome.finished, pieces};
}

void expect_equal(const Kernel& kernel, const Outcome& ours, const Outcome& wanted) {
  ASSERT_EQ(kernel::first_difference(kernel, ours.planes, wanted.planes), "") << kernel::to_text(kernel);
  ASSERT_EQ(ours.finished, wanted.finished) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.clamped, wanted.counts.clamped) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.zero_divisions, wanted.counts.zero_divisions) << kernel::to_text(kernel);
  ASSERT_EQ(ours.counts.dropped, wanted.counts.dropped) << kernel::to_text(kernel);
}

class SharedBits : public testing::TestWithParam<const char*> {};

TEST_P(SharedBits, OfRandomKernelsAreTheInterpreters) {
  const auto target = target_named(GetParam());
  if (!target) GTEST_SKIP() << "this CPU cannot run " << GetParam();
  codegen::Compiler compiler;
  kernel::RandomKernelOptions options;
  options.shared = 80;
  const int kernels = std::getenv("EAGLE_LONG") == nullptr ? 60 : 5'000;
  int sharing = 0;
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto kernel = std::make_shared<const Kernel>(kernel::random_kernel(seed, options));
    if (!kernel->shares()) continue;
    ++sharing;
    const auto code = compiler.compile(*kernel, *target);
    ASSERT_TRUE(code.ok()) << code.status().to_string() << "\n" << kernel::to_text(*kernel);
    const std::int64_t lanes = code->code->lanes();
    for (const std::int64_t samples : {std::int64_t{1}, lanes - 1, 2 * lanes + 3, std::int64_t{700}}) {
      if (samples == 0) continue;
      kernel::Random random(seed ^ static_cast<std::uint64_t>(samples));
      const Planes planes = kernel::random_planes(*kernel, samples, random);
      const auto step = static_cast<std::int64_t>(random.below(100));
      const Outcome wanted = interpreted(*kernel, planes, samples, step);
      for (const int team : {1, 3, 4}) {
        SCOPED_TRACE(std::to_string(samples) + " samples, team " + std::to_string(team));
        const bool in_pieces = random.below(2) == 0;
        expect_equal(*kernel, launched(kernel, code->code, planes, samples, step, team, nullptr, in_pieces),
                     wanted);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(sharing, kernels / 2);
}

INSTANTIATE_TEST_SUITE_P(Target, SharedBits, testing::ValuesIn(targets), [](const auto& instance) {
  std::string name = *instance.param == '\0' ? "native" : instance.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

std::shared_ptr<const Kernel> finish(KernelBuilder& builder) {
  StatusOr<Kernel> kernel = builder.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return std::make_shared<const Kernel>(kernel.ok() ? *std::move(kernel) : Kernel{});
}

// h[key] += x and, for every sample with x > 0, again h[key + 1] += 1/3; the sum and the largest of x.
std::shared_ptr<const Kernel> histogram() {
  KernelBuilder k("histogram");
  const auto x = k.scalar("x");
  const auto key = k.index("key");
  k.accumulator("h", Type{Scalar::f64});
  k.declare_reduction("total", Type{Scalar::f64}, ReduceOp::sum);
  k.declare_reduction("most", Type{Scalar::f64}, ReduceOp::max);
  k.accum_add("h", x, {key});
  k.begin_if(k.gt(x, k.real(0)));
  k.accum_add("h", k.real(1.0 / 3), {k.add(key, k.integer(1))});
  k.otherwise({});
  k.end_if({});
  k.commit("total", x);
  k.commit("most", x);
  return finish(k);
}

// As many additions as the sample says, which go round the accumulator.
std::shared_ptr<const Kernel> sprinkler() {
  KernelBuilder k("sprinkler");
  const auto x = k.scalar("x");
  const auto count = k.index("count");
  k.accumulator("h", Type{Scalar::f64});
  const auto begun = k.begin_while({k.integer(0)}, 1'000'000);
  const auto body = k.while_condition(k.lt(begun[0], count));
  k.accum_add("h", x, {k.op(kernel::Opcode::modulo, {body[0], k.integer(13)})});
  k.end_while({k.add(body[0], k.integer(1))});
  return finish(k);
}

Planes planes_of(const Kernel& kernel, const std::vector<double>& x,
                 const std::vector<std::int64_t>& integers, std::int64_t cells) {
  kernel::Random random(1);
  Planes planes = kernel::random_planes(kernel, static_cast<std::int64_t>(x.size()), random);
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const kernel::Argument& argument = kernel.arguments[a];
    if (argument.role == kernel::Role::accum) {
      planes.lengths[a] = cells;
      planes.bytes[a].assign(static_cast<std::size_t>(8 * cells + 16), std::byte{0});
    } else if (argument.role == kernel::Role::read) {
      const void* from =
          argument.type.scalar == Scalar::f64 ? static_cast<const void*>(x.data()) : integers.data();
      std::memcpy(planes.bytes[a].data() + 8, from, 8 * x.size());
    }
  }
  return planes;
}

// A few tiles, more than once the length of a tile, with elements hit by many tiles and some outside.
TEST(SharedLaunch, AddsInTheOrderOfSamplesWhateverTheTeam) {
  codegen::Compiler compiler;
  const auto kernel = histogram();
  for (const std::int64_t cells : {1, 7, 1000, 100'000}) {
    kernel::Random random(static_cast<std::uint64_t>(cells));
    std::vector<double> x(150'001);
    std::vector<std::int64_t> keys(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<double>(random.below(1'000'000)) * 1e-3 - 300;
      keys[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(cells) + 2)) - 1;
    }
    const Planes planes = planes_of(*kernel, x, keys, cells);
    const auto samples = static_cast<std::int64_t>(x.size());
    const Outcome wanted = interpreted(*kernel, planes, samples, 0);
    EXPECT_GT(wanted.counts.dropped, 0);
    for (const char* name : targets) {
      const auto target = target_named(name);
      if (!target) continue;
      const auto code = compiler.compile(*kernel, *target);
      ASSERT_TRUE(code.ok()) << code.status().to_string();
      for (const int team : {1, 2, 3, 7, 16}) {
        SCOPED_TRACE(std::to_string(cells) + " cells, team " + std::to_string(team) + ", " + name);
        expect_equal(*kernel, launched(kernel, code->code, planes, samples, 0, team), wanted);
        if (cells != 1000) continue;
        const Outcome cut = launched(kernel, code->code, planes, samples, 0, team, nullptr, true);
        expect_equal(*kernel, cut, wanted);
        EXPECT_GE(cut.pieces * team, samples / 16'384) << "a tile a thread, at most";
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// One sample makes more notes than fit in all the room there is.
TEST(SharedLaunch, AddsAnyNumberOfNotesInBoundedRoom) {
  codegen::Compiler compiler;
  const auto kernel = sprinkler();
  std::vector<double> x(5'000);
  std::vector<std::int64_t> counts(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 1.0 / static_cast<double>(i + 1);
    counts[i] = static_cast<std::int64_t>(i % 17);
  }
  counts[100] = 70'000;
  counts[3'000] = 50'001;
  const Planes planes = planes_of(*kernel, x, counts, 12);
  const auto samples = static_cast<std::int64_t>(x.size());
  const Outcome wanted = interpreted(*kernel, planes, samples, 0);
  const auto code = compiler.compile(*kernel, {});
  ASSERT_TRUE(code.ok()) << code.status().to_string();
  for (const int team : {1, 2, 3, 7}) {
    SCOPED_TRACE("team " + std::to_string(team));
    expect_equal(*kernel, launched(kernel, code->code, planes, samples, 0, team), wanted);
    expect_equal(*kernel, launched(kernel, code->code, planes, samples, 0, team, nullptr, true), wanted);
  }
}

// The number of rounds of each sample, added up; with an accumulator as well, if asked for.
std::shared_ptr<const Kernel> rounds(bool with_accumulator) {
  KernelBuilder k("rounds");
  const auto count = k.index("count");
  k.declare_reduction("total", Type{Scalar::i64}, ReduceOp::sum);
  if (with_accumulator) k.accumulator("h", Type{Scalar::i64});
  const auto begun = k.begin_while({k.integer(0)}, 1'000'000'000);
  const auto body = k.while_condition(k.lt(begun[0], count));
  const auto ended = k.end_while({k.add(body[0], k.integer(1))});
  if (with_accumulator) k.accum_add("h", ended[0], {k.integer(0)});
  k.commit("total", ended[0]);
  return finish(k);
}

class CancelledSharedLaunch : public testing::TestWithParam<bool> {};

TEST_P(CancelledSharedLaunch, KeepsWhatPlanesHeld) {
  codegen::Compiler compiler;
  const auto kernel = rounds(GetParam());
  const std::vector<std::int64_t> counts(40'000, 100'000'000);
  Planes planes = planes_of(*kernel, std::vector<double>(counts.size()), counts, 1);
  constexpr std::int64_t held = 7;
  for (std::size_t a = 1; a < kernel->arguments.size(); ++a)
    std::memcpy(planes.bytes[a].data() + planes.element_bytes[a], &held, sizeof held);
  const auto code = compiler.compile(*kernel, {});
  ASSERT_TRUE(code.ok()) << code.status().to_string();
  Control control;
  control.cancel = true;
  for (const int team : {1, 3, 4}) {
    SCOPED_TRACE("team " + std::to_string(team));
    const Outcome found =
        launched(kernel, code->code, planes, static_cast<std::int64_t>(counts.size()), 0, team, &control);
    EXPECT_GT(found.counts.cut_short, 0);
    EXPECT_EQ(kernel::first_difference(*kernel, found.planes, planes), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Accumulates, CancelledSharedLaunch, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Too" : "Nothing"; });

}  // namespace
}  // namespace eagle::run
