// Reduce nodes: what may be reduced into what, what they touch, and how they run.
#include <gmock/gmock.h>

#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/graph/run_plan.h"
#include "engine/graph/schedule.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::DType;
using plane::testing::slice;
using plane::testing::transposed;
using testing::Description;
using ::testing::HasSubstr;
using testing::launch;
using testing::View;

v1::Node reduce(const View& x, const View& out, v1::ReduceOp op = v1::REDUCE_SUM, bool compensated = false) {
  return testing::reduce("", x, out, op, compensated);
}

Status refusal(const Description& d, PrivateKernelPlanes planes = PrivateKernelPlanes::refused) {
  return d.try_read(planes).status();
}

void expect_refused(const Status& status, Reason reason, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.reason(), reason) << status.to_string();
  for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
}

TEST(ReadReduce, TakesOneRowAndMany) {
  Description d;
  d.add(reduce(d.array({100}), d.array({1})));
  d.add(reduce(d.array({100}), d.array({})));
  d.add(reduce(d.array({4, 25}, DType::i32), d.array({4}, DType::i32), v1::REDUCE_MAX));
  d.add(reduce(d.array({1, 7}, DType::boolean), d.array({1}, DType::boolean), v1::REDUCE_ANY));
  d.add(reduce(d.array({9}, DType::f32), d.array({1}, DType::f32), v1::REDUCE_SUM, true));
  const Graph graph = d.graph();
  const auto& rows = *as<Reduce>(graph.stages[2].branches[0].nodes[0]);
  EXPECT_EQ(as<Reduce>(graph.stages[0].branches[0].nodes[0])->rows, 1);
  EXPECT_EQ(rows.rows, 4);
  EXPECT_EQ(rows.samples, 25);
  EXPECT_EQ(rows.op, kernel::ReduceOp::max);
  EXPECT_EQ(rows.scalar, kernel::Scalar::i32);
  EXPECT_EQ(graph.stages[0].branches[0].nodes[0].label, "reduce");
  EXPECT_TRUE(as<Reduce>(graph.stages[4].branches[0].nodes[0])->compensated);
}

TEST(ReadReduce, RefusesByTheNameOfTheArgument) {
  struct Case {
    v1::Node node;
    Reason reason;
    std::vector<std::string> parts;
  };
  Description d;
  const View x = d.array({100}), rows = d.array({4, 25}), out = d.array({1}), four = d.array({4});
  const View truth = d.array({100}, DType::boolean), verdict = d.array({1}, DType::boolean);
  const View whole = d.array({100}, DType::i64), total = d.array({1}, DType::i64);
  const View strided = slice(d.array({200}), 0, 0, 100, 2);
  const View within = slice(x, 0, 3, 1, 1);
  View odd = slice(x, 0, 0, 99);
  odd.offset = 4;
  const Case cases[] = {
      {reduce(d.array({0}), out), Reason::bad_value, {"x: ", "at least one element", "(0,)"}},
      {reduce(d.array({0, 4}), d.array({0})), Reason::bad_value, {"x: ", "at least one element"}},
      {reduce(d.array({2, 3, 4}), out), Reason::wrong_shape, {"x: ", "(rows, N)", "(2, 3, 4)"}},
      {reduce(d.array({}), out), Reason::wrong_shape, {"x: ", "(N,)"}},
      {reduce(x, four), Reason::wrong_shape, {"out: ", "one element", "(4,)"}},
      {reduce(rows, out), Reason::wrong_shape, {"out: ", "(4,)", "(1,)"}},
      {reduce(x, d.array({1, 1})), Reason::wrong_shape, {"out: ", "one element", "(1, 1)"}},
      {reduce(rows, d.array({4, 1})), Reason::wrong_shape, {"out: ", "(4,)", "(4, 1)"}},
      {reduce(odd, out), Reason::copy_bound_plane, {"x ", "not aligned", "byte 4"}},
      {reduce(x, total), Reason::wrong_dtype, {"out: ", "float64", "int64"}},
      {reduce(strided, out), Reason::copy_bound_plane, {"x ", "not contiguous"}},
      {reduce(transposed(rows), d.array({25})), Reason::copy_bound_plane, {"x ", "not contiguous"}},
      {reduce(rows, slice(d.array({8}), 0, 0, 4, 2)), Reason::copy_bound_plane, {"out ", "not contiguous"}},
      {reduce(x, within), Reason::plane_overlap, {"out: ", "shares bytes with x"}},
      {reduce(x, out, v1::REDUCE_ALL), Reason::wrong_dtype, {"op: ", "'all'", "float64", "'sum'"}},
      {reduce(truth, verdict, v1::REDUCE_SUM),
       Reason::wrong_dtype,
       {"op: ", "'sum'", "bool", "'all' or 'any'"}},
      {reduce(x, out, v1::REDUCE_MAX, true), Reason::bad_value, {"compensated: ", "'max'"}},
      {reduce(whole, total, v1::REDUCE_SUM, true), Reason::bad_value, {"compensated: ", "int64"}},
      {reduce(x, out, v1::REDUCE_OP_UNSPECIFIED), Reason::malformed_graph, {"op: "}},
      {reduce(x, out, static_cast<v1::ReduceOp>(99)), Reason::malformed_graph, {"op: ", "99"}},
  };
  for (const Case& c : cases) {
    d.message.clear_stages();
    d.add(c.node);
    SCOPED_TRACE(c.parts.front() + c.parts.back());
    const Status status = refusal(d);
    expect_refused(status, c.reason, c.parts);
    EXPECT_THAT(status.message(), HasSubstr("node 0 'reduce'"));
  }
}

