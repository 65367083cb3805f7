// Shards: where they are cut, and what is made of their results.
#include "engine/step/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/kernel/random_kernel.h"
#include "engine/run/testing.h"
#include "engine/step/simulation.h"

namespace eagle::step {
namespace {

using eagle::testing::RunScene;
using kernel::KernelBuilder;
using kernel::ReduceOp;
using kernel::Scalar;

TEST(ShardsOf, CoverTheBatchAndAreCutBetweenLeaves) {
  for (const std::int64_t n : {0, 1, 255, 256, 257, 1000, 100'003}) {
    for (const std::int64_t parts : {1, 2, 3, 7, 1000}) {
      SCOPED_TRACE(::testing::Message() << n << " in " << parts);
      std::int64_t next = 0;
      const std::vector<Shard> shards = shards_of(n, parts);
      for (const Shard& shard : shards) {
        EXPECT_EQ(shard.base, next);
        EXPECT_EQ(shard.base % 256, 0);
        EXPECT_EQ(shard.of, n);
        EXPECT_TRUE(shard.count > 0 || n == 0);
        next += shard.count;
      }
      EXPECT_EQ(next, n);
      EXPECT_LE(static_cast<std::int64_t>(shards.size()), parts);
      EXPECT_GE(static_cast<std::int64_t>(shards.size()), std::min(parts, (n + 255) / 256));
    }
  }
}

// A sample takes its number's share of noise each step and ends at its limit; every step its energy is added
// up.
kernel::Kernel numbered() {
  KernelBuilder k("numbered");
  const auto x = k.state("x", {});
  const auto t = k.state("t", {});
  const auto limit = k.scalar("limit");
  k.terminated("done");
  k.declare_reduction("total", {}, ReduceOp::sum);
  k.declare_reduction("most", {}, ReduceOp::max);
  k.accumulator("seen", {Scalar::i64});
  const auto number = k.convert(k.sample_index(), Scalar::f64);
  const auto of = k.convert(k.n_samples(), Scalar::f64);
  const auto next = k.add(k.mul(x, k.real(0.75)), k.div(k.add(number, k.real(1)), of));
  k.commit("x", next);
  k.commit("total", next);
  k.commit("most", next);
  k.accum_add("seen", k.integer(1), {k.sample_index()});
  const auto later = k.add(t, k.real(1));
  k.commit("t", later);
  k.commit("done", k.ge(later, limit));
  return eagle::testing::finish(k);
}

struct Samples {
  std::vector<double> x, t, limit, total{-1}, most{-1};
  std::vector<std::uint8_t> done;
  std::vector<std::int64_t> seen, stop;

  [[nodiscard]] Samples part(const Shard& shard) const {
    const auto cut = [&](const auto& all) {
      return std::decay_t<decltype(all)>(all.begin() + shard.base, all.begin() + shard.base + shard.count);
    };
    return {cut(x), cut(t), cut(limit), {-1}, {-1}, cut(done), seen, cut(stop)};
  }
};

Samples random_samples(std::int64_t n, kernel::Random& random) {
  Samples samples;
  for (std::int64_t i = 0; i < n; ++i) {
    samples.x.push_back(static_cast<double>(random.below(1000)) / 7 - 60);
    samples.limit.push_back(1 + static_cast<double>(random.below(random.chance(50) ? 5 : 90)));
    samples.done.push_back(random.chance(10) ? 1 : 0);
  }
  samples.t.resize(samples.x.size());
  samples.seen.resize(samples.x.size());
  samples.stop.resize(samples.x.size());
  return samples;
}

StatusOr<RunResult> run(Engine& engine, Samples& samples, std::int64_t max_steps,
                        const std::optional<Shard>& shard) {
  RunScene scene;
  scene.message.set_max_steps(max_steps);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(numbered()),
                       {{"x", scene.array(samples.x)},
                        {"t", scene.array(samples.t)},
                        {"limit", scene.array(samples.limit)},
                        {"done", scene.array(samples.done)},
                        {"total", scene.array(samples.total)},
                        {"most", scene.array(samples.most)},
                        {"seen", scene.array(samples.seen)}});
  set_view(*scene.message.mutable_stop_steps(), scene.array(samples.stop));
  if (shard) {
    scene.message.mutable_shard()->set_base(shard->base);
    scene.message.mutable_shard()->set_count(shard->count);
    scene.message.mutable_shard()->set_of(shard->of);
  }
  EAGLE_ASSIGN_OR_RETURN(const auto simulation, engine.simulate(scene.message, scene.memory, nullptr));
  while (simulation->advance() != Simulation::Next::done) {
  }
  return simulation->result();
}

template <typename T>
void expect_part(const std::vector<T>& all, const std::vector<T>& part, const Shard& shard) {
  EXPECT_TRUE(part.empty() || std::memcmp(all.data() + shard.base, part.data(), part.size() * sizeof(T)) == 0)
      << "samples from " << shard.base;
}

double value_of(const ShardReduction& reduction) {
  double value = 0;
  reduction.store(reinterpret_cast<std::byte*>(&value));
  return value;
}

// Cuts at random leaves, in random order.
std::vector<Shard> random_cuts(std::int64_t n, kernel::Random& random) {
  std::vector<std::int64_t> cuts{0, n};
  for (std::uint64_t i = random.below(6); i > 0; --i)
    cuts.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n) / 256 + 1)) * 256);
  std::sort(cuts.begin(), cuts.end());
  std::vector<Shard> shards;
  for (std::size_t i = 1; i < cuts.size(); ++i) shards.push_back({cuts[i - 1], cuts[i] - cuts[i - 1], n});
  for (std::size_t i = shards.size(); i > 1; --i) std::swap(shards[i - 1], shards[random.below(i)]);
  return shards;
}

