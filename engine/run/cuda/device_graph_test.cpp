// Graphs of every kind of node, on the GPU of tests/fake_cuda and on the CPU, from the same bytes. Each test
// has a process of its own (ctest): what the driver pretends is read once.
#include "engine/run/cuda/device_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <random>
#include <thread>

#include "engine/run/cuda/testing.h"

namespace eagle::run::cuda {
namespace {

using graph::testing::Cells;
using graph::testing::Description;
using plane::DType;
using plane::View;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DeviceGraphTest : public testing::DeviceTest {};
using testing::Bytes;
using testing::put;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// ---- reductions

template <typename T>
std::vector<T> random_numbers(std::mt19937_64& random, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      const double scale = random() % 8 == 0 ? 1e9 : 1e-3;
      values.push_back(static_cast<T>((static_cast<double>(random() % 2'000'000) - 1e6) * scale));
    } else {
      values.push_back(static_cast<T>(random()));
    }
  }
  return values;
}

class Reductions : public DeviceGraphTest {
protected:
  template <typename T>
  void check(DType dtype, std::initializer_list<v1::ReduceOp> ops, bool compensated,
             std::vector<T> (*numbers)(std::mt19937_64&, std::int64_t) = random_numbers<T>) {
    std::mt19937_64 random(90'210);
    for (const std::int64_t samples : {1, 2, 3, 31, 255, 256, 257, 1000, 4095, 4097, 9001}) {
      for (const v1::ReduceOp op : ops) {
        SCOPED_TRACE(std::to_string(samples) + " samples, op " + std::to_string(op));
        Description d;
        const View x = d.array({3, samples}, dtype), out = d.array({3}, dtype);
        d.add(graph::testing::reduce("r", x, out, op, compensated));
        Bytes planes = testing::planes_of(d.message);
        put(planes, x, numbers(random, 3 * samples));
        expect_same(d.message, planes);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_F(Reductions, OfDoublesHaveTheBitsOfTheCpu) {
  check<double>(DType::f64, {v1::REDUCE_SUM, v1::REDUCE_MAX, v1::REDUCE_MIN}, false);
}
TEST_F(Reductions, OfSinglesHaveTheBitsOfTheCpu) {
  check<float>(DType::f32, {v1::REDUCE_SUM, v1::REDUCE_MAX, v1::REDUCE_MIN}, false);
}
TEST_F(Reductions, WithTheirErrorsHaveTheBitsOfTheCpu) {
  check<double>(DType::f64, {v1::REDUCE_SUM}, true);
  check<float>(DType::f32, {v1::REDUCE_SUM}, true);
}
TEST_F(Reductions, OfIntegersWrap) {
  check<std::int64_t>(DType::i64, {v1::REDUCE_SUM, v1::REDUCE_MAX, v1::REDUCE_MIN}, false);
  check<std::int32_t>(DType::i32, {v1::REDUCE_SUM, v1::REDUCE_MAX, v1::REDUCE_MIN}, false);
}
TEST_F(Reductions, OfBoolsLookAtWhatIsNotZero) {
  check<std::uint8_t>(DType::boolean, {v1::REDUCE_ALL, v1::REDUCE_ANY}, false,
                      [](std::mt19937_64& random, std::int64_t count) {
                        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count),
                                                        random() % 2 == 0 ? 7 : 0);
                        bytes[random() % bytes.size()] = 1;
                        return bytes;
                      });
}

TEST_F(Reductions, KeepZerosAndInfinitiesAndNotANumberAsTheCpuDoes) {
  const std::vector<std::vector<double>> rows = {
      {-0.0, -0.0, -0.0},
      {-0.0, 0.0, -0.0},
      {0.0, -0.0, 0.0},
      {infinity, 1, -infinity},
      {infinity, infinity, 1},
      {1, not_a_number, 2},
      {-infinity, -infinity, -infinity},
      {1e308, 1e308, -1e308},
  };
  for (const bool compensated : {false, true}) {
    for (const v1::ReduceOp op : {v1::REDUCE_SUM, v1::REDUCE_MAX, v1::REDUCE_MIN}) {
      if (compensated && op != v1::REDUCE_SUM) continue;
      Description d;
      const auto count = static_cast<std::int64_t>(rows.size());
      const View x = d.array({count, 3}), out = d.array({count});
      d.add(graph::testing::reduce("r", x, out, op, compensated));
      Bytes planes = testing::planes_of(d.message);
      std::vector<double> all;
      for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
      put(planes, x, all);
      SCOPED_TRACE("op " + std::to_string(op));
      expect_same(d.message, planes);
    }
  }
}

// ---- copies

TEST_F(DeviceGraphTest, CopiesBetweenAnyStridesMoveWhatTheCpuMoves) {
  constexpr std::uint64_t first_seed = 31'001;
  int copied = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    constexpr std::int64_t bytes = 256;
    Description d;
    View source = plane::testing::random_view(random, bytes), target = source;
    const View from = d.array({bytes}, DType::boolean), to = d.array({bytes}, DType::boolean);
    source.plane = from.plane;
    // The same shape, in another order of axes.
    std::vector<std::size_t> order(source.shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    target.plane = to.plane;
    std::int64_t stride = target.item_bytes;
    for (const std::size_t axis : order) {
      target.strides[axis] = stride;
      stride *= std::max<std::int64_t>(target.shape[axis], 1);
    }
    target.offset = static_cast<std::int64_t>(random() % 8);
    if (!plane::check(target, bytes).ok()) continue;
    d.add(graph::testing::copy("c", source, target));
    Bytes planes = testing::planes_of(d.message);
    std::vector<std::uint8_t> noise;
    for (std::int64_t i = 0; i < bytes; ++i) noise.push_back(static_cast<std::uint8_t>(random() % 0x3f));
    put(planes, from, noise);
    ++copied;
    expect_same(d.message, planes);
    if (HasFailure()) return;
  }
  EXPECT_GE(copied, 50);
}

TEST_F(DeviceGraphTest, CopiesConvertAsTheCpuDoes) {
  const std::vector<double> doubles = {0.0,           -0.0,   1.5,    -1.5,     2147483648.5,
                                       -2147483649.0, 1e300,  -1e300, infinity, -infinity,
                                       not_a_number,  1e-320, 0.1,    9.3e18};
  const std::vector<std::int64_t> integers = {0,
                                              1,
                                              -1,
                                              1ll << 53,
                                              (1ll << 53) + 1,
                                              -(1ll << 40) - 3,
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::numeric_limits<std::int64_t>::min()};
  for (const DType from : {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean}) {
    for (const DType to : {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean}) {
      SCOPED_TRACE(std::string(plane::name_of(from)) + " to " + std::string(plane::name_of(to)));
      const bool real = from == DType::f64 || from == DType::f32;
      const auto count = static_cast<std::int64_t>(real ? doubles.size() : integers.size());
      Description d;
      const View x = d.array({count}, from), y = d.array({count}, to);
      // Into doubles, which are compared with any NaN equal to any other.
      const View seen = d.array({count});
      d.add(graph::testing::copy("c", x, y)).add(graph::testing::copy("look", y, seen));
      Bytes planes = testing::planes_of(d.message);
      if (from == DType::f64) put(planes, x, doubles);
      if (from == DType::f32) put(planes, x, std::vector<float>(doubles.begin(), doubles.end()));
      if (from == DType::i64) put(planes, x, integers);
      if (from == DType::i32)
        put(planes, x,
            std::vector<std::int32_t>{0, 1, -1, 1 << 25, (1 << 25) + 1, -77,
                                      std::numeric_limits<std::int32_t>::max(),
                                      std::numeric_limits<std::int32_t>::min()});
      if (from == DType::boolean) put(planes, x, std::vector<std::uint8_t>{0, 1, 2, 255, 0, 128, 3, 0});
      Bytes cpu = planes;
      const auto built = engine().build(d.message, testing::memory_of(cpu));
      ASSERT_TRUE(built.ok()) << built.status().to_string();
      const auto device = DeviceGraph::build(modules(), (*built)->graph());
      ASSERT_TRUE(device.ok()) << device.status().to_string();
      ASSERT_TRUE(testing::run_on_device(**device, (*built)->graph(), planes, 1).ok());
      testing::run_on_cpu(**built, cpu, 1);
      if (to == DType::f32) cpu[y.plane] = planes[y.plane] = {};  // NaNs of singles; `seen` has the values
      EXPECT_EQ(testing::difference(cpu, planes), "");
    }
  }
}

TEST_F(DeviceGraphTest, AnIndexChoosesTheRowOnTheDevice) {
  for (const bool into : {false, true}) {
    for (const DType dtype : {DType::i64, DType::i32}) {
      for (const std::int64_t row : {-3, 0, 1, 2, 9}) {
        SCOPED_TRACE("row " + std::to_string(row));
        Description d;
        const View stack = d.array({3, 4}), one = d.array({4}), index = d.array({1}, dtype);
        v1::Node node = into ? graph::testing::copy("c", one, stack) : graph::testing::copy("c", stack, one);
        graph::testing::to_message("index", index, *node.mutable_copy()->mutable_index());
        d.add(node);
        Bytes planes = testing::planes_of(d.message);
        put(planes, stack, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
        put(planes, one, std::vector<double>{-1, -2, -3, -4});
        if (dtype == DType::i64) put(planes, index, std::vector<std::int64_t>{row});
        if (dtype == DType::i32)
          put(planes, index, std::vector<std::int32_t>{static_cast<std::int32_t>(row)});
        expect_same(d.message, planes);
      }
    }
  }
}

// ---- conditionals

// n <- n + step, while n is not `until`, at most `most` times; then x <- x + n.
struct Loop {
  Description d;
  View n = d.array({1}, DType::i64), until = d.array({1}, DType::i64);
  View seen = d.array({1}, DType::i32), x = d.array({5}), y = d.array({5});

  explicit Loop(std::int64_t most, bool skippable = false) {
    kernel::KernelBuilder counter("count");
    const auto step = counter.integer_param("step");
    const auto state = counter.state("n", {kernel::Scalar::i64});
    counter.commit("n", counter.add(state, step));
    const std::uint32_t count = d.kernel(counter), accumulate = d.accumulate_kernel();
    const std::vector<v1::Stage> body = {
        graph::testing::stage(graph::testing::launch("count", count, {{"step", std::int64_t{1}}, {"n", n}})),
        graph::testing::stage(graph::testing::launch("add", accumulate, {{"x", y}, {"y", x}}))};
    const Cells guard{n, until, false};
    d.add(skippable ? graph::testing::skippable("maybe", guard, body)
                    : graph::testing::repeat_while("relax", guard, body, most, seen));
  }
  [[nodiscard]] Bytes planes(std::int64_t from, std::int64_t to) const {
    Bytes all = testing::planes_of(d.message);
    put(all, n, std::vector<std::int64_t>{from});
    put(all, until, std::vector<std::int64_t>{to});
    put(all, y, std::vector<double>{1, 2, 3, 4, 5});
    return all;
  }
};

TEST_F(DeviceGraphTest, ALoopRunsUntilItsGuardOrItsCap) {
  for (const std::int64_t until : {0, 1, 4, 50}) {
    SCOPED_TRACE("until " + std::to_string(until));
    const Loop loop(7);
    Bytes planes = loop.planes(0, until);
    expect_same(loop.d.message, planes);
  }
}

TEST_F(DeviceGraphTest, ASkippableRunsOnceOrNotAtAll) {
  for (const std::int64_t until : {0, 1, 2}) {
    const Loop maybe(0, true);
    Bytes planes = maybe.planes(0, until);
    expect_same(maybe.d.message, planes, 3);
  }
}

TEST_F(DeviceGraphTest, AWholeGraphIsOneCudaGraphWithItsLoops) {
  const Loop loop(7);
  const auto built = loop.d.graph();
  const auto device = DeviceGraph::build(modules(), built);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  EXPECT_TRUE((*device)->is_whole());
  ASSERT_EQ((*device)->schedule().size(), 1u);
  EXPECT_EQ((*device)->schedule()[0].kind, DeviceStage::Kind::cuda_graph);
  EXPECT_EQ((*device)->schedule()[0].nodes, 5u);  // two guards, the conditional, two kernels
}

// A driver of CUDA 12.1 has no conditional nodes.
TEST_F(DeviceGraphTest, AnOldDriversLoopsAreTheHostsAndTheScheduleSaysSo) {
  EAGLE_PRETEND_OR_SKIP("version=12010");
  for (const std::int64_t until : {0, 4, 50}) {
    const Loop loop(7);
    Bytes planes = loop.planes(0, until);
    expect_same(loop.d.message, planes, 2);
  }
  const Loop loop(7);
  const auto device = DeviceGraph::build(modules(), loop.d.graph());
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  EXPECT_FALSE((*device)->is_whole());
  ASSERT_EQ((*device)->schedule().size(), 2u);
  EXPECT_EQ((*device)->schedule()[0].kind, DeviceStage::Kind::host_loop);
  EXPECT_THAT((*device)->schedule()[0].text, HasSubstr("'relax' repeats between host checks"));
  EXPECT_THAT((*device)->schedule()[0].text, HasSubstr("driver for CUDA 12.1"));
}

// Others have the thread meanwhile.
TEST_F(DeviceGraphTest, ALoopOfTheHostGivesWayNowAndThen) {
  EAGLE_PRETEND_OR_SKIP("version=12010");
  const Loop loop(10'000);
  const auto device = DeviceGraph::build(modules(), loop.d.graph());
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, 3'000)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  int turns = 1;
  auto next = (*device)->advance_some();
  for (; next.ok() && *next == DeviceGraph::Next::again; ++turns) next = (*device)->advance_some();
  ASSERT_TRUE(next.ok()) << next.status().to_string();
  EXPECT_EQ(*next, DeviceGraph::Next::done);
  EXPECT_GT(turns, 1);
  EXPECT_THAT((*device)->iterations(), ElementsAre(3'000));
}

TEST_F(DeviceGraphTest, AnOldDriversSkippablesAreLookedAtByTheHost) {
  EAGLE_PRETEND_OR_SKIP("version=12010");
  for (const std::int64_t until : {0, 1}) {
    const Loop maybe(0, true);
    Bytes planes = maybe.planes(0, until);
    expect_same(maybe.d.message, planes, 2);
  }
}

TEST_F(DeviceGraphTest, ACancelEndsALoopOfTheDevice) {
  EAGLE_PRETEND_OR_SKIP("");  // where nothing has begun by then
  const Loop loop(1'000'000);
  const auto graph = loop.d.graph();
  const auto device = DeviceGraph::build(modules(), graph);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, -1)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->cancel().ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_THAT((*device)->iterations(), ElementsAre(0));
  // And no later one.
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, 3)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_THAT((*device)->iterations(), ElementsAre(3));
}

// ---- nodes of the client

TEST_F(DeviceGraphTest, HostNodesAreCalledBetweenCudaGraphsAndInLoops) {
  for (const bool in_loop : {false, true}) {
    Description d;
    const View x = d.array({4}), y = d.array({4}), n = d.array({1}, DType::i64);
    const std::uint32_t accumulate = d.accumulate_kernel();
    const auto before = graph::testing::launch("before", accumulate, {{"x", x}, {"y", y}});
    const auto call = graph::testing::host("log", {{"y", y}}, {{"x", x}}, 5);
    const auto after = graph::testing::launch("after", accumulate, {{"x", x}, {"y", y}});
    if (in_loop) {
      d.add(graph::testing::repeat_while(
          "loop", {n},
          {graph::testing::stage(before), graph::testing::stage(call), graph::testing::stage(after)}, 3));
    } else {
      d.add(before).add(call).add(after);
    }
    Bytes planes = testing::planes_of(d.message);
    put(planes, x, std::vector<double>{1, 2, 3, 4});
    put(planes, n, std::vector<std::int64_t>{1});
    expect_same(d.message, planes, 2);
    const auto device = DeviceGraph::build(modules(), d.graph());
    ASSERT_TRUE(device.ok());
    const auto& schedule = (*device)->schedule();
    const auto says = [&](DeviceStage::Kind kind) {
      return std::any_of(schedule.begin(), schedule.end(),
                         [&](const DeviceStage& stage) { return stage.kind == kind; });
    };
    EXPECT_TRUE(says(DeviceStage::Kind::host_call));
    EXPECT_EQ(says(DeviceStage::Kind::host_loop), in_loop);
  }
}

TEST_F(DeviceGraphTest, AGraphThatCallsTheHostIsAdvancedAndNotWaitedFor) {
  Description d;
  const View x = d.array({4});
  d.add(graph::testing::host("log", {{"x", x}}, {}, 5));
  const auto device = DeviceGraph::build(modules(), d.graph());
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  EXPECT_THAT((*device)->wait().status().message(), HasSubstr("calls the host"));
  EXPECT_THAT((*device)->launch(1).message(), HasSubstr("advance that launch to its end first"));
}

// ---- everything together

// Graphs of launches, reductions, copies, groups, nested conditionals with counters, and the client's nodes;
// the device's kernels run in any order that their parents allow.
TEST_F(DeviceGraphTest, RandomGraphsGiveTheBitsOfTheCpuInEveryLegalOrder) {
  constexpr std::uint64_t first_seed = 500'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 1'000 : 20'000;
  std::uint64_t ran = 0, whole = 0, loops = 0;
  for (std::uint64_t seed = first_seed; ran < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto [d, planes] = testing::RandomGraph(random);
    const auto built = engine().build(d.message, testing::memory_of(planes));
    if (!built.ok()) continue;  // it races
    ++ran;
    const auto device = DeviceGraph::build(modules(), (*built)->graph());
    ASSERT_TRUE(device.ok()) << device.status().to_string();
    whole += (*device)->is_whole() ? 1 : 0;
    loops += (*device)->is_whole() && !(*device)->iterations().empty() ? 1 : 0;
    expect_same(**built, **device, planes, 1 + static_cast<std::int64_t>(seed % 2));
    if (HasFailure()) return;
  }
  std::printf("%d graphs, %d of them one CUDA graph, %d with loops on the device\n", static_cast<int>(ran),
              static_cast<int>(whole), static_cast<int>(loops));
  EXPECT_GE(whole, ran / 10);
  EXPECT_GE(loops, 10u);
}

// ---- changes

TEST_F(DeviceGraphTest, NewNumbersHoldFromTheNextLaunchOnAlsoInBodies) {
  const Loop loop(100);
  const auto device = DeviceGraph::build(modules(), loop.d.graph());
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, 12)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->update({{{"", std::nullopt, "count.step"}, graph::Number{std::int64_t{4}}}}).ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_THAT((*device)->iterations(), ElementsAre(12));  // launched before the change
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, 12)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_THAT((*device)->iterations(), ElementsAre(3));
}

TEST_F(DeviceGraphTest, AnUpdateThatTheDeviceHasNoMemoryForChangesNothing) {
  EAGLE_PRETEND_OR_SKIP("fail_instantiate=2");
  const Loop loop(100);
  const auto device = DeviceGraph::build(modules(), loop.d.graph());
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  const auto iterations_after = [&] {
    EXPECT_TRUE(testing::write_all(**device, loop.planes(0, 12)).ok());
    EXPECT_TRUE((*device)->launch(1).ok());
    const auto counts = (*device)->wait();
    EXPECT_TRUE(counts.ok()) << counts.status().to_string();
    return (*device)->iterations();
  };
  const std::vector<graph::ParamUpdate> four = {
      {{"", std::nullopt, "count.step"}, graph::Number{std::int64_t{4}}}};
  const DeviceGraph::Params before = (*device)->params();
  EXPECT_EQ(before.size(), 1u);
  EXPECT_EQ((*device)->update(four).reason(), Reason::out_of_memory);
  EXPECT_EQ((*device)->params(), before);
  EXPECT_THAT(iterations_after(), ElementsAre(12));
  ASSERT_TRUE((*device)->update(four).ok());
  EXPECT_THAT(iterations_after(), ElementsAre(3));
}

TEST_F(DeviceGraphTest, ARefusedUpdateChangesNothing) {
  const Loop loop(100);
  const auto device = DeviceGraph::build(modules(), loop.d.graph());
  ASSERT_TRUE(device.ok());
  const Status refused =
      (*device)->update({{{"", std::nullopt, "count.step"}, graph::Number{std::int64_t{4}}},
                         {{"", std::nullopt, "nobody"}, graph::Number{std::int64_t{4}}}});
  EXPECT_EQ(refused.reason(), Reason::unknown_name);
  ASSERT_TRUE(testing::write_all(**device, loop.planes(0, 12)).ok());
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_THAT((*device)->iterations(), ElementsAre(12));
}

TEST_F(DeviceGraphTest, WhatAGraphMakesForItselfIsPaidForAsLongAsItIs) {
  Description d;
  const View x = d.array({4}), y = d.array({4}), z = d.array({40}), w = d.array({40});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  d.add(graph::testing::copy("copy", z, w));
  std::uint64_t paid = 0;
  std::vector<std::string> asked;
  LoweringOptions options;
  options.account = [&](std::uint64_t bytes, std::string_view what) -> StatusOr<std::shared_ptr<const void>> {
    asked.push_back(std::to_string(bytes) + " for " + std::string(what));
    if (paid + bytes > 2000) return Status(Reason::quota, "it is too much");
    paid += bytes;
    return std::shared_ptr<const void>(&paid, [&paid, bytes](const void*) { paid -= bytes; });
  };
  {
    const auto device = DeviceGraph::build(modules(), d.graph(), {}, options);
    ASSERT_TRUE(device.ok()) << device.status().to_string();
    const std::string small = "256 for scratch planes of a graph",
                      large = "512 for scratch planes of a graph";
    EXPECT_THAT(asked, ElementsAre(small, small, large, large));
    EXPECT_EQ((*device)->own_bytes(), 1536u);
    EXPECT_EQ(paid, 1536u);
    const auto more = DeviceGraph::build(modules(), d.graph(), {}, options);
    EXPECT_EQ(more.status().reason(), Reason::quota);
    EXPECT_EQ(paid, 1536u);
  }
  EXPECT_EQ(paid, 0u);
}

TEST_F(DeviceGraphTest, APlaneThatIsTooSmallIsRefusedWithBothSizes) {
  Description d;
  const View x = d.array({4}), y = d.array({4});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  auto small = DeviceMemory::create(modules().device(), 16);
  ASSERT_TRUE(small.ok());
  const auto shared = std::make_shared<const DeviceMemory>(*std::move(small));
  const auto refused = DeviceGraph::build(modules(), d.graph(), {shared, nullptr});
  EXPECT_THAT(refused.status().message(), HasSubstr("plane 'array0' has 16 bytes; expected at least 32"));
  const auto device = DeviceGraph::build(modules(), d.graph());
  ASSERT_TRUE(device.ok());
  const auto again = (*device)->rebind(modules(), d.graph(), {nullptr, shared});
  EXPECT_THAT(again.status().message(), HasSubstr("plane 'array1' has 16 bytes; expected at least 32"));
}

// More than are enqueued at once.
TEST_F(DeviceGraphTest, ManyLaunchesAreOneAfterTheOther) {
  Description d;
  const View x = d.array({4}), y = d.array({4});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  Bytes planes = testing::planes_of(d.message);
  put(planes, x, std::vector<double>{1, 2, 3, 4});
  expect_same(d.message, planes, 700);
}

TEST_F(DeviceGraphTest, ACancelledLaunchSaysHowManyReplaysWereWhole) {
  Description d;
  const View x = d.array({4}), y = d.array({4});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  const auto device = DeviceGraph::build(modules(), d.graph());
  ASSERT_TRUE(device.ok());
  auto control = std::make_shared<Control>();
  control->cancel = true;
  ASSERT_TRUE((*device)->launch(1'000, control).ok());
  const auto stopped = (*device)->advance();
  EXPECT_EQ(stopped.status().reason(), Reason::cancelled);
  EXPECT_THAT(stopped.status().message(), HasSubstr("; 1 of 1000 replays were whole"));
}

TEST_F(DeviceGraphTest, GraphsAreMadeAndLaunchedByTwoThreadsAtOnce) {
  const Loop loop(100);
  const auto graph = loop.d.graph();
  DeviceModules& shared = modules();
  std::atomic<int> right = 0;
  const auto work = [&](std::int64_t until) {
    for (int again = 0; again < 10; ++again) {
      const auto device = DeviceGraph::build(shared, graph);
      const bool ran = device.ok() && testing::write_all(**device, loop.planes(0, until)).ok() &&
                       (*device)->launch(1).ok() && (*device)->wait().ok();
      right += ran && (*device)->iterations() == std::vector<std::int64_t>{until} ? 1 : 0;
    }
  };
  std::thread other([&] { work(5); });
  work(9);
  other.join();
  EXPECT_EQ(right, 20);
}

// ---- what goes wrong

TEST_F(DeviceGraphTest, AFaultIsToldByTheLaunchAndEveryLaterOne) {
  EAGLE_PRETEND_OR_SKIP("fail_launch=2");
  Description d;
  const View x = d.array({4}), y = d.array({4});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  const auto device = DeviceGraph::build(modules(), d.graph());
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE((*device)->launch(3).ok());
  EXPECT_THAT((*device)->wait().status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT((*device)->launch(1).message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(DeviceGraphTest, MemoryThatRunsOutIsRefusedWithBothSizesAndNothingIsLost) {
  EAGLE_PRETEND_OR_SKIP("bytes=100000");
  Description d;
  const View x = d.array({2, 1000}), out = d.array({2});
  d.add(graph::testing::reduce("r", x, out, v1::REDUCE_SUM, true));
  std::vector<DeviceMemory> taken;
  Status refused;
  while (refused.ok()) {
    refused = DeviceGraph::build(modules(), d.graph()).status();
    if (!refused.ok()) break;
    auto more = DeviceMemory::create(modules().device(), 500);
    ASSERT_TRUE(more.ok()) << more.status().to_string();
    taken.push_back(*std::move(more));
  }
  EXPECT_GE(taken.size(), 10u);
  EXPECT_EQ(refused.reason(), Reason::out_of_memory);
  EXPECT_THAT(refused.message(), HasSubstr("bytes free of 100000"));
  taken.clear();
  EXPECT_TRUE(DeviceGraph::build(modules(), d.graph()).ok());
}

}  // namespace
}  // namespace eagle::run::cuda
