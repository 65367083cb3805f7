// Reverse passes of whole graphs against central differences of the same graph, both run by the reference.
#include "engine/diff/reverse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/testing.h"
#include "engine/graph/testing.h"
#include "engine/kernel/builder.h"

namespace eagle::diff {
namespace {

using graph::testing::Cells;
using graph::testing::Description;
using kernel::KernelBuilder;
using kernel::Opcode;
using plane::DType;
using testing::Machine;

// y = x * w
std::uint32_t product(Description& d) {
  KernelBuilder b("product");
  const auto x = b.scalar("x");
  const auto w = b.scalar("w");
  b.output("y", b.mul(x, w));
  return d.kernel(b);
}
// s = s * x + a
std::uint32_t squeeze(Description& d) {
  KernelBuilder b("squeeze");
  const auto x = b.scalar("x");
  const auto a = b.param("a");
  const auto s = b.state("s", {});
  b.commit("s", b.add(b.mul(b.op(Opcode::sin, {s}), x), a));
  return d.kernel(b);
}
std::uint32_t down(Description& d) {
  KernelBuilder b("down");
  const auto i = b.state("i", {kernel::Scalar::i64, 0, {1, 1}});
  b.commit("i", b.sub(i, b.integer(1)));
  return d.kernel(b);
}

class Case {
public:
  explicit Case(Description& description)
      : graph_(description.graph()), program_(graph_), message_(description.message) {
    auto record = plan_record(program_);
    EXPECT_TRUE(record.ok()) << record.status().to_string();
    record_ = *std::move(record);
    v1::GraphDescription recorded = message_;
    if (record_.bytes > 0) {
      v1::PlaneDeclaration& plane = *recorded.add_planes();
      plane.mutable_plane()->set_id(7001);
      plane.set_bytes(static_cast<std::uint64_t>(record_.bytes));
      add_copies(program_, record_, static_cast<std::uint32_t>(recorded.planes_size() - 1), recorded);
    }
    auto read = graph::read(recorded, graph::PrivateKernelPlanes::refused);
    EXPECT_TRUE(read.ok()) << read.status().to_string();
    recorded_ = *std::move(read);
    machine.provide(recorded_);
  }

  Machine machine;

  // J is the sum of the seeds times what they are of. Every gradient of a plane against central differences.
  void check(const ReverseOptions& options, double tolerance = 1e-7) {
    StatusOr<Reverse> planned = plan_reverse(program_, message_, record_, options);
    ASSERT_TRUE(planned.ok()) << planned.status().to_string();
    v1::GraphDescription& description = *planned->description;
    std::uint64_t id = 9000;
    for (v1::PlaneDeclaration& plane : *description.mutable_planes()) {
      if (plane.memory_case() == v1::PlaneDeclaration::MEMORY_NOT_SET) plane.mutable_plane()->set_id(++id);
    }
    const StatusOr<graph::Graph> reverse = graph::read(description, graph::PrivateKernelPlanes::refused);
    ASSERT_TRUE(reverse.ok()) << reverse.status().to_string() << description.DebugString();

    const auto start = machine.planes;
    const auto objective = [&] {
      machine.run(recorded_);
      double sum = 0;
      for (std::size_t i = 0; i < options.seeds.size(); ++i) {
        const View view = seed_view(options.seeds[i]);
        const std::vector<double> values = machine.values(view);
        for (std::size_t k = 0; k < values.size(); ++k) sum += values[k] * weight(i, k);
      }
      return sum;
    };
    // The reverse pass, twice: what it does must not depend on what an earlier one left.
    for (int round = 0; round < 2; ++round) {
      machine.planes = start;
      objective();
      const auto after = machine.planes;
      arena_.provide(*reverse);
      for (std::size_t i = 0; i < after.size(); ++i) arena_.planes[i] = after[i];
      for (const ArenaConstant& constant : planned->constants) {
        std::memcpy(arena_.planes[planned->arena].data() + constant.offset, constant.values.data(),
                    constant.values.size() * sizeof(std::int64_t));
      }
      for (std::size_t i = 0; i < planned->seeds.size(); ++i) {
        std::vector<double> weights(static_cast<std::size_t>(plane::elements(planned->seeds[i].view)));
        for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = weight(i, k);
        arena_.set(planned->seeds[i].view, weights);
      }
      arena_.run(*reverse);
      for (std::size_t i = 0; i < message_planes(); ++i)
        EXPECT_EQ(arena_.planes[i], after[i]) << "plane " << i << " is not the reverse pass's to change";
    }
    gradients.clear();
    for (const ArenaArray& gradient : planned->gradients) {
      gradients[gradient.name] = arena_.values(gradient.view);
      std::optional<View> of;
      program_.for_each([&](const Step& step) {
        for (const graph::NamedView& read : step.reads) {
          if (!of && (read.name == gradient.name || step.node->label + "." + read.name == gradient.name))
            of = read.view;
        }
      });
      if (!of || middle.contains(gradient.name)) continue;  // a Param, or a value in the middle
      machine.planes = start;
      const std::vector<double> values = machine.values(*of);
      for (std::size_t k = 0; k < values.size(); ++k) {
        double sides[2];
        for (int side = 0; side < 2; ++side) {
          machine.planes = start;
          std::vector<double> moved = values;
          moved[k] += side == 0 ? step_ : -step_;
          machine.set(*of, moved);
          sides[side] = objective();
        }
        const double expected = (sides[0] - sides[1]) / (2 * step_);
        EXPECT_NEAR(gradients[gradient.name].at(k), expected, tolerance * std::max(1.0, std::abs(expected)))
            << gradient.name << "[" << k << "]";
      }
    }
    machine.planes = start;
  }