TEST(ShardsOfARun, GiveTheBitsAndTheResultOfTheWhole) {
  constexpr std::uint64_t first_seed = 20'261'130;
  for (std::uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    kernel::Random random(seed);
    auto engine = eagle::testing::make_engine(1 + static_cast<int>(random.below(3)));
    const auto n = static_cast<std::int64_t>(random.below(6000));
    const auto cap = static_cast<std::int64_t>(random.below(120));
    const Samples start = random_samples(n, random);
    Samples whole = start;
    const StatusOr<RunResult> expected = run(*engine, whole, cap, {});
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();
    std::vector<RunResult> results;
    std::vector<std::int64_t> seen(start.x.size());
    for (const Shard& shard : random_cuts(n, random)) {
      Samples mine = start.part(shard);
      const StatusOr<RunResult> result = run(*engine, mine, cap, shard);
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      results.push_back(*result);
      expect_part(whole.x, mine.x, shard);
      expect_part(whole.t, mine.t, shard);
      expect_part(whole.done, mine.done, shard);
      expect_part(whole.stop, mine.stop, shard);
      for (std::size_t i = 0; i < seen.size(); ++i) seen[i] += mine.seen[i];
    }
    EXPECT_EQ(seen, whole.seen);
    const StatusOr<RunResult> found = combine(results);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->status, expected->status);
    EXPECT_EQ(found->report.steps, expected->report.steps);
    EXPECT_EQ(found->report.finished, expected->report.finished);
    EXPECT_EQ(found->report.samples, n);
    EXPECT_EQ(found->report.ranges, expected->report.ranges);
    ASSERT_EQ(found->report.reductions.size(), 2u);
    if (expected->report.steps == 0) {
      EXPECT_TRUE(found->report.reductions[0].nodes.empty());
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value_of(found->report.reductions[0])),
              std::bit_cast<std::uint64_t>(whole.total[0]));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value_of(found->report.reductions[1])),
              std::bit_cast<std::uint64_t>(whole.most[0]));
  }
}

// ---- refusals

void expect_refused(const Status& status, const std::string& part) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(part), std::string::npos) << status.to_string();
}

