// Every kind of node gives way: cut as finely as can be it takes many pieces and leaves the same bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/built_graph.h"
#include "engine/run/cpu/share.h"
#include "engine/run/testing.h"

namespace eagle::run {
namespace {

using eagle::testing::Array;
using eagle::testing::fill;
using eagle::testing::GraphScene;
using eagle::testing::set_view;
using kernel::KernelBuilder;
using kernel::Scalar;
using kernel::Type;

// Of kinds that are cut anywhere, and of those that are cut between tiles, leaves or rows.
constexpr std::size_t few = 3'001;
constexpr std::size_t many = 100'001;
constexpr std::int64_t most_tile = 16'384;  // samples of a tile of a launch that shares

// The memory of a graph of one kind.
struct Data {
  std::vector<double> x, y, h;
  std::vector<std::int64_t> key;

  explicit Data(std::size_t samples) : x(samples), y(samples), h(1000), key(samples) {
    for (std::size_t i = 0; i < samples; ++i) {
      x[i] = 1.0 / (static_cast<double>(i) + 3.0);
      key[i] = static_cast<std::int64_t>(i * 7919 % 1003);
    }
  }
  friend bool operator==(const Data&, const Data&) = default;
};

kernel::Kernel histogram() {
  KernelBuilder k("histogram");
  const auto x = k.scalar("x");
  k.accumulator("h", Type{Scalar::f64});
  k.accum_add("h", x, {k.index("key")});
  return eagle::testing::finish(k);
}

kernel::Kernel total() {
  KernelBuilder k("total");
  const auto x = k.scalar("x");
  k.declare_reduction("sum", Type{Scalar::f64}, kernel::ReduceOp::sum);
  k.commit("sum", x);
  return eagle::testing::finish(k);
}

// As many rounds as the key says.
kernel::Kernel rounds() {
  KernelBuilder k("rounds");
  const auto x = k.state("x", {});
  const auto key = k.index("key");
  const auto begun = k.begin_while({k.integer(0), x}, 1'000'000);
  const auto body = k.while_condition(k.lt(begun[0], key));
  const auto ended = k.end_while({k.add(body[0], k.integer(1)), k.add(body[1], k.real(1.0 / 3))});
  k.commit("x", ended[1]);
  return eagle::testing::finish(k);
}

struct Kind {
  const char* name;
  std::size_t samples;
  std::function<void(GraphScene&, Data&)> add;
  // Pieces that it takes at least where each of `team` threads gets as little as there is in each.
  std::function<std::int64_t(int team)> pieces;
};

Array cell_of(Array array) {
  array.elements = 1;
  return array;
}

void add_affine(v1::Node& node, GraphScene& scene, const Array& x) {
  fill(*node.mutable_kernel(), scene.kernel(eagle::testing::affine_in_place()),
       {{"a", 0.5}, {"b", 1.0}, {"x", x}});
}

const Kind kinds[] = {
    {"Kernel", few,
     [](GraphScene& scene, Data& data) {
       add_affine(eagle::testing::add_node(scene.message, ""), scene, scene.array(data.x));
     },
     [](int team) { return share_of(few, 0, team).end / share_grain; }},
    {"KernelWithLoops", few,
     [](GraphScene& scene, Data& data) {
       fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(), scene.kernel(rounds()),
            {{"x", scene.array(data.x)}, {"key", scene.array(data.key)}});
     },
     [](int team) { return share_of(few, 0, team).end / share_grain; }},
    {"Chain", few,
     [](GraphScene& scene, Data& data) {
       const Array x = scene.array(data.x);
       for (int i = 0; i < 3; ++i) add_affine(eagle::testing::add_node(scene.message, ""), scene, x);
     },
     [](int team) { return share_of(few, 0, team).end / share_grain; }},
    {"Branches", many,
     [](GraphScene& scene, Data& data) {
       const Array x = scene.array(data.x);
       v1::Stage& stage = *scene.message.add_stages();
       for (int b = 0; b < 9; ++b) {
         Array part = x;
         part.elements = 4096;
         v1::Branch& branch = *stage.mutable_group()->add_branches();
         for (int i = 0; i < 3; ++i) {
           v1::Node& node = *branch.add_nodes();
           add_affine(node, scene, part);
           for (v1::Binding& binding : *node.mutable_kernel()->mutable_bindings()) {
             if (binding.has_view()) binding.mutable_view()->set_offset(b * 4096 * 8);
           }
         }
       }
     },
     [](int) { return 4096 / share_grain; }},
    {"Accumulation", many,
     [](GraphScene& scene, Data& data) {
       fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(), scene.kernel(histogram()),
            {{"x", scene.array(data.x)}, {"h", scene.array(data.h)}, {"key", scene.array(data.key)}});
     },
     [](int team) { return static_cast<std::int64_t>(many) / most_tile / team; }},
    {"Reduction", many,
     [](GraphScene& scene, Data& data) {
       fill(*eagle::testing::add_node(scene.message, "").mutable_kernel(), scene.kernel(total()),
            {{"x", scene.array(data.x)}, {"sum", cell_of(scene.array(data.y))}});
     },
     [](int team) { return static_cast<std::int64_t>(many) / most_tile / team; }},
    {"ReduceNode", many,
     [](GraphScene& scene, Data& data) {
       v1::Reduce& reduce = *eagle::testing::add_node(scene.message, "").mutable_reduce();
       reduce.set_op(v1::REDUCE_SUM);
       set_view(*reduce.mutable_x()->mutable_view(), scene.array(data.x));
       eagle::testing::set_cell(*reduce.mutable_out(), "out", scene.array(data.y), 0);
     },
     [](int team) { return static_cast<std::int64_t>(many) / 2560 / team; }},
    {"Copy", many,
     [](GraphScene& scene, Data& data) {
       v1::Copy& copy = *eagle::testing::add_node(scene.message, "").mutable_copy();
       set_view(*copy.mutable_source(), scene.array(data.x));
       set_view(*copy.mutable_destination(), scene.array(data.y));
     },
     [](int team) { return static_cast<std::int64_t>(many) / 4096 / team; }},
};