  std::map<std::string, std::vector<double>> gradients;
  std::set<std::string> middle;

private:
  static double weight(std::size_t seed, std::size_t k) {
    return 0.5 + 0.25 * static_cast<double>(seed) + 0.125 * static_cast<double>(k % 5);
  }
  [[nodiscard]] std::size_t message_planes() const {
    return static_cast<std::size_t>(message_.planes_size());
  }
  View seed_view(const std::string& name) const {
    const auto seeds = find_seeds(program_, {name});
    EXPECT_TRUE(seeds.ok());
    return seeds->front().plane->view;
  }

  const double step_ = 1e-6;
  graph::Graph graph_;
  Program program_;
  v1::GraphDescription message_;
  Record record_;
  graph::Graph recorded_;
  Machine arena_;
};

std::vector<double> some(std::size_t n, double first = 0.3) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(first + 0.17 * static_cast<double>(i));
  return values;
}

TEST(ReversePass, AddsUpWhatSeveralNodesReadAndSumsAndMaximaGoBack) {
  Description d;
  const View x = d.array({4}), w = d.array({4}), y = d.array({4}), z = d.array({4}), total = d.array({1}),
             top = d.array({1});
  const auto mul = product(d);
  d.add(graph::testing::launch("first", mul, {{"x", x}, {"w", w}, {"y", y}}));
  d.add(graph::testing::launch("second", mul, {{"x", x}, {"w", y}, {"y", z}}));
  d.add(graph::testing::reduce("total", z, total));
  d.add(graph::testing::reduce("top", y, top, v1::REDUCE_MAX));
  Case c(d);
  c.machine.set(x, some(4));
  c.machine.set(w, some(4, 1.1));
  c.check({.seeds = {"total.out", "top.out"},
           .wrt = std::vector<std::string>{"first.x", "first.w"},
           .vjps = {},
           .trips = {}});
}

// y = sin(x) * w, and the largest x * w * w of all running samples, and the smallest x + w.
std::uint32_t extremes(Description& d, bool masked) {
  KernelBuilder b("extremes");
  const auto x = b.scalar("x");
  const auto w = b.scalar("w");
  if (masked) b.terminated("done");
  b.declare_reduction("most", {kernel::Scalar::f64, 0, {1, 1}}, kernel::ReduceOp::max);
  b.declare_reduction("least", {kernel::Scalar::f64, 0, {1, 1}}, kernel::ReduceOp::min);
  b.output("y", b.mul(b.op(Opcode::sin, {x}), w));
  b.commit("most", b.mul(b.mul(x, w), w));
  b.commit("least", b.add(x, w));
  return d.kernel(b);
}

TEST(ReversePass, ExtremesOfAKernelGoBackToTheirSampleAlsoWhereItsInputsAreOverwritten) {
  for (const bool masked : {false, true}) {
    SCOPED_TRACE(masked);
    Description d;
    const View x = d.array({5}), w = d.array({5}), y = d.array({5}), most = d.array({1}),
               least = d.array({1}), done = d.array({5}, DType::boolean);
    const auto kernel = extremes(d, masked);
    graph::testing::Arguments arguments{{"x", x}, {"w", w}, {"y", y}, {"most", most}, {"least", least}};
    if (masked) arguments.insert(arguments.begin() + 2, {"done", done});
    d.add(graph::testing::launch("both", kernel, arguments));
    d.add(graph::testing::copy("over", y, x));
    Case c(d);
    c.machine.set(x, {0.3, 0.9, 0.5, -0.4, 0.7});
    c.machine.set(w, {1.1, 1.3, 0.2, -0.9, 1.2});
    c.machine.set(done, {0, 1, 0, 0, 0});
    c.check({.seeds = {"most", "least", "over.dst"},
             .wrt = std::vector<std::string>{"both.x", "w"},
             .vjps = {},
             .trips = {}});
    // An extreme that nobody asks about has no part in it.
    c.check({.seeds = {"y"}, .wrt = std::vector<std::string>{"both.x"}, .vjps = {}, .trips = {}});
  }
}

TEST(ReversePass, ReadsWhatLaterNodesHaveOverwritten) {
  Description d;
  const View x = d.array({3}), s = d.array({3});
  const auto kernel = squeeze(d);
  for (int i = 0; i < 4; ++i)
    d.add(graph::testing::launch("k" + std::to_string(i), kernel, {{"x", x}, {"s", s}, {"a", 0.1 * i}}));
  d.add(graph::testing::copy("swap", s, x));  // and x is overwritten, too
  d.add(graph::testing::launch("last", kernel, {{"x", x}, {"s", s}, {"a", 0.7}}));
  Case c(d);
  c.machine.set(x, some(3));
  c.machine.set(s, some(3, 0.9));
  c.check(
      {.seeds = {"s"}, .wrt = std::vector<std::string>{"k0.x", "s", "k1.a", "a"}, .vjps = {}, .trips = {}});
  EXPECT_EQ(c.gradients.at("a").size(), 1u);
}

TEST(ReversePass, TakesBackSkippedNodesAndLoopsOfAnyLengthWithAnyCheckpoint) {
  for (const std::int64_t checkpoint : {0, 1, 2, 3, 7, 100}) {
    for (const int trips : {0, 1, 5, 9}) {
      SCOPED_TRACE("checkpoint " + std::to_string(checkpoint) + ", " + std::to_string(trips) + " trips");
      Description d;
      const View x = d.array({2}), s = d.array({2}), y = d.array({2}), live = d.array({1}, DType::i64),
                 flag = d.array({1}, DType::i64), off = d.array({1}, DType::i64);
      const auto kernel = squeeze(d);
      const auto mul = product(d);
      const auto count = down(d);
      d.add(graph::testing::skippable(
          "maybe", Cells{flag},
          {graph::testing::stage(graph::testing::launch("in", kernel, {{"x", x}, {"s", s}, {"a", 0.2}}))}));
      d.add(graph::testing::skippable(
          "never", Cells{off},
          {graph::testing::stage(graph::testing::launch("in2", kernel, {{"x", x}, {"s", s}, {"a", 0.2}}))}));
      d.add(graph::testing::repeat_while(
          "loop", Cells{live},
          {graph::testing::stage(graph::testing::launch("trip", kernel, {{"x", x}, {"s", s}, {"a", 0.1}})),
           graph::testing::stage(graph::testing::launch("count", count, {{"i", live}}))},
          9));
      d.add(graph::testing::launch("after", mul, {{"x", s}, {"w", x}, {"y", y}}));
      d.add(graph::testing::launch("again", kernel, {{"x", x}, {"s", s}, {"a", 0.3}}));
      Case c(d);
      c.machine.set(x, some(2));
      c.machine.set(s, some(2, 0.8));
      c.machine.set(flag, {1});
      c.machine.set(live, {static_cast<double>(trips)});
      c.check({.seeds = {"y", "s"},
               .wrt = std::vector<std::string>{"in.x", "s"},
               .vjps = {},
               .checkpoint = checkpoint,
               .trips = {}});
    }
  }
}

TEST(ReversePass, TakesBackLoopsInLoopsThatSeeTheirTrip) {
  for (const std::int64_t checkpoint : {0, 1, 2}) {
    Description d;
    const View x = d.array({2}), s = d.array({2}), outer = d.array({1}, DType::i64),
               inner = d.array({1}, DType::i64), trip = d.array({1}, DType::i64), rows = d.array({3, 2}),
               row = d.array({2}), kept = d.array({4, 2});
    const auto kernel = squeeze(d);
    const auto count = down(d);
    const auto mul = product(d);
    v1::Node choose = graph::testing::copy("choose", rows, row);
    graph::testing::to_message("trip", trip, *choose.mutable_copy()->mutable_index());
    v1::Node keep = graph::testing::copy("keep", s, kept);
    graph::testing::to_message("trip", trip, *keep.mutable_copy()->mutable_index());
    const auto stage = [](v1::Node node) { return graph::testing::stage(std::move(node)); };
    KernelBuilder b("two");
    b.state("i", {kernel::Scalar::i64, 0, {1, 1}});
    b.commit("i", b.integer(2));
    const auto two = d.kernel(b);
    d.add(graph::testing::repeat_while(
        "outer", Cells{outer},
        {stage(choose), stage(graph::testing::launch("two", two, {{"i", inner}})),
         stage(graph::testing::repeat_while(
             "inner", Cells{inner},
             {stage(graph::testing::launch("trip", kernel, {{"x", row}, {"s", s}, {"a", 0.1}})),
              stage(graph::testing::launch("less", count, {{"i", inner}}))},
             5)),
         stage(keep), stage(graph::testing::launch("fewer", count, {{"i", outer}}))},
        4, trip));
    d.add(graph::testing::launch("end", mul, {{"x", s}, {"w", x}, {"y", row}}));
    Case c(d);
    c.machine.set(x, some(2));
    c.machine.set(s, some(2, 0.8));
    c.machine.set(rows, some(6, 0.5));
    c.machine.set(outer, {3});
    c.check({.seeds = {"end.y", "keep.dst"},
             .wrt = std::vector<std::string>{"end.w", "trip.s", "choose.src"},
             .vjps = {},
             .checkpoint = checkpoint,
             .trips = {}});
  }
}

TEST(ReversePass, OneArrayForSeveralArgumentsGetsTheSumOfTheirs) {
  Description d;
  const View x = d.array({3}), y = d.array({3});
  const auto mul = product(d);
  d.add(graph::testing::launch("square", mul, {{"x", x}, {"w", x}, {"y", y}}));
  d.add(graph::testing::launch("in place", mul, {{"x", y}, {"w", x}, {"y", y}}));
  Case c(d);
  c.machine.set(x, some(3));
  c.check({.seeds = {"in place.y"}, .wrt = std::vector<std::string>{"square.x"}, .vjps = {}, .trips = {}});
}

TEST(ReversePass, CopiesOfPartsAndOfRepeatedElements) {
  Description d;
  const View x = d.array({2, 3}), y = d.array({3, 2}), z = d.array({4}), narrow = d.array({3, 2}, DType::f32);
  View turned = x;
  turned.shape = {3, 2};
  turned.strides = {8, 24};
  View same = x;  // one element four times
  same.shape = {4};
  same.strides = {0};
  d.add(graph::testing::copy("turn", turned, y));
  d.add(graph::testing::copy("repeat", same, z));
  Case c(d);
  c.machine.set(x, some(6));
  c.check({.seeds = {"turn.dst", "repeat.dst"},
           .wrt = std::vector<std::string>{"turn.src"},
           .vjps = {},
           .trips = {}});
}

TEST(ReversePass, AStoppedSampleKeepsItsDerivative) {
  Description d;
  const View x = d.array({4}), t = d.array({4}), done = d.array({4}, DType::boolean);
  KernelBuilder b("until");
  const auto rate = b.scalar("rate");
  const auto state = b.state("t", {});
  b.terminated("done");
  const auto next = b.mul(state, rate);
  b.commit("t", next);
  b.commit("done", b.ge(next, b.real(1.0)));
  const auto kernel = d.kernel(b);
  for (int i = 0; i < 4; ++i)
    d.add(
        graph::testing::launch("step" + std::to_string(i), kernel, {{"rate", x}, {"t", t}, {"done", done}}));
  Case c(d);
  c.machine.set(x, {1.5, 2.0, 1.1, 3.0});
  c.machine.set(t, {0.4, 0.3, 0.2, 0.6});
  c.machine.set(done, {0, 0, 0, 1});
  c.check({.seeds = {"t"}, .wrt = std::vector<std::string>{"rate", "t"}, .vjps = {}, .trips = {}});
  EXPECT_EQ(c.gradients.at("rate").at(3), 0.0);
}

TEST(Carried, IsWhatALaunchFindsAndLeavesChanged) {
  Description d;
  const View x = d.array({3}), y = d.array({3}), s = d.array({3}), n = d.array({1}, DType::i64);
  const auto mul = product(d);
  d.add(graph::testing::launch("first", mul, {{"x", x}, {"w", x}, {"y", y}}));   // y is not found
  d.add(graph::testing::launch("second", mul, {{"x", s}, {"w", y}, {"y", s}}));  // s is
  d.add(graph::testing::host("count", {{"n", n}}, {{"n", n}}));
  const graph::Graph graph = d.graph();
  const std::vector<std::pair<std::string, std::string>> wanted = {{"second", "x"}, {"count", "n"}};
  EXPECT_EQ(carried(Program(graph)), wanted);
}

TEST(ReversePass, RefusesNamesThatAreNoneAndCallablesWithoutADerivative) {
  Description d;
  const View x = d.array({3}), y = d.array({3}), n = d.array({3}, DType::i64);
  const auto mul = product(d);
  d.add(graph::testing::host("model", {{"x", x}, {"n", n}}, {{"y", y}}));
  d.add(graph::testing::launch("after", mul, {{"x", y}, {"w", x}, {"y", y}}));
  const graph::Graph graph = d.graph();
  const Program program(graph);
  const Record record = *plan_record(program);
  const auto refused = [&](std::vector<std::string> seeds, std::optional<std::vector<std::string>> wrt) {
    return plan_reverse(program, d.message, record,
                        {.seeds = std::move(seeds), .wrt = std::move(wrt), .vjps = {}, .trips = {}})
        .status();
  };
  EXPECT_EQ(refused({"nothing"}, {}).reason(), Reason::unknown_name);
  EXPECT_NE(refused({"nothing"}, {}).message().find("'y'"), std::string::npos);
  EXPECT_EQ(refused({"y"}, std::vector<std::string>{"q"}).reason(), Reason::unknown_name);
  EXPECT_EQ(refused({"y"}, std::vector<std::string>{"n"}).reason(), Reason::wrong_dtype);
  const Status written = refused({"y"}, std::vector<std::string>{"y"});
  EXPECT_EQ(written.reason(), Reason::unknown_name);
  EXPECT_NE(written.message().find("node 'model' writes it, and no node reads"), std::string::npos)
      << written.message();
  const Status missing = refused({"y"}, {});
  EXPECT_EQ(missing.reason(), Reason::bad_binding);
  EXPECT_NE(missing.message().find("'model'"), std::string::npos) << missing.message();
}

}  // namespace
}  // namespace eagle::diff