class ShardRefusals : public ::testing::Test {
protected:
  Status refusal(const Shard& shard, std::int64_t planes) {
    kernel::Random random(7);
    Samples samples = random_samples(planes, random);
    samples.seen.resize(1);
    return run(*engine_, samples, 10, shard).status();
  }
  std::vector<RunResult> results(std::initializer_list<Shard> shards, std::int64_t cap = 10) {
    kernel::Random random(7);
    const Samples all = random_samples(1000, random);
    std::vector<RunResult> found;
    for (const Shard& shard : shards) {
      Samples mine = all.part(shard);
      found.push_back(*run(*engine_, mine, cap, shard));
    }
    return found;
  }
  std::unique_ptr<Engine> engine_ = eagle::testing::make_engine(1);
};

TEST_F(ShardRefusals, NameWhatIsWrongWithTheNumbers) {
  expect_refused(refusal({-1, 10, 20}, 10), "(-1, 10, 20)");
  expect_refused(refusal({11, 10, 20}, 10), "(base, count, n)");
  expect_refused(refusal({0, 10, std::int64_t{-1} << 63}, 10), "(base, count, n)");
  expect_refused(refusal({256, 20, 1000}, 10), "x[base:base + count]");
}

TEST_F(ShardRefusals, ReductionsAreCutBetweenLeaves) {
  expect_refused(refusal({100, 156, 1000}, 156), "multiples");
  expect_refused(refusal({0, 100, 1000}, 100), "'total'");
  EXPECT_TRUE(refusal({768, 232, 1000}, 232).ok()) << "the end of the batch need not be";
}

TEST_F(ShardRefusals, ResultsMustMakeUpTheBatch) {
  const std::vector<RunResult> all = results({{0, 256, 1000}, {256, 256, 1000}, {512, 488, 1000}});
  EXPECT_TRUE(combine(all).ok());
  expect_refused(combine({}).status(), "none");
  expect_refused(combine(std::span(all).first(2)).status(), "[512, 1000) are in no shard");
  expect_refused(combine(std::span(all).subspan(1)).status(), "[0, 256) are in no shard");
  const std::vector<RunResult> twice{all[0], all[1], all[1], all[2]};
  expect_refused(combine(twice).status(), "two shards");
  const std::vector<RunResult> other{all[0], results({{256, 744, 1000}}, 20)[0]};
  expect_refused(combine(other).status(), "max_steps");
  std::vector<RunResult> none = all;
  none[1].report.shard.reset();
  expect_refused(combine(none).status(), "shard=");
  std::vector<RunResult> stranger = all;
  stranger[1].report.kernels = {"another"};
  expect_refused(combine(stranger).status(), "another model");
}

TEST_F(ShardRefusals, ReductionsThatAreNotOfTheirSamples) {
  const std::vector<RunResult> good = results({{0, 512, 1000}, {512, 488, 1000}}, 1);
  const auto with = [&](run::Partial::Node node) {
    std::vector<RunResult> bad = good;
    bad[0].report.reductions[0].nodes = {node};
    return combine(bad).status();
  };
  const run::Cell value = good[0].report.reductions[0].nodes[0].value;
  EXPECT_TRUE(with({0, 1, value}).ok());
  expect_refused(with({0, 0, value}), "leave samples out");
  expect_refused(with({0, 2, value}), "not those of its samples");
  expect_refused(with({1, 1, value}), "not those of its samples");
  expect_refused(with({0, 63, value}), "not those of its samples");
  expect_refused(with({0, -1, value}), "not those of its samples");
}

TEST_F(ShardRefusals, SamplesThatReadWhatOthersWrote) {
  KernelBuilder writes("writes");
  const auto x = writes.state("x", {});
  writes.terminated("done");
  const auto next = writes.add(x, writes.real(1));
  writes.commit("x", next);
  writes.commit("done", writes.ge(next, writes.real(1e9)));
  KernelBuilder reads("reads");
  const auto y = reads.state("y", {});
  reads.table("all", {});
  reads.commit("y", reads.add(y, reads.gather("all", {reads.integer(0)})));
  std::vector<double> xs(8), ys(8);
  std::vector<std::uint8_t> done(8);
  RunScene scene;
  scene.message.set_max_steps(5);
  const eagle::testing::Array plane = scene.array(xs);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::finish(writes)),
                       {{"x", plane}, {"done", scene.array(done)}});
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::finish(reads)),
                       {{"y", scene.array(ys)}, {"all", plane}});
  scene.message.mutable_shard()->set_count(8);
  scene.message.mutable_shard()->set_of(16);
  const Status status = engine_->simulate(scene.message, scene.memory, nullptr).status();
  expect_refused(status, "'all' of kernel 'reads'");
  expect_refused(status, "run the whole batch in one");
}

