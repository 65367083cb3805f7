// Graphs of the GPU of tests/fake_cuda over other planes: changed in place, all or nothing, or built anew.
// Each test has a process of its own (ctest): what the driver pretends is read once.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/graph_backend.h"
#include "engine/run/cuda/testing.h"

namespace eagle::run::cuda {
namespace {

using graph::testing::Description;
using plane::DType;
using plane::View;
using testing::Bytes;
using ::testing::ElementsAre;
using testing::pretend;
using testing::put;

// y <- a*x + y, with the number of `a` in the description.
std::uint32_t scaled_kernel(Description& d) {
  kernel::KernelBuilder builder("scaled");
  const auto a = builder.param("a");
  const auto x = builder.scalar("x");
  const auto y = builder.state("y", {});
  builder.commit("y", builder.add(builder.mul(a, x), y));
  return d.kernel(builder);
}

v1::Node scaled(std::uint32_t kernel, const std::string& name, const View& x, const View& y) {
  return graph::testing::launch(name, kernel, {{"a", 2.0}, {"x", x}, {"y", y}});
}

std::vector<graph::ParamUpdate> number(const std::string& name, graph::Number value) {
  return {{{"", std::nullopt, name}, value}};
}

class DeviceRebindTest : public testing::DeviceTest {
protected:
  using Memory = std::vector<std::shared_ptr<const DeviceMemory>>;

