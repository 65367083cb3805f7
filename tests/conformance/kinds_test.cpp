// Every kind of node: a replay makes all of its outputs anew, and nodes over nothing do nothing.
#include <cstring>
#include <functional>
#include <limits>

#include "engine/view/explain_text.h"
#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

// A node of one kind over fresh arrays of `n` samples, and what it writes.
struct Made {
  std::vector<ArrayView> outputs;
  std::function<Status(Graph&)> add;
};
struct Kind {
  const char* name;
  std::function<Made(const Session&, std::int64_t n)> make;
  bool takes_none = true;  // whether n may be 0
};

template <typename T>
T got(StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  if (!result.ok()) std::abort();
  return std::move(*result);
}

Array<double> input(const Session& session, std::int64_t n) {
  const auto x = got(session.zeros<double>({n}));
  for (std::int64_t i = 0; i < n; ++i) x[i] = 0.25 * static_cast<double>(i) - 3.0;
  return x;
}

BoundPlan twice(const ArrayView& x, const ArrayView& y) {
  return {affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}};
}

Opaque halve(const Array<double>& x, const Array<double>& y) {
  const auto run = [x, y] {
    for (std::int64_t i = 0; i < x.size(); ++i) y[i] = 0.5 * x[i];
    return Status();
  };
  return opaque(run, {{{"x", x}}, {{"y", y}}});
}

SkipGuard when(const ArrayView& cell) { return {{"cell", cell}, std::nullopt, false}; }

Made plan_launch(const Session& session, std::int64_t n) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<double>({n}));
  return {{y}, [=](Graph& g) { return g.add(twice(x, y), "plan"); }};
}

Made callable(const Session& session, std::int64_t n, HostTier tier) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<double>({n}));
  Opaque node = halve(x, y);
  node.tier = tier;
  return {{y}, [=](Graph& g) { return g.add_node(node, "callable"); }};
}

Made copied(const Session& session, std::int64_t n) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<std::int32_t>({n}));
  ArrayView backwards = x;
  if (n > 0) backwards.data = &x[n - 1];
  backwards.strides = {-8};
  return {{y}, [=](Graph& g) { return g.add_node(copy(backwards, y), "copy"); }};
}

Made reduced(const Session& session, std::int64_t n, ReduceOptions options) {
  const auto x = input(session, n);
  const auto out = got(session.zeros<double>({1}));
  return {{out}, [=](Graph& g) { return g.add_node(reduce(x, out, options), "reduce"); }};
}

Made reduced_rows(const Session& session, std::int64_t n) {
  const auto x = got(session.zeros<double>({3, n}));
  for (std::int64_t i = 0; i < 3 * n; ++i) x[i] = 1.0 / static_cast<double>(i + 1);
  const auto out = got(session.zeros<double>({3}));
  return {{out}, [=](Graph& g) { return g.add_node(reduce(x, out), "rows"); }};
}

Made any_of(const Session& session, std::int64_t n) {
  const auto x = got(session.zeros<bool>({n}));
  if (n > 0) x[n - 1] = true;
  const auto out = got(session.zeros<bool>({1}));
  return {{out}, [=](Graph& g) { return g.add_node(reduce(x, out, {ReduceOp::any}), "any"); }};
}

Made skipped(const Session& session, std::int64_t n) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<double>({n}));
  const auto up = got(session.full<std::int64_t>({1}, 1));
  return {{y}, [=](Graph& g) { return g.add_node(skippable({{"", twice(x, y)}}, when(up)), "skippable"); }};
}

// What the counter says is copied out, body after body.
Made repeated(const Session& session, std::int64_t n) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<double>({n}));
  const auto up = got(session.full<std::int64_t>({1}, 1));
  const auto index = got(session.zeros<std::int64_t>({1}));
  const auto last = got(session.zeros<double>({1}));
  const NodeKind loop =
      repeat_while({{"", twice(x, y)}, {"", copy(index, last)}}, when(up), 5, ArrayView(index));
  return {{y, index, last}, [=](Graph& g) { return g.add_node(loop, "loop"); }};
}

Made fork(const Session& session, std::int64_t n, bool callables) {
  const auto x = input(session, n);
  std::vector<Array<double>> y;
  for (int i = 0; i < 5; ++i) y.push_back(got(session.zeros<double>({n})));
  const Group inner{{{{{"b", twice(y[0], y[1])}}}, {{{"c", twice(y[0], y[2])}}}}};
  const NodeKind beside = callables ? NodeKind(halve(x, y[4])) : NodeKind(twice(x, y[4]));
  std::vector<BranchSpec> branches{
      {{{"a", twice(x, y[0])}, {"", inner}, {"d", twice(y[1], y[3])}}},
      {{{"e", beside}}},
  };
  return {{y[0], y[1], y[2], y[3], y[4]}, [=](Graph& g) { return g.add_group(branches); }};
}

