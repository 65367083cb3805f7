// Descriptions that were damaged on the way or made to harm: whatever the bytes, reading gives a graph or an
// error, and what it accepts can be looked at and lowered.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/testing_usable.h"
#include "proto/testing_mutator.h"

namespace eagle::graph {
namespace {

using eagle::testing::MessageMutator;

void use(const Graph& graph) { ASSERT_EQ(usable_problem(graph), ""); }

// Reads, and uses what was accepted. Returns whether it was.
bool survives(const v1::GraphDescription& message, PrivateKernelPlanes planes) {
  const StatusOr<Graph> graph = read(message, planes);
  if (!graph.ok()) {
    EXPECT_EQ(refusal_problem(graph.status()), "");
    return false;
  }
  use(*graph);
  return true;
}

TEST(Hostile, DamagedBytesNeverCrash) {
  constexpr std::uint64_t seed = 99;
  SCOPED_TRACE("seed " + std::to_string(seed));
  // Parsing reports every name that is not UTF-8 in a log; here that is expected.
  google::protobuf::LogSilencer silence;
  std::mt19937_64 random(seed);
  MessageMutator mutator(seed);
  int parsed = 0;
  for (int round = 0; round < 200; ++round) {
    const testing::Description original = testing::random_description(random);
    const std::string bytes = original.message.SerializeAsString();
    for (int i = 0; i < 50; ++i) {
      SCOPED_TRACE("round " + std::to_string(round) + "." + std::to_string(i));
      v1::GraphDescription message;
      if (!message.ParseFromString(mutator.damaged(bytes))) continue;
      ++parsed;
      survives(message, i % 2 == 0 ? PrivateKernelPlanes::allowed : PrivateKernelPlanes::refused);
    }
  }
  EXPECT_GT(parsed, 500);
}

TEST(Hostile, WrongMessagesNeverCrash) {
  constexpr std::uint64_t seed = 2024;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  MessageMutator mutator(seed);
  int accepted = 0;
  constexpr int rounds = 200;
  constexpr int changes = 50;
  for (int round = 0; round < rounds; ++round) {
    const testing::Description original = testing::random_description(random);
    for (int i = 0; i < changes; ++i) {
      SCOPED_TRACE("round " + std::to_string(round) + "." + std::to_string(i));
      v1::GraphDescription message = original.message;
      for (std::uint64_t times = 1 + random() % 3; times > 0; --times) mutator.change(message);
      accepted +=
          survives(message, i % 2 == 0 ? PrivateKernelPlanes::allowed : PrivateKernelPlanes::refused) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, rounds * changes / 20);
  EXPECT_LT(accepted, rounds * changes * 19 / 20);
}

TEST(Hostile, NestingIsBoundedBeforeItIsFollowed) {
  v1::GraphDescription message;
  v1::PlaneDeclaration& plane = *message.add_planes();
  plane.mutable_private_memory();
  plane.set_bytes(8);
  v1::Stage* stage = message.add_stages();
  for (int depth = 0; depth < 500; ++depth) {
    v1::Skippable& skippable = *stage->mutable_node()->mutable_skippable();
    testing::to_message("c", plane::testing::array({}, plane::DType::i64),
                        *skippable.mutable_guard()->mutable_count());
    stage = skippable.add_body();
  }
  *stage->mutable_node() = testing::host("end", {}, {});
  EXPECT_EQ(read(message, PrivateKernelPlanes::allowed).status().reason(), Reason::graph_limit);
}

TEST(Hostile, StridesAndShapesOfAnySizeAreOnlyNumbers) {
  constexpr std::uint64_t seed = 4;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto wild = [&]() -> std::int64_t {
    const auto number = static_cast<std::int64_t>(random() >> (random() % 64));
    return random() % 2 == 0 ? number : -number;
  };
  for (int round = 0; round < 20'000; ++round) {
    testing::Description d;
    d.array({std::int64_t{1} << (random() % 50)}, plane::DType::boolean);
    for (int n = 0; n < 2; ++n) {
      testing::View view{
          0,  wild(), plane::DType::other, static_cast<std::uint32_t>(random() >> (32 + random() % 32)),
          {}, {}};
      for (std::uint64_t k = random() % 5; k > 0; --k) {
        view.shape.push_back(random() % 3 == 0 ? wild() : static_cast<std::int64_t>(random() % 100));
        view.strides.push_back(random() % 2 == 0 ? wild() : static_cast<std::int64_t>(random() % 1000));
      }
      if (random() % 2 == 0) view.offset = static_cast<std::int64_t>(random() % 1000);
      d.add(testing::host("h", {{"r", view}}, {{"w", view}}));
    }
    const StatusOr<Graph> graph = d.try_read();
    if (graph.ok()) use(*graph);
  }
}

}  // namespace
}  // namespace eagle::graph