  std::shared_ptr<const Devices::Unit> unit() {
    if (devices_ == nullptr) devices_ = std::make_unique<Devices>(engine().compiler());
    auto found = devices_->find("cuda:0");
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return *found;
  }
  Memory memory(const Bytes& planes) {
    Memory all;
    for (const auto& bytes : planes) {
      auto made = DeviceMemory::create(unit()->device, bytes.size());
      EXPECT_TRUE(made.ok() && made->write(bytes).ok());
      all.push_back(std::make_shared<const DeviceMemory>(*std::move(made)));
    }
    return all;
  }
  PlanesOnDevice on(Memory memory, Account account = {}) {
    return {unit(), std::move(memory), std::move(account)};
  }
  std::unique_ptr<BuiltGraph> build(const Description& d, const Memory& memory) {
    auto built = engine().build(d.message, on(memory));
    EXPECT_TRUE(built.ok()) << built.status().to_string();
    return built.ok() ? *std::move(built) : nullptr;
  }
  // The client's nodes play over the planes, brought over and back.
  static Status launch(BuiltGraph& built, const Memory& memory, std::int64_t count = 1) {
    Replay replay(built, count, nullptr);
    while (true) {
      EAGLE_ASSIGN_OR_RETURN(const Replay::Next next, replay.advance());
      if (next == Replay::Next::done) return {};
      if (next != Replay::Next::host_call) continue;
      Bytes planes = read(memory);
      testing::play_host(testing::host_of(built.graph(), replay.call()), planes);
      for (std::size_t i = 0; i < memory.size(); ++i) EAGLE_RETURN_IF_ERROR(memory[i]->write(planes[i]));
    }
  }
  static Bytes read(const Memory& memory) {
    Bytes planes;
    for (const auto& one : memory) {
      planes.emplace_back(one->bytes());
      EXPECT_TRUE(one->read(planes.back()).ok());
    }
    return planes;
  }
  static std::vector<double> doubles(const std::shared_ptr<const DeviceMemory>& memory) {
    std::vector<double> found(memory->bytes() / 8);
    EXPECT_TRUE(memory->read(std::as_writable_bytes(std::span(found))).ok());
    return found;
  }

private:
  std::unique_ptr<Devices> devices_;
};

// Two nodes one after the other over x, y and z.
struct Chain {
  Description d;
  View x = d.array({4}), y = d.array({4}), z = d.array({4});
  Chain() {
    const std::uint32_t kernel = scaled_kernel(d);
    d.add(scaled(kernel, "first", x, y)).add(scaled(kernel, "second", y, z));
  }
  [[nodiscard]] Bytes planes(double scale) const {
    Bytes all = testing::planes_of(d.message);
    put(all, x, std::vector<double>{scale, 2 * scale, 3 * scale, 4 * scale});
    return all;
  }
};

// Another CUDA graph would find no memory.
TEST_F(DeviceRebindTest, TheSameCudaGraphRunsOverOtherPlanesAndKeepsItsNumbers) {
  pretend("fail_instantiate=2");
  const Chain chain;
  Memory old = memory(chain.planes(1));
  const Memory other = memory(chain.planes(10));
  auto built = build(chain.d, old);
  ASSERT_TRUE(built->update(number("first.a", 3.0)).ok());
  auto fresh = engine().rebind(*built, chain.d.message, on(other));
  ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
  (*fresh)->keep();
  built.reset();
  const std::weak_ptr<const DeviceMemory> watched = old[1];
  old.clear();
  EXPECT_TRUE(watched.expired());
  ASSERT_TRUE(launch(**fresh, other).ok());
  EXPECT_THAT(doubles(other[1]), ElementsAre(30, 60, 90, 120));
  EXPECT_THAT(doubles(other[2]), ElementsAre(60, 120, 180, 240));
  ASSERT_TRUE((*fresh)->update(number("second.a", 1.0)).ok());
  ASSERT_TRUE(launch(**fresh, other).ok());
  EXPECT_THAT(doubles(other[2]), ElementsAre(120, 240, 360, 480));
  EXPECT_EQ(engine().counters().graph_builds, 1u);
  EXPECT_EQ(engine().counters().rebinds, 1u);
}

// The description has other numbers than the graph: those of the graph count, as on the CPU.
TEST_F(DeviceRebindTest, NumbersOfTheFreshDescriptionAreNotTaken) {
  for (const bool anew : {false, true}) {
    Chain chain;
    const Memory planes = memory(chain.planes(1));
    const auto built = build(chain.d, planes);
    Description other = chain.d;
    for (v1::Stage& stage : *other.message.mutable_stages()) {
      for (v1::Binding& one : *stage.mutable_node()->mutable_kernel()->mutable_bindings()) {
        if (one.has_param()) one.mutable_param()->set_real(100.0);
        if (anew && one.argument() == "x" && one.has_view()) one.mutable_view()->set_plane(0);  // no edge
      }
    }
    const auto fresh = engine().rebind(*built, other.message, on(planes));
    ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
    (*fresh)->keep();
    ASSERT_TRUE(launch(**fresh, planes).ok());
    EXPECT_THAT(doubles(planes[1]), ElementsAre(2, 4, 6, 8));
  }
}

TEST_F(DeviceRebindTest, WhatIsDroppedBeforeItIsKeptLeavesTheGraphAsItWas) {
  pretend("fail_instantiate=2");
  const Chain chain;
  const Memory planes = memory(chain.planes(1));
  Memory other = memory(chain.planes(10));
  const auto built = build(chain.d, planes);
  ASSERT_TRUE(built->update(number("first.a", 3.0)).ok());
  ASSERT_TRUE(engine().rebind(*built, chain.d.message, on(other)).ok());
  const std::weak_ptr<const DeviceMemory> watched = other[0];
  other.clear();
  EXPECT_TRUE(watched.expired());
  ASSERT_TRUE(launch(*built, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(doubles(planes[2]), ElementsAre(6, 12, 18, 24));
}

// Of the six calls that change three nodes, the first, the second, ...
class DeviceRebindFaults : public DeviceRebindTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(, DeviceRebindFaults, ::testing::Range(1, 7));
TEST_P(DeviceRebindFaults, AChangeThatFailsLeavesAllAsItWas) {
  EAGLE_PRETEND_OR_SKIP("fail_instantiate=2,fail_change=" +
                        std::to_string(GetParam() + 2));  // an update is the first two
  Chain chain;
  chain.d.add(scaled(0, "third", chain.y, chain.x));
  const Memory planes = memory(chain.planes(1)), other = memory(chain.planes(10));
  const auto built = build(chain.d, planes);
  ASSERT_TRUE(built->update(number("first.a", 3.0)).ok());
  const auto failed = engine().rebind(*built, chain.d.message, on(other));
  EXPECT_EQ(failed.status().reason(), Reason::out_of_memory);
  ASSERT_TRUE(launch(*built, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(doubles(planes[2]), ElementsAre(6, 12, 18, 24));
  EXPECT_THAT(doubles(planes[0]), ElementsAre(7, 14, 21, 28));
  EXPECT_EQ(testing::difference(chain.planes(10), read(other)), "");
  const auto fresh = engine().rebind(*built, chain.d.message, on(other));
  ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
  (*fresh)->keep();
  ASSERT_TRUE(launch(**fresh, other).ok());
  EXPECT_THAT(doubles(other[2]), ElementsAre(60, 120, 180, 240));
}

// What nobody can take back: the graph says so rather than run over planes of both.
TEST_F(DeviceRebindTest, AGraphWithoutExecutableGetsOneWithItsNextLaunch) {
  EAGLE_PRETEND_OR_SKIP("single=1,fail_instantiate=4");
  Description d;
  const View n = d.array({1}, DType::i64), x = d.array({4}), y = d.array({4});
  d.add(graph::testing::skippable(
      "maybe", graph::testing::Cells{n},
      {graph::testing::stage(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}))}));
  Bytes values = testing::planes_of(d.message);
  put(values, n, std::vector<std::int64_t>{1});
  put(values, x, std::vector<double>{1, 2, 3, 4});
  const Memory planes = memory(values), other = memory(values);
  const auto built = build(d, planes);
  // Instantiated: once, again in vain beside the first, alone; and to undo that there is no memory.
  ASSERT_TRUE(engine().rebind(*built, d.message, on(other)).ok());
  ASSERT_TRUE(launch(*built, planes).ok());
  EXPECT_THAT(doubles(planes[2]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(testing::difference(values, read(other)), "");
}

// n <- n + step, while n is not `until`.
struct Loop {
  Description d;
  View n = d.array({1}, DType::i64), until = d.array({1}, DType::i64), seen = d.array({1}, DType::i32);
  Loop() {
    kernel::KernelBuilder counter("count");
    const auto step = counter.integer_param("step");
    const auto state = counter.state("n", {kernel::Scalar::i64});
    counter.commit("n", counter.add(state, step));
    const std::uint32_t count = d.kernel(counter);
    d.add(graph::testing::repeat_while("relax", graph::testing::Cells{n, until, false},
                                       {graph::testing::stage(graph::testing::launch(
                                           "count", count, {{"step", std::int64_t{1}}, {"n", n}}))},
                                       100, seen));
  }
  [[nodiscard]] Bytes planes(std::int64_t to) const {
    Bytes all = testing::planes_of(d.message);
    put(all, until, std::vector<std::int64_t>{to});
    return all;
  }
};

class DeviceRebindLoops : public DeviceRebindTest {
protected:
  // Bodies that a launch over fresh planes runs.
  std::int64_t bodies(BuiltGraph& built, const Loop& loop, const Memory& planes, std::int64_t to) {
    const Bytes values = loop.planes(to);
    for (std::size_t i = 0; i < planes.size(); ++i) EXPECT_TRUE(planes[i]->write(values[i]).ok());
    EXPECT_TRUE(launch(built, planes).ok());
    std::int32_t seen = -1;
    EXPECT_TRUE(planes[2]->read(std::as_writable_bytes(std::span(&seen, 1))).ok());
    return seen;
  }
  void check(bool refused_first) {
    const Loop loop;
    const Memory planes = memory(loop.planes(0)), other = memory(loop.planes(0));
    const auto built = build(loop.d, planes);
    ASSERT_TRUE(built->update(number("count.step", std::int64_t{2})).ok());
    auto fresh = engine().rebind(*built, loop.d.message, on(other));
    if (refused_first) {
      EXPECT_EQ(fresh.status().reason(), Reason::out_of_memory);
    } else {
      ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
      fresh = Status(Reason::internal, "dropped");
    }
    EXPECT_EQ(bodies(*built, loop, planes, 12), 6);
    fresh = engine().rebind(*built, loop.d.message, on(other));
    ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
    (*fresh)->keep();
    EXPECT_EQ(bodies(**fresh, loop, other, 8), 4);
    EXPECT_EQ(engine().counters().graph_builds, 1u);
  }
};

// Once built, once updated.
TEST_F(DeviceRebindLoops, NodesInBodiesAreMadeExecutableAnewAndWhatWasIsKept) {
  pretend("fail_instantiate=100");
  check(false);
}
TEST_F(DeviceRebindLoops, WhatCannotBeMadeExecutableAnewStaysAsItWas) {
  EAGLE_PRETEND_OR_SKIP("fail_instantiate=3");
  check(true);
}
TEST_F(DeviceRebindLoops, ADriverThatHasAGraphExecutableOnceIsServedOneAfterTheOther) {
  pretend("single=1");
  check(false);
}
TEST_F(DeviceRebindLoops, GuardsThatTheHostLooksAtAreThoseOfTheNewPlanes) {
  pretend("version=12010");
  check(false);
}

// ---- what is built anew

TEST_F(DeviceRebindTest, ArraysThatOverlapOtherwiseMakeOtherEdgesAndSoAnotherCudaGraph) {
  EAGLE_PRETEND_OR_SKIP("fail_instantiate=2");
  Chain chain;
  const Memory planes = memory(chain.planes(1));
  const auto built = build(chain.d, planes);
  ASSERT_TRUE(built->update(number("first.a", 3.0)).ok());
  Description apart = chain.d;  // `second` reads x, and waits for nobody
  for (v1::Binding& one :
       *apart.message.mutable_stages(1)->mutable_node()->mutable_kernel()->mutable_bindings())
    if (one.argument() == "x") one.mutable_view()->set_plane(0);
  EXPECT_EQ(engine().rebind(*built, apart.message, on(planes)).status().reason(), Reason::out_of_memory);
  const auto fresh = engine().rebind(*built, apart.message, on(planes));
  ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
  (*fresh)->keep();
  ASSERT_TRUE(launch(**fresh, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(doubles(planes[2]), ElementsAre(2, 4, 6, 8));
}

TEST_F(DeviceRebindTest, ACopyOfOtherStridesIsAnotherRoutineWhereItsAxesAreOthers) {
  EAGLE_PRETEND_OR_SKIP("fail_instantiate=2");
  Description d;
  const View x = d.array({2, 4}), y = d.array({2, 2});
  View some = x;
  some.shape = {2, 2};
  some.strides = {16, 8};  // the first four
  d.add(graph::testing::copy("copy", some, y));
  Bytes values = testing::planes_of(d.message);
  put(values, x, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const Memory planes = memory(values);
  auto built = build(d, planes);
  Description strided = d, square = d;
  const auto source = [](Description& one) {
    return one.message.mutable_stages(0)->mutable_node()->mutable_copy()->mutable_source();
  };
  source(strided)->set_strides(0, 32);
  source(strided)->set_strides(1, 16);  // still one axis, of other steps
  source(square)->set_strides(0, 32);
  auto fresh = engine().rebind(*built, strided.message, on(planes));
  ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
  (*fresh)->keep();
  built = *std::move(fresh);
  ASSERT_TRUE(launch(*built, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(engine().rebind(*built, square.message, on(planes)).status().reason(), Reason::out_of_memory);
  ASSERT_TRUE(planes[1]->fill(0).ok() && launch(*built, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(1, 3, 5, 7));
  fresh = engine().rebind(*built, square.message, on(planes));
  ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
  (*fresh)->keep();
  ASSERT_TRUE(launch(**fresh, planes).ok());
  EXPECT_THAT(doubles(planes[1]), ElementsAre(1, 2, 5, 6));
}

// ---- memory

TEST_F(DeviceRebindTest, WhatAGraphMadeForItselfIsPaidOnce) {
  Description large;  // enough for levels with memory between them
  const View many = large.array({9'000}), one = large.array({1});
  large.add(graph::testing::reduce("r", many, one, v1::REDUCE_SUM, true));
  std::uint64_t paid = 0, most = 0;
  const Account account = [&](std::uint64_t bytes,
                              std::string_view) -> StatusOr<std::shared_ptr<const void>> {
    paid += bytes;
    most = std::max(most, paid);
    return std::shared_ptr<const void>(&paid, [&paid, bytes](const void*) { paid -= bytes; });
  };
  Bytes numbers = testing::planes_of(large.message);
  put(numbers, many, std::vector<double>(9'000, 0.5));
  const Memory planes = memory(numbers), other = memory(numbers);
  {
    const auto built = engine().build(large.message, on(planes, account));
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const std::uint64_t alone = paid;
    EXPECT_GT(alone, 0u);
    const auto fresh = engine().rebind(**built, large.message, on(other, account));
    ASSERT_TRUE(fresh.ok()) << fresh.status().to_string();
    (*fresh)->keep();
    EXPECT_EQ(most, alone);
    EXPECT_EQ((*fresh)->scratch().bytes, alone);
    ASSERT_TRUE(launch(**fresh, other).ok());
    EXPECT_THAT(doubles(other[1]), ElementsAre(4'500));
    EXPECT_THAT(doubles(planes[1]), ElementsAre(0));
  }
  EXPECT_EQ(paid, 0u);
}

TEST_F(DeviceRebindTest, LaunchesUnderWayKeepThePlanesThatWereTakenFromTheirGraph) {
  Description d;
  const View x = d.array({4}), y = d.array({4});
  d.add(graph::testing::launch("add", d.accumulate_kernel(), {{"x", x}, {"y", y}}));
  const auto graph = d.graph();
  const auto values = [&](std::vector<double> numbers) {
    auto made = DeviceMemory::create(modules().device(), 32);
    EXPECT_TRUE(made.ok() && made->write(std::as_bytes(std::span(numbers))).ok());
    return std::make_shared<const DeviceMemory>(*std::move(made));
  };
  auto old_x = values({1, 1, 1, 1});
  const auto y_memory = values({0, 0, 0, 0}), new_x = values({10, 20, 30, 40});
  const std::weak_ptr<const DeviceMemory> watched = old_x;
  const auto device = DeviceGraph::build(modules(), graph, {old_x, y_memory});
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  ASSERT_TRUE((*device)->launch(3).ok());
  old_x.reset();
  const auto changed = (*device)->rebind(modules(), graph, {new_x, y_memory});
  ASSERT_TRUE(changed.ok() && *changed) << changed.status().to_string();
  (*device)->keep_rebind();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ((*device)->retired(), 1u);
  ASSERT_TRUE((*device)->launch(1).ok());
  ASSERT_TRUE((*device)->wait().ok());
  EXPECT_TRUE(watched.expired());
  EXPECT_THAT(doubles(y_memory), ElementsAre(13, 23, 33, 43));
}

// ---- everything together

void for_each_view(google::protobuf::Message& message, const std::function<void(v1::View&)>& visit) {
  if (auto* const view = dynamic_cast<v1::View*>(&message)) return visit(*view);
  const auto* const reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      for_each_view(*reflection->MutableMessage(&message, field), visit);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      for_each_view(*reflection->MutableRepeatedMessage(&message, field, i), visit);
  }
}

// Planes change places, or views move to whatever plane: then edges and races are others. Several times, with
// some that are dropped, and launches in between.
TEST_F(DeviceRebindTest, RandomGraphsOverRandomPlanesGiveTheBitsOfTheCpu) {
  constexpr std::uint64_t first_seed = 710'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 300 : 6'000;
  std::uint64_t ran = 0, rebound = 0;
  for (std::uint64_t seed = first_seed; ran < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto [d, planes] = testing::RandomGraph(random);
    if (!engine().build(d.message, testing::memory_of(planes)).ok()) continue;  // it races
    ++ran;
    Memory there = memory(planes);
    auto built = build(d, there);
    ASSERT_NE(built, nullptr);
    for (int round = 0; round < 4; ++round) {
      Description other = d;
      std::vector<std::uint32_t> places = {0, 1, 2};
      std::shuffle(places.begin(), places.end(), random);
      const bool anywhere = random() % 3 == 0;
      for_each_view(other.message, [&](v1::View& view) {
        if (view.plane() < 3)
          view.set_plane(anywhere ? static_cast<std::uint32_t>(random() % 3) : places[view.plane()]);
      });
      Bytes values = testing::random_planes(other.message, random);
      const auto on_cpu = engine().build(other.message, testing::memory_of(values));
      Memory fresh_memory = memory(values);
      auto fresh = engine().rebind(*built, other.message, on(fresh_memory));
      ASSERT_EQ(fresh.ok(), on_cpu.ok()) << fresh.status().to_string() << on_cpu.status().to_string();
      const bool keeps = fresh.ok() && random() % 3 != 0;
      if (keeps) {
        (*fresh)->keep();
        ++rebound;
        built = *std::move(fresh);
        there = fresh_memory;
        d = other;
        planes = values;
      } else {
        fresh = Status(Reason::internal, "dropped");
      }
      const auto reference = engine().build(d.message, testing::memory_of(planes));
      ASSERT_TRUE(reference.ok());
      ASSERT_TRUE(launch(*built, there, 2).ok());
      testing::run_on_cpu(**reference, planes, 2);
      ASSERT_EQ(testing::difference(planes, read(there)), "");
    }
    if (HasFailure()) return;
  }
  std::printf("%d graphs, %d times over other planes\n", static_cast<int>(ran), static_cast<int>(rebound));
  EXPECT_GE(rebound, ran);
}

}  // namespace
}  // namespace eagle::run::cuda