TEST_F(ShardRefusals, AKernelThatReadsAnEarlierReduction) {
  KernelBuilder sums("sums");
  const auto x = sums.state("x", {});
  sums.terminated("done");
  sums.declare_reduction("total", {}, ReduceOp::sum);
  sums.commit("total", x);
  KernelBuilder reads("reads");
  const auto y = reads.state("y", {});
  reads.table("all", {});
  reads.commit("y", reads.add(y, reads.gather("all", {reads.integer(0)})));
  std::vector<double> xs(8), ys(8), total(1);
  std::vector<std::uint8_t> done(8);
  RunScene scene;
  scene.message.set_max_steps(5);
  const eagle::testing::Array plane = scene.array(total);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::finish(sums)),
                       {{"x", scene.array(xs)}, {"done", scene.array(done)}, {"total", plane}});
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(eagle::testing::finish(reads)),
                       {{"y", scene.array(ys)}, {"all", plane}});
  scene.message.mutable_shard()->set_count(8);
  scene.message.mutable_shard()->set_of(16);
  const Status status = engine_->simulate(scene.message, scene.memory, nullptr).status();
  expect_refused(status, "'total' of kernel 'sums' and 'all' of kernel 'reads'");
  expect_refused(status, "cut the model in two: what makes 'total' of kernel 'sums' in shards first");
}

TEST_F(ShardRefusals, CodeOfTheCallersThatLooksAtAReduction) {
  RunScene scene;
  kernel::Random random(7);
  Samples samples = random_samples(8, random);
  scene.message.set_max_steps(5);
  const eagle::testing::Array total = scene.array(samples.total);
  eagle::testing::fill(*scene.message.add_model(), scene.kernel(numbered()),
                       {{"x", scene.array(samples.x)},
                        {"t", scene.array(samples.t)},
                        {"limit", scene.array(samples.limit)},
                        {"done", scene.array(samples.done)},
                        {"total", total},
                        {"most", scene.array(samples.most)},
                        {"seen", scene.array(samples.seen)}});
  v1::HostStep& host = *scene.message.add_host_steps();
  host.set_before(1);
  host.set_every(1);
  host.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
  eagle::testing::set_cell(*host.mutable_node()->add_reads(), "energy", total, 0);
  scene.message.mutable_shard()->set_count(8);
  scene.message.mutable_shard()->set_of(8);
  const Status status = engine_->simulate(scene.message, scene.memory, nullptr).status();
  expect_refused(status, "'energy', which is 'total' of kernel 'numbered'");
}

TEST_F(ShardRefusals, RealsThatAreAddedUpOverSeveralSteps) {
  KernelBuilder k("adding");
  const auto x = k.state("x", {});
  k.accumulator("sum", {});
  k.terminated("done");
  k.commit("x", k.add(x, k.real(1)));
  k.accum_add("sum", x, {k.integer(0)});
  k.commit("done", k.ge(x, k.real(3)));
  const kernel::Kernel kernel = eagle::testing::finish(k);
  for (const std::int64_t cap : {1, 2}) {
    std::vector<double> xs(8), sum(1);
    std::vector<std::uint8_t> done(8);
    RunScene scene;
    scene.message.set_max_steps(cap);
    eagle::testing::fill(*scene.message.add_model(), scene.kernel(kernel),
                         {{"x", scene.array(xs)}, {"sum", scene.array(sum)}, {"done", scene.array(done)}});
    scene.message.mutable_shard()->set_count(8);
    scene.message.mutable_shard()->set_of(16);
    const Status status = engine_->simulate(scene.message, scene.memory, nullptr).status();
    if (cap == 1) {
      EXPECT_TRUE(status.ok()) << status.to_string();
    } else {
      expect_refused(status, "pass the accumulator on from shard to shard");
    }
  }
}

}  // namespace
}  // namespace eagle::step
