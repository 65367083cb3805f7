// The conformance table of the graph model (docs/manual/graph_model.md): one row, one case, on every host.
//
// W writes, R reads, ip both; x, y and z are distinct arrays of 8, M is (6, 4), c complex. Nodes are host
// nodes where a row only speaks of edges. `tests/run.sh --suite conformance` prints the rows with their
// outcome.
#include <cstdio>
#include <stdexcept>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

ArrayView sliced(ArrayView view, std::size_t axis, std::int64_t first, std::int64_t count,
                 std::int64_t step = 1) {
  view.data = static_cast<std::byte*>(view.data) + first * view.strides[axis];
  view.shape[axis] = count;
  view.strides[axis] *= step;
  return view;
}

ArrayView at(ArrayView view, std::size_t axis, std::int64_t index) {
  view.data = static_cast<std::byte*>(view.data) + index * view.strides[axis];
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  return view;
}

ArrayView turned(ArrayView view) {
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

ArrayView as_bytes(ArrayView view) {
  view.dtype = DType::other;
  view.shape = {view.shape[0] * 8};
  view.strides = {1};
  view.item_bytes = 1;
  return view;
}

ArrayView broadcast(ArrayView view, std::int64_t n) {
  view.shape = {n};
  view.strides = {0};
  return view;
}

// What a row builds its graphs from.
class Bench {
public:
  explicit Bench(Session session) : session_(std::move(session)) {}

  [[nodiscard]] const Session& session() const { return session_; }
  template <typename T = double>
  [[nodiscard]] ArrayView array(const Shape& shape) const {
    auto made = session_.zeros<T>(shape);
    if (!made.ok()) std::abort();
    return *made;
  }
  // Real and imaginary parts of a complex array of 8.
  [[nodiscard]] std::pair<ArrayView, ArrayView> parts() const {
    const ArrayView c = array({8, 2});
    return {at(c, 1, 0), at(c, 1, 1)};
  }
  [[nodiscard]] BoundPlan plan(std::int64_t n) const {
    return {affine(), {{"x", array({n})}, {"y", array({n})}, {"a", 1.0}, {"b", 0.0}}};
  }

private:
  Session session_;
};

NodeKind touches(NamedArrays reads, NamedArrays writes) {
  return opaque([] { return Status(); }, {std::move(reads), std::move(writes)});
}
NodeKind writes(const std::string& name, const ArrayView& array) { return touches({}, {{name, array}}); }
NodeKind reads(const std::string& name, const ArrayView& array) { return touches({{name, array}}, {}); }
NodeKind in_place(const std::string& name, const ArrayView& array) {
  return touches({{name, array}}, {{name, array}});
}

// "(0,1,RAW y) (0,2,WAR x)", "none".
std::string edges_of(const Graph& g) {
  const auto edges = g.edges();
  if (!edges.ok()) return edges.status().to_string();
  std::string out;
  for (const Edge& edge : *edges) {
    out += (out.empty() ? "(" : " (") + std::to_string(edge.source) + "," + std::to_string(edge.destination) +
           "," + std::string(name_of(edge.kind)) + " " + edge.plane + ")";
  }
  return out.empty() ? "none" : out;
}

std::string edges_of(const Bench& bench, const std::vector<NodeKind>& nodes) {
  Graph g(bench.session());
  for (const NodeKind& node : nodes) {
    if (const Status added = g.add_node(node); !added.ok()) return added.to_string();
  }
  return edges_of(g);
}

// "refused WAW" and whichever of the names the message holds.
std::string refusal_of(Graph& g, const std::vector<std::string>& names) {
  const Status built = g.build();
  if (built.ok()) return "built";
  if (built.reason() != Reason::racing_siblings) return built.to_string();
  std::string out = "refused";
  for (const std::string kind : {"RAW", "WAR", "WAW"}) {
    if (built.message().find("(" + kind + ",") != std::string::npos) out += " " + kind;
  }
  for (const std::string& name : names) {
    if (built.message().find("'" + name + "'") != std::string::npos) out += " " + name;
  }
  return out;
}

std::string siblings(const Bench& bench, const BranchSpec& left, const BranchSpec& right,
                     const std::vector<std::string>& names) {
  Graph g(bench.session());
  const Status added = g.add_group({left, right});
  return added.ok() ? refusal_of(g, names) : added.to_string();
}

// The diamond whose left branch writes y and then updates it in place.
std::string diamond(const Bench& bench) {
  const ArrayView x = bench.array({8});
  const ArrayView y = bench.array({8});
  const ArrayView z = bench.array({8});
  Graph g(bench.session());
  static_cast<void>(g.add_node(writes("x", x), "seed"));
  static_cast<void>(g.add_group({{{{"l1", touches({{"x", x}}, {{"y", y}})}, {"l2", in_place("y", y)}}},
                                 {{{"r", touches({{"x", x}}, {{"z", z}})}}}}));
  static_cast<void>(g.add_node(touches({{"y", y}, {"z", z}}, {}), "join"));
  return edges_of(g);
}

std::string guarded(const Bench& bench, std::int64_t written_later) {
  const ArrayView count = bench.array<std::int64_t>({3});
  const auto cell = [&](std::int64_t i) { return sliced(count, 0, i, 1); };
  const NodeKind conditional = skippable({{"", touches({}, {})}}, {{"count", cell(1)}, std::nullopt, false});
  return edges_of(bench, {writes("cnt", cell(1)), conditional, writes("later", cell(written_later))});
}

std::string shared_mask(const Bench& bench) {
  const ArrayView mask = bench.array<bool>({8});
  const auto finishing = [&] {
    return BoundPlan{counter(), {{"n", bench.array({8})}, {"limit", 3.0}, {"done", mask}}};
  };
  return siblings(bench, {{{"left", finishing()}}}, {{{"right", finishing()}}}, {"left", "right", "done"});
}

std::string schedule(const Bench& bench, std::int64_t n, bool with_opaque) {
  Graph g(bench.session());
  BranchSpec right{{{"", bench.plan(n)}}};
  if (with_opaque) right.nodes.emplace_back("", touches({}, {}));
  Status done = g.add_group({{{{"", bench.plan(n)}}}, right});
  if (done.ok()) done = g.build();
  return done.ok() ? g.schedule().at(0) : done.to_string();
}

std::string exceptions(const Bench& bench) {
  int first = 0;
  int third = 0;
  bool broken = true;
  const auto counting = [](int& runs) {
    return opaque(
        [&runs] {
          ++runs;
          return Status();
        },
        {});
  };
  Graph g(bench.session());
  static_cast<void>(g.add_node(counting(first)));
  static_cast<void>(g.add_node(opaque(
      [&]() -> Status {
        if (broken) throw std::runtime_error("own");
        return {};
      },
      {})));
  static_cast<void>(g.add_node(counting(third)));
  if (const Status built = g.build(); !built.ok()) return built.to_string();
  std::string out;
  try {
    static_cast<void>(g.launch(3));
    out = "returned";
  } catch (const std::runtime_error&) {
    out = "propagates";
  }
  out += ", " + std::to_string(first) + " and " + std::to_string(third);
  broken = false;
  static_cast<void>(g.launch(2));
  return out + ", then " + std::to_string(first) + " and " + std::to_string(third);
}

struct Row {
  const char* input;
  const char* expected;
  int threads;
  std::string (*actual)(const Bench&);
};

// clang-format off
const Row table[] = {
    {"R x W y; R y W z; R z W x", "(0,1,RAW y) (0,2,WAR x) (1,2,RAW z)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8}), y = b.array({8}), z = b.array({8});
       return edges_of(b, {touches({{"x", x}}, {{"y", y}}), touches({{"y", y}}, {{"z", z}}),
                           touches({{"z", z}}, {{"x", x}})}); }},
    {"W x; ip x", "(0,1,RAW x) (0,1,WAW x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", x), in_place("x", x)}); }},
    {"ip x; W x", "(0,1,WAW x) (0,1,WAR x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {in_place("x", x), writes("x", x)}); }},
    {"ip x; R x", "(0,1,RAW x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {in_place("x", x), reads("x", x)}); }},
    {"W p=x; R q=x", "(0,1,RAW p)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("p", x), reads("q", x)}); }},
    {"R p=x; W q=x", "(0,1,WAR p)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {reads("p", x), writes("q", x)}); }},
    {"W a=x,b=x; R c=x", "(0,1,RAW a) (0,1,RAW b)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {touches({}, {{"a", x}, {"b", x}}), reads("c", x)}); }},
    {"W x[::2]; R x[1::2]", "none", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", sliced(x, 0, 0, 4, 2)), reads("x", sliced(x, 0, 1, 4, 2))}); }},
    {"W x; R x[4:]", "(0,1,RAW x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", x), reads("x", sliced(x, 0, 4, 4))}); }},
    {"W x; R x[8:]", "none", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", x), reads("x", sliced(x, 0, 8, 0))}); }},
    {"M(6,4): W M[:,0]; R M[:,1]", "none", 2, [](const Bench& b) {
       const ArrayView m = b.array({6, 4});
       return edges_of(b, {writes("m", at(m, 1, 0)), reads("m", at(m, 1, 1))}); }},
    {"M(6,4): W M[0]; R M[:,0]", "(0,1,RAW m)", 2, [](const Bench& b) {
       const ArrayView m = b.array({6, 4});
       return edges_of(b, {writes("m", at(m, 0, 0)), reads("m", at(m, 1, 0))}); }},
    {"M(6,4): W M; R M.T", "(0,1,RAW m)", 2, [](const Bench& b) {
       const ArrayView m = b.array({6, 4});
       return edges_of(b, {writes("m", m), reads("m", turned(m))}); }},
    {"M(20000,8): W M[:,:4]; R M[:,4:]", "none", 2, [](const Bench& b) {
       const ArrayView m = b.array({20'000, 8});
       return edges_of(b, {writes("m", sliced(m, 1, 0, 4)), reads("m", sliced(m, 1, 4, 4))}); }},
    {"W x[::-2]; R x[::2]", "none", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", sliced(x, 0, 7, 4, -2)), reads("x", sliced(x, 0, 0, 4, 2))}); }},
    {"R broadcast(x[:1],5); W x[1:]", "none", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {reads("x", broadcast(x, 5)), writes("x", sliced(x, 0, 1, 7))}); }},
    {"W broadcast(x[:1],5); R x[1:]", "none", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", broadcast(x, 5)), reads("x", sliced(x, 0, 1, 7))}); }},
    {"W broadcast(x[:1],5); R x[:1]", "(0,1,RAW x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", broadcast(x, 5)), reads("x", sliced(x, 0, 0, 1))}); }},
    {"W x.view(u8)[7:9]; R x[1:]", "(0,1,RAW x)", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       return edges_of(b, {writes("x", sliced(as_bytes(x), 0, 7, 2)), reads("x", sliced(x, 0, 1, 7))}); }},
    {"W c.real; R c.imag", "none", 2, [](const Bench& b) {
       const auto [real, imaginary] = b.parts();
       return edges_of(b, {writes("c", real), reads("c", imaginary)}); }},
    {"ip x, four times: all edges", "18", 2, [](const Bench& b) {
       const ArrayView x = b.array({8});
       Graph g(b.session());
       for (int i = 0; i < 4; ++i) static_cast<void>(g.add_node(in_place("x", x)));
       return std::to_string(g.edges().ok() ? g.edges()->size() : 0); }},
    {"siblings W y, W y", "refused WAW L R y", 2, [](const Bench& b) {
       const ArrayView y = b.array({8});
       return siblings(b, {{{"L", writes("y", y)}}}, {{{"R", writes("y", y)}}}, {"L", "R", "y"}); }},
    {"siblings L:W p=y, R:R q=y", "refused RAW L R p q", 2, [](const Bench& b) {
       const ArrayView y = b.array({8});
       return siblings(b, {{{"L", writes("p", y)}}}, {{{"R", reads("q", y)}}}, {"L", "R", "p", "q"}); }},
    {"siblings L:R p=y, R:W q=y", "refused WAR L R p q", 2, [](const Bench& b) {
       const ArrayView y = b.array({8});
       return siblings(b, {{{"L", reads("p", y)}}}, {{{"R", writes("q", y)}}}, {"L", "R", "p", "q"}); }},
    {"siblings R y, R y", "built", 2, [](const Bench& b) {
       const ArrayView y = b.array({8});
       return siblings(b, {{{"L", reads("y", y)}}}, {{{"R", reads("y", y)}}}, {"L", "R"}); }},
    {"list branch [A1, A2:W z] vs B:W z[2:]", "refused WAW A2 B", 2, [](const Bench& b) {
       const ArrayView x = b.array({8}), z = b.array({8});
       return siblings(b, {{{"A1", writes("x", x)}, {"A2", writes("z", z)}}},
                       {{{"B", writes("z", sliced(z, 0, 2, 6))}}}, {"A1", "A2", "B"}); }},
    {"W x; group [[l1 R x W y, l2 ip y],[r R x W z]]; join R y,z",
     "(0,1,RAW x) (0,3,RAW x) (1,2,RAW y) (1,2,WAW y) (1,4,RAW y) (2,4,RAW y) (3,4,RAW z)", 2, diamond},
    {"setter W cnt[1]; skippable(intent(cnt,1)); W cnt[1:2]", "(0,1,RAW cnt) (0,2,WAW cnt) (1,2,WAR count)", 2,
     [](const Bench& b) { return guarded(b, 1); }},
    {"setter W cnt[1]; skippable(intent(cnt,1)); W cnt[0:1]", "(0,1,RAW cnt)", 2,
     [](const Bench& b) { return guarded(b, 0); }},
    {"two finishing plans sharing a mask as siblings", "refused RAW left right done", 2, shared_mask},
    {"group of plans 2 x 4096, team 2", "branch_tasks", 2, [](const Bench& b) { return schedule(b, 4096, false); }},
    {"group of plans 2 x 4097, team 2", "work_share", 2, [](const Bench& b) { return schedule(b, 4097, false); }},
    {"group of plans 2 x 4096, team 1", "work_share", 1, [](const Bench& b) { return schedule(b, 4096, false); }},
    {"group of plans 2 x 4096 with an opaque, team 2", "work_share", 2,
     [](const Bench& b) { return schedule(b, 4096, true); }},
    {"exception in node 2 of 3, launch(3); then launch(2)", "propagates, 1 and 0, then 3 and 2", 2, exceptions},
};
// clang-format on