class Pieces : public ::testing::TestWithParam<Kind> {
protected:
  // Launches twice, on engines whose pieces last so long.
  struct Launched {
    Data data{GetParam().samples};
    std::int64_t pieces = 0;
  };
  static Launched launch(int team, double piece_s, graph::Fusion fusion) {
    Launched launched;
    GraphScene scene;
    GetParam().add(scene, launched.data);
    const auto engine = engine_for(team, piece_s, fusion);
    const auto graph = eagle::testing::build(*engine, scene);
    if (!graph) return launched;
    Replay replay(*graph, 2, nullptr);
    StatusOr<Replay::Next> next = Replay::Next::again;
    for (; next.ok() && *next == Replay::Next::again; ++launched.pieces) next = replay.advance();
    EXPECT_TRUE(next.ok()) << next.status().to_string();
    EXPECT_FALSE(replay.part_way());
    return launched;
  }
  static std::unique_ptr<Engine> engine_for(int team, double piece_s, graph::Fusion fusion) {
    Engine::Options options;
    options.piece_s = piece_s;
    options.inline_work = 0;
    options.fusion = fusion;
    return eagle::testing::make_engine(team, std::move(options));
  }
};

TEST_P(Pieces, GiveWayAndLeaveTheSameBits) {
  for (const graph::Fusion fusion : {graph::Fusion::blocks, graph::Fusion::full}) {
    const Launched expected = launch(1, eagle::testing::whole_pieces, fusion);
    ASSERT_EQ(expected.pieces, 1);
    for (const int team : {1, 2, 3, 7}) {
      SCOPED_TRACE(::testing::Message() << "team " << team << ", fusion " << name_of(fusion));
      const Launched whole = launch(team, eagle::testing::whole_pieces, fusion);
      EXPECT_EQ(whole.pieces, 1);
      EXPECT_EQ(whole.data, expected.data);
      const Launched cut = launch(team, eagle::testing::least_pieces, fusion);
      EXPECT_GE(cut.pieces, 2 * GetParam().pieces(team));
      EXPECT_EQ(cut.data, expected.data);
    }
  }
}

TEST_P(Pieces, AreWhereACancelOrADeadlineReachesIn) {
  for (const bool by_deadline : {false, true}) {
    Data data(GetParam().samples);
    GraphScene scene;
    GetParam().add(scene, data);
    const auto engine = engine_for(2, eagle::testing::least_pieces, graph::Fusion::blocks);
    const auto graph = eagle::testing::build(*engine, scene);
    ASSERT_TRUE(graph);
    const auto control = std::make_shared<Control>();
    Replay replay(*graph, 1, control);
    ASSERT_EQ(*replay.advance(), Replay::Next::again);
    ASSERT_TRUE(replay.part_way());
    if (by_deadline) {
      control->deadline = std::chrono::steady_clock::now();
    } else {
      control->cancel = true;
    }
    const StatusOr<Replay::Next> next = replay.advance();
    EXPECT_EQ(next.status().reason(), by_deadline ? Reason::deadline : Reason::cancelled);
    EXPECT_TRUE(replay.part_way());
    EXPECT_EQ(replay.launches(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Pieces, ::testing::ValuesIn(kinds),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace eagle::run
