// Models of several parts, with the caller's own code between kernels, on every host.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>

#include "eagle/client/kernel_builder.h"
#include "eagle/client/shards.h"
#include "eagle/client/stepping.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

std::shared_ptr<const Kernel> finished(KernelBuilder& builder) {
  StatusOr<Kernel> kernel = builder.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return std::make_shared<const Kernel>(std::move(*kernel));
}

// x <- x + 1, without a mask of its own.
std::shared_ptr<const Kernel> increment() {
  KernelBuilder k("increment");
  const auto x = k.state("x", {});
  k.commit("x", k.add(x, k.real(1)));
  return finished(k);
}
// Finished when x >= limit.
std::shared_ptr<const Kernel> at_limit() {
  KernelBuilder k("at_limit");
  const auto limit = k.param("limit");
  const auto x = k.scalar("x");
  k.terminated("done");
  k.commit("done", k.ge(x, limit));
  return finished(k);
}

class Stepping : public OnEveryHost {
protected:
  struct Samples {
    Array<double> x;
    Array<bool> done;
  };
  [[nodiscard]] Samples samples(std::vector<double> values) const {
    return {must(session().copy<double>(values)), zeros<bool>({static_cast<std::int64_t>(values.size())})};
  }
  static std::vector<ModelStep> model(const Samples& s, double limit = 3) {
    return {BoundPlan{increment(), {{"x", s.x}}},
            BoundPlan{at_limit(), {{"x", s.x}, {"limit", limit}, {"done", s.done}}}};
  }
  static std::vector<double> values(const Array<double>& array) {
    return {array.span().begin(), array.span().end()};
  }
};
EAGLE_ON_EVERY_HOST(Stepping);

TEST_P(Stepping, AKernelWithoutAMaskLeavesFinishedSamplesAlone) {
  const Samples s = samples({0, 1, 2.5});
  const RunResult result = must(simulate(session(), model(s), {.max_steps = 10}));
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 3);
  EXPECT_EQ(values(s.x), (std::vector<double>{3, 3, 3.5}));
  EXPECT_EQ(result.report.kernels.size(), 2u);
}

TEST_P(Stepping, TheCallersCodeRunsOnceAStepInTheCallingThread) {
  const Samples s = samples({0, 1, 2.5});
  const auto caller = std::this_thread::get_id();
  std::vector<double> seen;
  std::vector<ModelStep> parts = model(s);
  parts.insert(parts.begin() + 1, opaque(
                                      [&] {
                                        EXPECT_EQ(std::this_thread::get_id(), caller);
                                        seen.push_back(s.x[0]);
                                        return Status();
                                      },
                                      {.reads = {{"x", s.x}}, .writes = {}}));
  const RunResult result = must(simulate(session(), parts, {.max_steps = 10}));
  EXPECT_EQ(result.report.steps, 3);
  EXPECT_EQ(seen, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values(s.x), (std::vector<double>{3, 3, 3.5}));
}

TEST_P(Stepping, AnErrorOfTheCallersCodeComesBackAsItWas) {
  const Samples s = samples({0, 1});
  std::vector<ModelStep> parts = model(s);
  int calls = 0;
  parts.emplace_back(opaque([&] { return ++calls == 2 ? Status(Reason::bad_value, "mine") : Status(); }, {}));
  const auto result = simulate(session(), parts, {.max_steps = 10});
  EXPECT_EQ(result.status().message(), "mine");
  EXPECT_EQ(calls, 2);
  expect_works();
}

TEST_P(Stepping, AnExceptionOfTheCallersCodeComesBackAsItWas) {
  const Samples s = samples({0, 1});
  std::vector<ModelStep> parts = model(s);
  parts.emplace_back(opaque([]() -> Status { throw std::runtime_error("mine"); }, {}));
  EXPECT_THROW(static_cast<void>(simulate(session(), parts, {.max_steps = 10})), std::runtime_error);
  expect_works();
}

TEST_P(Stepping, ACancelFromTheCallersCodeEndsTheRunAfterTheStep) {
  const Samples s = samples({0, 0.5});
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::vector<ModelStep> parts = model(s, 1e300);
  int calls = 0;
  parts.insert(parts.begin(), opaque(
                                  [&] {
                                    if (++calls == 5) *cancel = true;
                                    return Status();
                                  },
                                  {}));
  const RunResult result =
      must(simulate(session(), parts, {.max_steps = 1000, .timeout = {}, .cancel = cancel}));
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_EQ(result.report.steps, calls);
  EXPECT_EQ(s.x[0], static_cast<double>(calls));
  EXPECT_EQ(s.x[1], 0.5 + static_cast<double>(calls));
  EXPECT_LE(calls, 6);
}