Made through_scratch(const Session& session, std::int64_t n) {
  const auto x = input(session, n);
  const auto y = got(session.zeros<double>({n}));
  const auto add = [=](Graph& g) -> Status {
    EAGLE_ASSIGN_OR_RETURN(const ArrayView between, g.scratch({n}, DType::f64, "between"));
    EAGLE_RETURN_IF_ERROR(g.add(twice(x, between)));
    return g.add(twice(between, y));
  };
  return {{y}, add};
}

std::vector<Kind> kinds() {
  const auto with_tier = [](HostTier tier) {
    return [tier](const Session& session, std::int64_t n) { return callable(session, n, tier); };
  };
  const auto reducing = [](ReduceOptions options) {
    return [options](const Session& session, std::int64_t n) { return reduced(session, n, options); };
  };
  const auto forking = [](bool callables) {
    return [callables](const Session& session, std::int64_t n) { return fork(session, n, callables); };
  };
  return {
      {"plan launch", plan_launch},
      {"opaque", with_tier(HostTier::captured)},
      {"opaque stream", with_tier(HostTier::stream)},
      {"opaque eager", with_tier(HostTier::eager)},
      {"copy", copied},
      {"reduce sum", reducing({ReduceOp::sum}), false},
      {"reduce compensated", reducing({ReduceOp::sum, true}), false},
      {"reduce max", reducing({ReduceOp::max}), false},
      {"reduce rows", reduced_rows, false},
      {"reduce any", any_of, false},
      {"skippable", skipped},
      {"repeat_while", repeated},
      {"group of launches", forking(false)},
      {"group with a callable", forking(true)},
      {"scratch chain", through_scratch},
  };
}

std::int64_t elements(const ArrayView& view) {
  std::int64_t count = 1;
  for (const std::int64_t extent : view.shape) count *= extent;
  return count;
}

std::vector<std::byte> bytes_of(const std::vector<ArrayView>& outputs) {
  std::vector<std::byte> all;
  for (const ArrayView& view : outputs) {
    const auto* data = static_cast<const std::byte*>(view.data);
    all.insert(all.end(), data, data + elements(view) * view.item_bytes);
  }
  return all;
}

// NaN where there are reals, and a pattern that no result has elsewhere.
void poison(const std::vector<ArrayView>& outputs) {
  for (const ArrayView& view : outputs) {
    auto* data = static_cast<std::byte*>(view.data);
    const std::int64_t count = elements(view);
    if (view.dtype == DType::f64) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(data + 8 * i, &nan, 8);
    } else if (view.dtype == DType::boolean) {
      std::memset(data, 0, static_cast<std::size_t>(count));
    } else {
      std::memset(data, 0x5a, static_cast<std::size_t>(count * view.item_bytes));
    }
  }
}

class NodeKinds : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(NodeKinds);

TEST_P(NodeKinds, MakeTheirOutputsAnewInEachReplay) {
  for (const Kind& kind : kinds()) {
    // Its callable stores on the GPU, and this one in memory of the host.
    if (on_gpu() && std::string_view(kind.name) == "opaque stream") continue;
    for (const std::int64_t n : {1, 7, 5000}) {
      SCOPED_TRACE(std::string(kind.name) + ", n = " + std::to_string(n));
      const Made made = kind.make(session(), n);
      Graph g(session());
      ASSERT_TRUE(made.add(g).ok());
      const Status built = g.build();
      ASSERT_TRUE(built.ok()) << built.to_string();
      poison(made.outputs);
      const std::vector<std::byte> poisoned = bytes_of(made.outputs);
      ASSERT_TRUE(g.launch().ok());
      const std::vector<std::byte> first = bytes_of(made.outputs);
      EXPECT_NE(first, poisoned) << "the first launch stored nothing";
      for (const std::int64_t launches : {1, 3}) {
        poison(made.outputs);
        ASSERT_TRUE(g.launch(launches).ok());
        EXPECT_EQ(bytes_of(made.outputs), first) << launches << " launches over poisoned outputs";
      }
    }
  }
}