struct Case {
  HostUnderTest host;
  std::size_t row = 0;
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.host.name << " row " << tested.row; }

class Table : public ::testing::TestWithParam<Case> {};

TEST_P(Table, Holds) {
  const Row& row = table[GetParam().row];
  // What tests/run.sh prints.
  std::printf("row %02zu | %s | %s | %s\n", GetParam().row, GetParam().host.name.c_str(), row.input,
              row.expected);
  std::fflush(stdout);
  const bool of_cpus = std::string_view(row.input).starts_with("group of plans");
  if (GetParam().host.has("gpu") && of_cpus) GTEST_SKIP() << "how threads of a CPU share a group";
  StatusOr<Session> session = GetParam().host.open_with(row.threads);
  if (!session.ok() && session.status().code() == Code::unavailable)
    GTEST_SKIP() << session.status().message();
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  EXPECT_EQ(row.actual(Bench(*session)), row.expected) << row.input;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const HostUnderTest& host : all_hosts()) {
    for (std::size_t row = 0; row < std::size(table); ++row) all.push_back({host, row});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Table, ::testing::ValuesIn(cases()), [](const auto& tested) {
  return (tested.param.row < 10 ? "0" : "") + std::to_string(tested.param.row) + "_" + tested.param.host.name;
});

}  // namespace
}  // namespace eagle::conformance