TEST_P(Stepping, WhatIsCalledBetweenStepsMayEndTheRun) {
  const Samples s = samples({0, 0.5});
  SimulateOptions options{.max_steps = 1000};
  int calls = 0;
  options.between.push_back({[&] { return step::HostAnswer{{}, ++calls == 3}; }, 10});
  const RunResult result = must(simulate(session(), model(s, 1e300), options));
  EXPECT_EQ(result.status, RunStatus::finished);
  EXPECT_EQ(result.report.steps, 30);
  EXPECT_EQ(calls, 3);
}

TEST_P(Stepping, RecordsTheStartAndEverySoManySteps) {
  const Samples s = samples({0, 1, 2.5});
  const auto rows = zeros<double>({6, 3});
  const auto stops = zeros<std::int64_t>({3});
  SimulateOptions options{.max_steps = 5};
  options.record.planes.emplace_back("x", rows);
  options.stop_steps = stops;
  const RunResult result = must(simulate(session(), model(s), options));
  EXPECT_EQ(result.report.records, 4);
  EXPECT_EQ(std::vector<double>(rows.span().begin(), rows.span().begin() + 12),
            (std::vector<double>{0, 1, 2.5, 1, 2, 3.5, 2, 3, 3.5, 3, 3, 3.5}));
  EXPECT_EQ(std::vector<std::int64_t>(stops.span().begin(), stops.span().end()),
            (std::vector<std::int64_t>{3, 2, 1}));
}

TEST_P(Stepping, ProgressIsToldInTheCallingThreadAndMayEndTheRun) {
  const auto caller = std::this_thread::get_id();
  const Samples s = samples(std::vector<double>(2000, 0.0));
  SimulateOptions options{.max_steps = std::int64_t{1} << 60};
  int told = 0;
  std::int64_t last = 0;
  options.progress = [&](const RunProgress& progress) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_GE(progress.steps, last);
    last = progress.steps;
    return ++told < 3;
  };
  const RunResult result =
      must(simulate(session(), model(s, std::numeric_limits<double>::infinity()), options));
  EXPECT_EQ(result.status, RunStatus::cancelled);
  EXPECT_GE(result.report.steps, last);
  EXPECT_EQ(told, 3);
}

// As on machines of their own: each shard has its own arrays, and its result travels as bytes.
TEST_P(Stepping, ShardsComeToTheRunOfTheWhole) {
  constexpr std::int64_t n = 1000;
  KernelBuilder k("numbered");
  const auto x = k.state("x", {});
  k.terminated("done");
  k.declare_reduction("total", {}, kernel::ReduceOp::sum);
  const auto number = k.convert(k.add(k.sample_index(), k.n_samples()), kernel::Scalar::f64);
  const auto next = k.add(x, k.div(k.real(1), number));
  k.commit("x", next);
  k.commit("total", next);
  k.commit("done", k.ge(next, k.real(0.01)));
  const auto model = finished(k);
  const auto run = [&](const Array<double>& xs, const Array<double>& total, std::optional<Shard> shard) {
    const SimulateOptions options{.max_steps = 15, .shard = shard};
    const auto done = zeros<bool>({shard ? shard->count : n});
    return must(session().simulate({model, {{"x", xs}, {"done", done}, {"total", total}}}, options));
  };
  const auto whole = zeros<double>({n}), total = zeros<double>({1});
  const RunResult expected = run(whole, total, {});
  std::vector<RunResult> results;
  for (const Shard& shard : shards_of(n, 3)) {
    const auto mine = zeros<double>({shard.count}), part = zeros<double>({1});
    results.insert(results.begin(), must(result_from_bytes(to_bytes(run(mine, part, shard)))));
    for (std::int64_t i = 0; i < shard.count; ++i) ASSERT_EQ(mine[i], whole[shard.base + i]);
  }
  const RunResult found = must(combine_shards(results));
  EXPECT_EQ(found.status, RunStatus::max_steps);
  EXPECT_EQ(found.report.steps, expected.report.steps);
  EXPECT_EQ(found.report.finished, expected.report.finished);
  ASSERT_EQ(found.report.reductions.size(), 1u);
  double sum = 0;
  found.report.reductions[0].store(reinterpret_cast<std::byte*>(&sum));
  EXPECT_EQ(sum, total[0]);
  expect_refused(result_from_bytes("no result").status(), Reason::bad_message, {"9 bytes"});
}

TEST_P(Stepping, AStreamNodeIsRefusedWithTheWayOut) {
  const Samples s = samples({0});
  std::vector<ModelStep> parts = model(s);
  parts.emplace_back(opaque([] { return Status(); }, {}, HostTier::stream));
  expect_refused(simulate(session(), parts, {.max_steps = 10}).status(), Reason::bad_value,
                 {"a loop of your own"});
}

TEST_P(Stepping, AStepOfNothingIsRefused) {
  expect_refused(simulate(session(), std::vector<ModelStep>(), {.max_steps = 10}).status(),
                 Reason::malformed_graph, {"empty"});
}

}  // namespace
}  // namespace eagle::conformance