TEST_P(NodeKinds, OverNoSamplesAreBuiltAndLaunchedOrRefusedByName) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Made made = kind.make(session(), 0);
    Graph g(session());
    const Status added = made.add(g);
    if (!kind.takes_none) {
      expect_refused(added, Reason::bad_value, {": x: expected at least one element"});
      continue;
    }
    ASSERT_TRUE(added.ok()) << added.to_string();
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
    EXPECT_EQ(must(g.launch(2)).launches, 2);
    EXPECT_TRUE(must(g.edges()).empty()) << "nothing shares a byte with nothing";
    EXPECT_EQ(must(g.host_picture()), must(g.show()));
  }
}

// ---- counters of loops

class LoopCounters : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(LoopCounters);

TEST_P(LoopCounters, TellTheBodyItsNumberAndLaterNodesHowMany) {
  const auto live = full<std::int64_t>(1, 5);
  const auto index = full<std::int64_t>(1, -1);
  const auto real = zeros<double>({1});
  const auto y = zeros<double>({1});
  const auto after = zeros<std::int32_t>({1});
  std::vector<std::int64_t> seen;
  const auto note = [&] {
    seen.push_back(index[0]);
    --live[0];
    return Status();
  };
  Graph g(session());
  const NodeKind loop = repeat_while({{"note", opaque(note, {{{"index", index}}, {{"live", live}}})},
                                      {"real", copy(index, real)},
                                      {"y", twice(real, y)}},
                                     when(live), 64, ArrayView(index));
  ASSERT_TRUE(g.add_node(loop, "loop").ok());
  ASSERT_TRUE(g.add_node(copy(index, after), "after").ok());
  ASSERT_TRUE(g.build().ok());
  EXPECT_THAT(must(g.edges()), ::testing::ElementsAre(Edge{0, 1, "iterations", Hazard::raw}));
  ASSERT_TRUE(g.launch().ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(y[0], 2.0 * 4 + 1);
  EXPECT_EQ(index[0], 5);
  EXPECT_EQ(after[0], 5);
  // Now the guard is down at once: the last launch ran no body.
  EXPECT_THAT(must(g.launch()).iterations, ::testing::ElementsAre(0));
  EXPECT_EQ(after[0], 0);
  EXPECT_EQ(must(g.host_picture()), must(g.show()));
  EXPECT_EQ(must(g.host_explanation("loop")), view::to_text(must(g.explain("loop"))));
}

TEST_P(LoopCounters, OfLoopsInLoopsStartAgain) {
  const auto outer = zeros<std::int32_t>({1});
  const auto inner = zeros<std::int64_t>({1});
  const auto up = full<bool>(1, true);
  std::vector<std::pair<int, int>> seen;
  const auto note = [&] {
    seen.emplace_back(outer[0], static_cast<int>(inner[0]));
    return Status();
  };
  const NodeKind body =
      repeat_while({{"", opaque(note, {{{"o", outer}, {"i", inner}}, {}})}}, when(up), 2, ArrayView(inner));
  Graph g(session());
  ASSERT_TRUE(g.add_node(repeat_while({{"inner", body}}, when(up), 3, ArrayView(outer))).ok());
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(g.launch().ok());
  using Pair = std::pair<int, int>;
  EXPECT_THAT(seen,
              ::testing::ElementsAre(Pair{0, 0}, Pair{0, 1}, Pair{1, 0}, Pair{1, 1}, Pair{2, 0}, Pair{2, 1}));
}

TEST_P(LoopCounters, MayEndTheirOwnLoop) {
  const auto index = zeros<std::int64_t>({1});
  const auto most = full<std::int64_t>(1, 3);
  int runs = 0;
  Graph g(session());
  const SkipGuard until{{"index", index}, std::pair<std::string, ArrayView>("most", most), false};
  const auto count = [&] {
    ++runs;
    return Status();
  };
  ASSERT_TRUE(g.add_node(repeat_while({{"", opaque(count, {})}}, until, 100, ArrayView(index))).ok());
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(g.launch(2).ok());
  EXPECT_EQ(runs, 6);
}

TEST_P(LoopCounters, AreRefusedByWhatIsWrong) {
  const auto up = full<bool>(1, true);
  const auto index = zeros<std::int64_t>({1});
  const auto reals = zeros<double>({1});
  const auto two = zeros<std::int64_t>({2});
  const auto add = [&](const ArrayView& counter, const NamedArrays& writes = {}) {
    Graph g(session());
    const auto nothing = [] { return Status(); };
    return g.add_node(repeat_while({{"body", opaque(nothing, {{}, writes})}}, when(up), 3, counter), "loop");
  };
  EXPECT_TRUE(add(index).ok());
  expect_refused(add(reals), Reason::wrong_dtype, {"'loop'", "counter", "int64 or int32"});
  expect_refused(add(two), Reason::wrong_shape, {"'loop'", "counter", "one element"});
  expect_refused(add(index, {{"mine", index}}), Reason::bad_value, {"'loop'", "'body'", "'mine'"});
  ArrayView fixed = index;
  fixed.read_only = true;
  expect_refused(add(fixed), Reason::read_only_array, {"'loop'", "counter", "read-only"});
  std::int64_t own = 0;
  ArrayView mine = index;
  mine.data = &own;
  mine.owner = nullptr;
  if (remote()) {
    expect_refused(add(mine), Reason::private_array, {"'loop'", "counter", "session.zeros"});
  } else {
    EXPECT_TRUE(add(mine).ok());
  }
}

// ---- groups in branches

class InnerGroups : public OnEveryHost {
protected:
  // a, then b beside c, then d; e beside all of it.
  std::vector<BranchSpec> branches(const std::vector<Array<double>>& y) {
    const Group inner{{{{{"b", twice(y[0], y[1])}}}, {{{"c", twice(y[0], y[2])}}}}};
    return {{{{"a", twice(x_, y[0])}, {"", inner}, {"d", twice(y[1], y[3])}}}, {{{"e", twice(x_, y[4])}}}};
  }
  void SetUp() override {
    OnEveryHost::SetUp();
    if (IsSkipped()) return;
    x_ = full<double>(8, 1.0);
    for (int i = 0; i < 5; ++i) y_.push_back(zeros<double>({8}));
  }
  ArrayView x_;
  std::vector<Array<double>> y_;
};
EAGLE_ON_EVERY_HOST(InnerGroups);

TEST_P(InnerGroups, RunInTheirPlaceAndLookTheSameEverywhere) {
  Graph g(session());
  ASSERT_TRUE(g.add_group(branches(y_)).ok());
  ASSERT_TRUE(g.build().ok());
  EXPECT_THAT(g.node_labels(), ::testing::ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(must(g.edges()),
              ::testing::ElementsAre(Edge{0, 1, "y", Hazard::raw}, Edge{0, 2, "y", Hazard::raw},
                                     Edge{1, 3, "y", Hazard::raw}));
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(y_[0][0], 3.0);
  EXPECT_EQ(y_[2][7], 7.0);
  EXPECT_EQ(y_[3][7], 15.0);
  EXPECT_EQ(y_[4][7], 3.0);
  EXPECT_THAT(must(g.show()), ::testing::HasSubstr("5 nodes · 2 groups"));
  for (const PictureFormat format :
       {PictureFormat::text, PictureFormat::mermaid, PictureFormat::dot, PictureFormat::svg}) {
    EXPECT_EQ(must(g.host_picture(format)), must(g.picture(format)));
  }
  EXPECT_EQ(must(g.explain("b", "c")).relation, graph::Relation::siblings);
  EXPECT_EQ(must(g.explain("c", "e")).relation, graph::Relation::siblings);
  EXPECT_EQ(must(g.explain("a", "c")).relation, graph::Relation::ordered);
  EXPECT_EQ(must(g.explain("c", "d")).relation, graph::Relation::independent);
}

TEST_P(InnerGroups, AreBranchTasksWhereAllOfTheirNodesAreSmallLaunches) {
  Graph g(session());
  ASSERT_TRUE(g.add_group(branches(y_)).ok());
  ASSERT_TRUE(g.build().ok());
  const bool team = must(g.launch()).threads >= 2;
  EXPECT_THAT(g.schedule(), ::testing::ElementsAre(team ? "branch_tasks" : "work_share"));
  Graph mixed(session());
  auto with_callable = branches(y_);
  std::get<Group>(with_callable[0].nodes[1].second)
      .branches[1]
      .nodes.emplace_back("look", opaque([] { return Status(); }, {}));
  ASSERT_TRUE(mixed.add_group(with_callable).ok());
  ASSERT_TRUE(mixed.build().ok());
  EXPECT_THAT(mixed.schedule(), ::testing::ElementsAre("work_share"));
}

TEST_P(InnerGroups, RaceWithEachOtherAndWithWhatIsBesideThem) {
  auto within = branches({y_[0], y_[1], y_[1], y_[3], y_[4]});
  Graph inside(session());
  ASSERT_TRUE(inside.add_group(within).ok());
  expect_refused(inside.build(), Reason::racing_siblings, {"node 1 'b'", "node 2 'c'", "WAW"});
  EXPECT_EQ(must(inside.edges()).size(), 4U) << "edges are there to be looked at";

  auto across = branches({y_[0], y_[1], y_[2], y_[3], y_[2]});
  Graph outside(session());
  ASSERT_TRUE(outside.add_group(across).ok());
  expect_refused(outside.build(), Reason::racing_siblings, {"node 2 'c'", "node 4 'e'", "WAW"});
}

TEST_P(InnerGroups, AreBoundAgainLikeTheRest) {
  Graph g(session());
  ASSERT_TRUE(g.add_group(branches(y_)).ok());
  ASSERT_TRUE(g.build().ok());
  const auto other = zeros<double>({8});
  ASSERT_TRUE(g.rebind({{{"c", {}, "y"}, other}}).ok());
  ASSERT_TRUE(g.launch().ok());
  EXPECT_EQ(other[7], 7.0);
  EXPECT_EQ(y_[2][7], 0.0);
  expect_refused(g.rebind({{{"c", {}, "y"}, y_[1]}}), Reason::racing_siblings, {"rebind", "'b'", "'c'"});
}

TEST_P(InnerGroups, AreRefusedByWhatIsWrong) {
  Graph g(session());
  const Group lonely{{{{{"b", twice(x_, y_[1])}}}}};
  expect_refused(g.add_group({{{{"", lonely}}}, {{{"e", twice(x_, y_[4])}}}}), Reason::malformed_graph,
                 {"add_group", "branch 0", "at least two branches"});
  const Group named{{{{{"b", twice(x_, y_[1])}}}, {{{"c", twice(x_, y_[2])}}}}};
  expect_refused(g.add_group({{{{"fork", named}}}, {{{"e", twice(x_, y_[4])}}}}), Reason::bad_value,
                 {"add_group", "'fork'", "has no name"});
  expect_refused(g.add_node(named), Reason::wrong_type, {"add_node", "add_group"});
  EXPECT_TRUE(g.node_labels().empty());
}

TEST_P(InnerGroups, HoldLoopsThatReportTheirRounds) {
  const auto up = full<bool>(1, true);
  const NodeKind loop = repeat_while({{"", twice(y_[0], y_[1])}}, when(up), 4);
  const Group inner{{{{{"loop", loop}}}, {{{"c", twice(y_[0], y_[2])}}}}};
  Graph g(session());
  ASSERT_TRUE(g.add_group({{{{"a", twice(x_, y_[0])}, {"", inner}}}, {{{"e", twice(x_, y_[4])}}}}).ok());
  ASSERT_TRUE(g.build().ok());
  EXPECT_THAT(must(g.launch()).iterations, ::testing::ElementsAre(4));
}

// ---- scratch planes, as the host tells of them

class ScratchReports : public OnEveryHost {};
EAGLE_ON_EVERY_HOST(ScratchReports);

TEST_P(ScratchReports, AreTheSameFromTheGraphAndFromTheListOfItsHost) {
  const auto x = full<double>(100, 1.0);
  const auto y = zeros<double>({100});
  Graph g(session(), {"chain"});
  const ArrayView one = must(g.scratch({100}, DType::f64, "one"));
  const ArrayView two = must(g.scratch({100}, DType::f64, "two"));
  ASSERT_TRUE(g.add(twice(x, one)).ok());
  ASSERT_TRUE(g.add(twice(one, two)).ok());
  ASSERT_TRUE(g.add(twice(two, y)).ok());
  ASSERT_TRUE(g.build().ok());
  ASSERT_TRUE(g.launch().ok());
  const std::vector<GraphInfo> listed = must(session().graphs());
  ASSERT_EQ(listed.size(), 1U);
  const graph::ScratchLayout own = g.scratch_layout();
  EXPECT_EQ(listed[0].scratch.bytes, own.bytes);
  ASSERT_EQ(listed[0].scratch.uses.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(listed[0].scratch.uses[i].name, own.uses[i].name);
    EXPECT_EQ(listed[0].scratch.uses[i].bytes, 800U);
    EXPECT_EQ(listed[0].scratch.uses[i].in_memory, own.uses[i].in_memory);
    EXPECT_EQ(listed[0].scratch.uses[i].offset, own.uses[i].offset);
  }
}

}  // namespace
}  // namespace eagle::conformance