TEST(ReadReduce, TheStrideOfASingleRowDoesNotMatter) {
  Description d;
  d.add(reduce(slice(d.array({4, 25}), 0, 0, 1, 3), d.array({1})));
  EXPECT_TRUE(d.try_read().ok()) << d.try_read().status().to_string();
}

TEST(ReadReduce, RefusesOtherElementTypesAndUnknownFields) {
  Description d;
  View other = d.array({8});
  other.dtype = DType::other;
  d.add(reduce(other, d.array({1})));
  expect_refused(refusal(d), Reason::wrong_dtype, {"x: ", "another element type"});
  d.message.clear_stages();
  d.add(reduce(d.array({8}), d.array({1})));
  auto& message = *d.message.mutable_stages(0)->mutable_node()->mutable_reduce();
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1234, 1);
  expect_refused(refusal(d), Reason::malformed_graph, {"field 1234"});
}

TEST(ReadReduce, RefusesPrivateMemoryInTheDaemonAlone) {
  Description d;
  d.add(reduce(d.private_array({8}), d.array({1})));
  expect_refused(refusal(d), Reason::private_array, {"x: ", "the reduction"});
  Description result;
  result.add(reduce(result.array({8}), result.private_array({1})));
  expect_refused(refusal(result), Reason::private_array, {"out: ", "the reduction"});
  EXPECT_TRUE(refusal(d, PrivateKernelPlanes::allowed).ok());
}

TEST(ReadReduce, ReadsXAndWritesOut) {
  Description d;
  const View x = d.array({8}), y = d.array({8}), total = d.array({1});
  d.add(launch("a", d.double_kernel(), {{"x", x}, {"y", y}}));
  d.add(reduce(y, total));
  d.add(launch("b", d.double_kernel(), {{"x", x}, {"y", y}}));
  d.add(reduce(x, total));
  const Graph graph = d.graph();
  EXPECT_THAT(edges(graph),
              ::testing::ElementsAre(Edge{0, 1, "y", Hazard::raw}, Edge{0, 2, "y", Hazard::waw},
                                     Edge{1, 2, "x", Hazard::war}, Edge{1, 3, "out", Hazard::waw}));
}

TEST(ReadReduce, InAGroupIsSharedWork) {
  Description d;
  d.add_group({{reduce(d.array({8}), d.array({1}))}, {reduce(d.array({8}), d.array({1}))}});
  const Graph graph = d.graph();
  const auto schedule = schedule_of(graph, 2);
  EXPECT_THAT(schedule, ::testing::ElementsAre(StageSchedule::work_share));
  const RunPlan plan = lower(graph, schedule);
  ASSERT_EQ(plan.program.size(), 2u);
  EXPECT_EQ(plan.reductions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<RunReduce>(plan.program[1]));
}

}  // namespace
}  // namespace eagle::graph
