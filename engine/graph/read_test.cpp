#include <gmock/gmock.h>

#include <bit>
#include <limits>

#include "engine/graph/graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::at;
using plane::testing::slice;
using plane::testing::transposed;
using testing::Description;
using ::testing::HasSubstr;
using testing::host;
using testing::launch;
using testing::skippable;
using testing::View;

void expect_refused(const StatusOr<Graph>& graph, Reason reason, const std::vector<std::string>& parts) {
  ASSERT_FALSE(graph.ok());
  const Status status = graph.status();
  EXPECT_EQ(status.reason(), reason) << status.to_string();
  for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
}

void expect_refused(const Description& description, Reason reason, const std::vector<std::string>& parts) {
  expect_refused(description.try_read(), reason, parts);
}

// A description with x, y of eight f64 and the kernels double (0) and finishing (1).
struct Fixture : Description {
  View x = array({8});
  View y = array({8});
  std::uint32_t twice = double_kernel();
  std::uint32_t finishing = finishing_kernel();
};

TEST(Read, GivesEveryNodeItsBindingsAndLabel) {
  Fixture d;
  const View done = d.array({8}, plane::DType::boolean);
  d.add(launch("", d.twice, {{"y", d.y}, {"x", d.x}}));
  d.add(launch("go", d.finishing, {{"done", done}, {"t", d.x}, {"dt", 0.25}}));
  const Graph graph = d.graph();
  ASSERT_EQ(graph.stages.size(), 2U);
  const Node& first = graph.stages[0].branches[0].nodes[0];
  EXPECT_EQ(first.label, "double");
  const auto& bound = *as<KernelLaunch>(first);
  EXPECT_EQ(bound.samples, 8);
  ASSERT_EQ(bound.arguments.size(), 2U);
  EXPECT_EQ(*bound.arguments[0].view, d.x);
  EXPECT_EQ(*bound.arguments[1].view, d.y);
  EXPECT_EQ(bound.arguments[1].layout.samples, 8);

  const Node& second = graph.stages[1].branches[0].nodes[0];
  EXPECT_EQ(second.label, "go");
  const auto& finishing = *as<KernelLaunch>(second);
  const int mask = graph.kernels[1]->terminated_argument();
  EXPECT_EQ(*finishing.arguments[static_cast<std::size_t>(mask)].view, done);
  EXPECT_FALSE(finishing.arguments[0].view.has_value());
  EXPECT_EQ(finishing.arguments[0].bits, std::bit_cast<std::uint64_t>(0.25));
}

TEST(Read, LabelsNodesAfterTheirKind) {
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  d.add(host("", {}, {})).add(host("", {}, {})).add(host("", {}, {}));
  d.message.mutable_stages(1)->mutable_node()->mutable_host()->set_tier(v1::HOST_TIER_STREAM);
  d.message.mutable_stages(2)->mutable_node()->mutable_host()->set_tier(v1::HOST_TIER_EAGER);
  d.add(skippable("", {cell}, {testing::stage(host("", {}, {}))}));
  d.add(testing::repeat_while("", {cell}, {testing::stage(host("", {}, {}))}, 1));
  std::vector<std::string> labels;
  for (const Stage& stage : d.graph().stages) labels.push_back(stage.branches[0].nodes[0].label);
  EXPECT_THAT(labels,
              ::testing::ElementsAre("opaque", "opaque_stream", "opaque_host", "skippable", "repeat_while"));
}

TEST(Read, KeepsGroupsGuardsPlanesAndLocations) {
  Fixture d;
  const View cells = d.array({4}, plane::DType::i32);
  d.message.set_name("demo");
  d.message.add_source_files("model.py");
  d.add_group({{host("a", {{"x", d.x}}, {}, 7)}, {host("b", {}, {{"y", d.y}}), host("c", {}, {})}});
  d.add(testing::repeat_while("loop", {at(cells, 0, 1), at(cells, 0, 2), true},
                              {testing::stage(host("s", {}, {}))}, 5));
  auto& location = *d.message.mutable_stages(1)->mutable_node()->mutable_location();
  location.set_line(12);
  location.set_column(4);
  const Graph graph = d.graph();
  EXPECT_EQ(graph.name, "demo");
  EXPECT_EQ(graph.planes[0].shared, (PlaneId{100, 0}));
  EXPECT_EQ(graph.planes[0].bytes, 64U);
  EXPECT_EQ(graph.planes[0].label, "array0");
  EXPECT_TRUE(graph.stages[0].group);
  ASSERT_EQ(graph.stages[0].branches.size(), 2U);
  EXPECT_EQ(as<HostNode>(graph.stages[0].branches[0].nodes[0])->call, 7U);
  EXPECT_EQ(graph.stages[0].branches[1].nodes.size(), 2U);
  const Node& loop = graph.stages[1].branches[0].nodes[0];
  EXPECT_EQ(loop.location, (kernel::Location{0, 12, 4}));
  const auto& conditional = *as<Conditional>(loop);
  EXPECT_EQ(conditional.max_iterations, 5);
  EXPECT_TRUE(conditional.guard.negated);
  EXPECT_EQ(conditional.guard.count.view.offset, 4);
  EXPECT_EQ(conditional.guard.baseline->view.offset, 8);
  EXPECT_EQ(conditional.body.size(), 1U);
}

TEST(ReadLaunch, RoundsANumberOnceToItsArgument) {
  kernel::KernelBuilder builder("numbers", kernel::Scalar::f32);
  const auto a = builder.param("a");
  const auto b = builder.param("b");
  const auto k = builder.integer_param("k");
  const auto x = builder.scalar("x");
  builder.output("y",
                 builder.add(builder.add(a, b), builder.add(x, builder.convert(k, kernel::Scalar::f32))));
  Description d;
  const View in = d.array({8}, plane::DType::f32);
  const View out = d.array({8}, plane::DType::f32);
  // 2^60 + 2^36 + 1 lies just above the middle of two floats, but exactly on it once it is a double: rounded
  // once it goes up, rounded twice it would go to the even one below.
  const std::int64_t between = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  d.add(launch("", d.kernel(builder),
               {{"a", 0.1}, {"b", between}, {"k", std::int64_t{-3}}, {"x", in}, {"y", out}}));
  const Graph graph = d.graph();
  const auto& arguments = as<KernelLaunch>(graph.stages[0].branches[0].nodes[0])->arguments;
  EXPECT_EQ(arguments[0].bits, std::bit_cast<std::uint32_t>(0.1F));
  EXPECT_EQ(arguments[1].bits, std::bit_cast<std::uint32_t>(0x1.000002p60F));
  EXPECT_EQ(arguments[2].bits, ~std::uint64_t{2});
}

TEST(ReadLaunch, RefusesBindingsThatDoNotFitTheKernel) {
  const std::string takes = "kernel 'double' takes 'x', 'y'";
  Fixture missing;
  missing.add(launch("n", missing.twice, {{"x", missing.x}}));
  expect_refused(missing, Reason::bad_binding, {"node 0 'n'", "argument 'y' is missing", takes});
  Fixture extra;
  extra.add(launch("n", extra.twice, {{"x", extra.x}, {"y", extra.y}, {"z", extra.y}}));
  expect_refused(extra, Reason::bad_binding, {"no argument 'z'", takes});
  Fixture twice;
  twice.add(launch("n", twice.twice, {{"x", twice.x}, {"y", twice.y}, {"x", twice.x}}));
  expect_refused(twice, Reason::bad_binding, {"argument 'x' is bound twice", takes});
}

TEST(ReadLaunch, RefusesNumbersForPlanesAndPlanesForNumbers) {
  Fixture number;
  number.add(launch("n", number.twice, {{"x", 1.0}, {"y", number.y}}));
  expect_refused(number, Reason::wrong_type, {"argument 'x': expected an array, found a number"});
  Fixture array;
  array.add(launch("n", array.finishing, {{"dt", array.x}}));
  expect_refused(array, Reason::wrong_type, {"argument 'dt' is a Param: expected a number, found an array"});
  Fixture none;
  none.add(launch("n", none.twice, {{"x", none.x}, {"y", none.y}}));
  none.message.mutable_stages(0)->mutable_node()->mutable_kernel()->mutable_bindings(0)->clear_view();
  expect_refused(none, Reason::malformed_graph, {"argument 'x'", "found neither"});
  Fixture empty;
  empty.add(launch("n", empty.finishing, {{"dt", 1.0}}));
  empty.message.mutable_stages(0)
      ->mutable_node()
      ->mutable_kernel()
      ->mutable_bindings(0)
      ->mutable_param()
      ->clear_value();
  expect_refused(empty, Reason::malformed_graph, {"argument 'dt'", "found none"});
}

TEST(ReadLaunch, RefusesARealNumberForAnInteger) {
  kernel::KernelBuilder builder("integers");
  const auto k = builder.integer_param("k");
  const auto x = builder.scalar("x");
  builder.output("y", builder.add(x, builder.convert(k, kernel::Scalar::f64)));
  Description d;
  const View x_plane = d.array({8});
  const View y_plane = d.array({8});
  d.add(launch("n", d.kernel(builder), {{"k", 2.0}, {"x", x_plane}, {"y", y_plane}}));
  expect_refused(d, Reason::wrong_dtype, {"argument 'k'", "expected an integer", "pass an int"});
}

TEST(ReadLaunch, NamesTheArgumentThatDoesNotFit) {
  Fixture dtype;
  dtype.add(host("0", {}, {})).add(host("1", {}, {}));
  dtype.add(launch("advance", dtype.twice, {{"x", dtype.array({8}, plane::DType::f32)}, {"y", dtype.y}}));
  expect_refused(
      dtype, Reason::wrong_dtype,
      {"node 2 'advance': argument 'x': expected float64 (N,), found float32 (8,); make one that is with "
       "session.asarray(array, dtype=np.float64)"});
  Fixture shape;
  shape.add(launch("n", shape.twice, {{"x", shape.array({2, 4})}, {"y", shape.y}}));
  expect_refused(shape, Reason::wrong_shape, {"argument 'x'", "(N,)", "(2, 4)"});
  Fixture strided;
  strided.add(launch("n", strided.twice, {{"x", slice(strided.array({16}), 0, 0, 8, 2)}, {"y", strided.y}}));
  expect_refused(strided, Reason::copy_bound_plane, {"argument 'x'", "stride"});
  Fixture samples;
  samples.add(launch("n", samples.twice, {{"x", samples.x}, {"y", samples.array({9})}}));
  expect_refused(samples, Reason::sample_mismatch, {"'x' and 'y'", "8 and 9"});
}

TEST(ReadLaunch, RefusesAPartialOverlapOfInputAndOutput) {
  Fixture d;
  const View z = d.array({12});
  d.add(launch("n", d.twice, {{"x", slice(z, 0, 0, 8)}, {"y", slice(z, 0, 4, 8)}}));
  expect_refused(d, Reason::plane_overlap,
                 {"node 0 'n'", "the input 'x' and the output 'y'", "an array of its own"});
  Fixture in_place;
  in_place.add(launch("n", in_place.twice, {{"x", in_place.x}, {"y", in_place.x}}));
  EXPECT_TRUE(in_place.try_read().ok());
  Fixture apart;
  const View w = apart.array({16});
  apart.add(launch("n", apart.twice, {{"x", slice(w, 0, 0, 8)}, {"y", slice(w, 0, 8, 8)}}));
  EXPECT_TRUE(apart.try_read().ok());
}

TEST(ReadLaunch, RefusesOutputsThatOverlapAndInputsMayAlways) {
  kernel::KernelBuilder builder("swap");
  const auto a = builder.scalar("a");
  const auto b = builder.scalar("b");
  builder.output("c", b);
  builder.output("d", a);
  Description d;
  const View z = d.array({12});
  const View w = d.array({12});
  const std::uint32_t swap = d.kernel(builder);
  const View early = slice(z, 0, 0, 8);
  const View late = slice(z, 0, 4, 8);
  Description reads = d;
  reads.add(launch("n", swap, {{"a", early}, {"b", late}, {"c", slice(w, 0, 0, 8)}, {"d", d.array({8})}}));
  reads.message.mutable_planes()->CopyFrom(d.message.planes());
  EXPECT_TRUE(reads.try_read().ok());
  d.add(launch("n", swap, {{"a", slice(w, 0, 0, 8)}, {"b", slice(w, 0, 4, 8)}, {"c", early}, {"d", late}}));
  expect_refused(d, Reason::plane_overlap, {"the outputs 'd' and 'c'"});
}

TEST(ReadLaunch, TransposedViewsOfTheSameElementsAreInPlace) {
  kernel::KernelBuilder builder("vectors");
  const auto v = builder.vector("v", 3);
  builder.output("w", builder.add(v, v));
  Description d;
  const View m = d.array({3, 8});
  d.add(launch("n", d.kernel(builder), {{"v", m}, {"w", transposed(m)}}));
  EXPECT_TRUE(d.try_read().ok()) << d.try_read().status().to_string();
}

TEST(ReadLaunch, APrivateArrayIsForThisProcessOnly) {
  Fixture d;
  d.add(launch("n", d.twice, {{"x", d.private_array({8})}, {"y", d.y}}));
  EXPECT_TRUE(d.try_read(PrivateKernelPlanes::allowed).ok());
  expect_refused(d, Reason::private_array,
                 {"node 0 'n': argument 'x'", "'array2'", "session.zeros", "session.asarray", "eagle.share"});
  Fixture guard;
  guard.add(
      skippable("maybe", {guard.private_array({1}, plane::DType::i64)}, {testing::stage(host("s", {}, {}))}));
  EXPECT_TRUE(guard.try_read(PrivateKernelPlanes::allowed).ok());
  expect_refused(guard, Reason::private_array, {"node 0 'maybe': guard", "session.zeros"});
  Fixture opaque;
  opaque.add(host("h", {{"x", opaque.private_array({8})}}, {}));
  EXPECT_TRUE(opaque.try_read().ok());
}

TEST(Read, RefusesViewsThatAreNotInAPlane) {
  Fixture outside;
  outside.add(host("h", {{"x", slice(outside.x, 0, 1, 8)}}, {}));
  expect_refused(outside, Reason::view_outside_plane, {"node 0 'h': plane 'x'", "64 bytes"});
  Fixture written;
  written.add(host("h", {}, {{"y", slice(written.y, 0, 1, 8)}}));
  expect_refused(written, Reason::view_outside_plane, {"node 0 'h': plane 'y'", "64 bytes"});
  Fixture unknown;
  View nowhere = unknown.x;
  nowhere.plane = 7;
  unknown.add(launch("k", unknown.twice, {{"x", nowhere}, {"y", unknown.y}}));
  expect_refused(unknown, Reason::malformed_graph, {"argument 'x'", "plane 7 of a description with 2"});
  for (const int dtype : {0, 6, 14, 16, 257, -1, -255, 1'000'000}) {
    Fixture d;
    d.add(host("h", {{"x", d.x}}, {}));
    d.message.mutable_stages(0)->mutable_node()->mutable_host()->mutable_reads(0)->mutable_view()->set_dtype(
        static_cast<v1::DType>(dtype));
    expect_refused(d, Reason::malformed_graph, {"element type " + std::to_string(dtype)});
  }
  Fixture none;
  none.add(host("h", {{"x", none.x}}, {}));
  none.message.mutable_stages(0)->mutable_node()->mutable_host()->mutable_reads(0)->clear_view();
  expect_refused(none, Reason::malformed_graph, {"plane 'x': expected a view"});
}

TEST(Read, RefusesGuardsThatAreNotOneInteger) {
  const auto guarded = [](Description& d, const View& cell) {
    d.add(skippable("maybe", {cell}, {testing::stage(host("s", {}, {}))}));
  };
  Fixture real;
  guarded(real, real.array({1}));
  expect_refused(real, Reason::wrong_dtype, {"node 0 'maybe': guard: plane 'count'", "found float64"});
  Fixture opaque;
  View other = opaque.x;
  other.dtype = plane::DType::other;
  guarded(opaque, other);
  expect_refused(opaque, Reason::wrong_dtype, {"found another element type"});
  Fixture many;
  guarded(many, many.array({3}, plane::DType::i64));
  expect_refused(many, Reason::wrong_shape, {"expected one element, found 3"});
  Fixture none;
  guarded(none, none.array({1}, plane::DType::i64));
  none.message.mutable_stages(0)->mutable_node()->mutable_skippable()->clear_guard();
  expect_refused(none, Reason::malformed_graph, {"expected a guard"});
  Fixture no_cell;
  guarded(no_cell, no_cell.array({1}, plane::DType::i64));
  no_cell.message.mutable_stages(0)->mutable_node()->mutable_skippable()->mutable_guard()->clear_count();
  expect_refused(no_cell, Reason::malformed_graph, {"expected a cell"});
  for (const auto dtype : {plane::DType::i64, plane::DType::i32, plane::DType::boolean}) {
    Fixture good;
    guarded(good, good.array({}, dtype));
    EXPECT_TRUE(good.try_read().ok());
  }
}

TEST(Read, RefusesLoopsWithoutABoundOrABody) {
  for (const std::int64_t cap :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    Fixture d;
    const View cell = d.array({1}, plane::DType::i64);
    d.add(testing::repeat_while("loop", {cell}, {testing::stage(host("s", {}, {}))}, cap));
    expect_refused(d, Reason::bad_value, {"node 0 'loop'", "at least 1, found " + std::to_string(cap)});
  }
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  d.add(testing::repeat_while("loop", {cell}, {}, 3));
  expect_refused(d, Reason::malformed_graph, {"node 0 'loop'", "body"});
}

TEST(Read, RefusesGroupsThatAreNone) {
  Fixture one;
  one.add_group({{host("a", {}, {})}});
  expect_refused(one, Reason::malformed_graph, {"stage 0: a group needs at least two branches, found 1"});
  Fixture none;
  none.add(host("a", {}, {})).add_group({});
  expect_refused(none, Reason::malformed_graph, {"stage 1", "found 0"});
  Fixture empty;
  empty.add_group({{host("a", {}, {})}, {}});
  expect_refused(empty, Reason::malformed_graph, {"stage 0, branch 1: a branch needs at least one node"});
}

TEST(Read, RefusesAnEmptyGraphAndNodesOfNoKind) {
  Fixture d;
  expect_refused(d, Reason::graph_state, {"empty graph"});
  d.message.add_stages();
  expect_refused(d, Reason::malformed_graph, {"stage 0"});
  d.message.mutable_stages(0)->mutable_node()->set_name("n");
  expect_refused(d, Reason::malformed_graph, {"node 0 'n'", "found none"});
}

TEST(Read, NamesANodeInsideABody) {
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  d.add(host("h", {}, {}));
  d.add(
      skippable("outer", {cell},
                {testing::stage(host("s", {}, {})), testing::stage(launch("inner", d.twice, {{"x", d.x}}))}));
  expect_refused(d, Reason::bad_binding, {"node 1 'outer': body node 1 'inner'"});
}

TEST(Read, RefusesKernelsThatDoNotVerify) {
  Fixture d;
  d.add(launch("n", 9, {}));
  expect_refused(d, Reason::malformed_graph, {"node 0 'n'", "kernel 9 of a description with 2"});
  d.message.mutable_kernels(1)->clear_body();
  EXPECT_THAT(d.try_read().status().message(), ::testing::StartsWith("kernel 1 'finishing'"));
}

TEST(Read, RefusesTheSameMemoryDeclaredTwice) {
  Fixture d;
  d.message.mutable_planes(1)->mutable_plane()->set_id(100);
  d.add(host("h", {}, {}));
  expect_refused(d, Reason::malformed_graph, {"plane 1: plane 100", "already declared as plane 0"});
}

TEST(Read, RefusesPlanesOfNoKindOrAbsurdSize) {
  Fixture d;
  d.add(host("h", {}, {}));
  d.message.mutable_planes(1)->clear_memory();
  expect_refused(d, Reason::malformed_graph, {"plane 1", "found neither"});
  d.message.mutable_planes(1)->mutable_private_memory();
  d.message.mutable_planes(1)->set_bytes(std::uint64_t{1} << 63);
  expect_refused(d, Reason::bad_value, {"plane 1", "9223372036854775808"});
}

TEST(Read, RefusesTiersOfALaterVersion) {
  for (const int tier : {0, 6, -1}) {
    Fixture d;
    d.add(host("h", {}, {}));
    d.message.mutable_stages(0)->mutable_node()->mutable_host()->set_tier(static_cast<v1::HostTier>(tier));
    expect_refused(d, Reason::malformed_graph, {"node 0 'h'", "host tier " + std::to_string(tier)});
  }
}

TEST(Read, RefusesFieldsOfALaterVersionWhereverTheyStand) {
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  d.add(testing::repeat_while("loop", {cell, cell}, {testing::stage(host("s", {{"x", d.x}}, {}))}, 2));
  d.add(launch("k", d.finishing, {{"dt", 1.0}, {"t", d.x}, {"done", d.array({8}, plane::DType::boolean)}}));
  d.add_group({{host("a", {}, {})}, {host("b", {}, {})}});
  d.add(skippable("maybe", {cell}, {testing::stage(host("s", {}, {}))}));
  d.message.mutable_planes(static_cast<int>(d.array({8}).plane))->mutable_scratch();
  d.private_array({8});
  d.message.mutable_stages(1)->mutable_node()->mutable_location();
  ASSERT_TRUE(d.try_read().ok()) << d.try_read().status().to_string();

  v1::GraphDescription& m = d.message;
  v1::RepeatWhile& loop = *m.mutable_stages(0)->mutable_node()->mutable_repeat_while();
  v1::HostNode& inner = *loop.mutable_body(0)->mutable_node()->mutable_host();
  v1::Node& kernel = *m.mutable_stages(1)->mutable_node();
  const std::vector<google::protobuf::Message*> parts = {
      &m,
      m.mutable_planes(0),
      m.mutable_planes(0)->mutable_plane(),
      m.mutable_planes(m.planes_size() - 2)->mutable_scratch(),
      m.mutable_planes(m.planes_size() - 1)->mutable_private_memory(),
      m.mutable_stages(0),
      m.mutable_stages(0)->mutable_node(),
      &loop,
      loop.mutable_guard(),
      loop.mutable_guard()->mutable_count(),
      loop.mutable_guard()->mutable_baseline()->mutable_view(),
      loop.mutable_body(0),
      &inner,
      inner.mutable_reads(0),
      inner.mutable_reads(0)->mutable_view(),
      kernel.mutable_kernel(),
      kernel.mutable_kernel()->mutable_bindings(0),
      kernel.mutable_kernel()->mutable_bindings(0)->mutable_param(),
      kernel.mutable_kernel()->mutable_bindings(1)->mutable_view(),
      kernel.mutable_location(),
      m.mutable_stages(2)->mutable_group(),
      m.mutable_stages(2)->mutable_group()->mutable_branches(1),
      m.mutable_stages(3)->mutable_node()->mutable_skippable(),
  };
  for (google::protobuf::Message* const part : parts) {
    SCOPED_TRACE(part->GetTypeName());
    part->GetReflection()->MutableUnknownFields(part)->AddVarint(1234, 1);
    expect_refused(d, Reason::malformed_graph, {"field 1234 is unknown"});
    part->GetReflection()->MutableUnknownFields(part)->Clear();
  }
  EXPECT_TRUE(d.try_read().ok());
}

TEST(Read, RefusesNamesThatAreNotUtf8OrTooLong) {
  Fixture d;
  d.add(host("ok", {{"x", d.x}}, {}));
  const std::string bad = "a\xff";
  v1::Node& node = *d.message.mutable_stages(0)->mutable_node();
  node.set_name(bad);
  expect_refused(d, Reason::malformed_graph, {"node 0", "not UTF-8"});
  node.set_name(std::string(10'241, 'x'));
  expect_refused(d, Reason::graph_limit, {"node 0", "at most 10240 bytes (graph_name_bytes), found 10241"});
  node.set_name(std::string(10'240, 'x'));
  EXPECT_TRUE(d.try_read().ok());
  node.mutable_host()->mutable_reads(0)->set_name(bad);
  expect_refused(d, Reason::malformed_graph, {"plane name"});
  node.mutable_host()->mutable_reads(0)->set_name("x");
  d.message.mutable_planes(0)->set_label(bad);
  expect_refused(d, Reason::malformed_graph, {"plane 0", "label"});
  d.message.mutable_planes(0)->clear_label();
  d.message.add_source_files(bad);
  expect_refused(d, Reason::malformed_graph, {"source file 0"});
  d.message.clear_source_files();
  d.message.set_name(bad);
  expect_refused(d, Reason::malformed_graph, {"graph", "name"});
}

TEST(Read, AnErrorNeverRepeatsALongName) {
  Fixture d;
  d.add(launch(std::string(10'000, 'n'), d.twice, {{std::string(1'000'000, 'a'), d.x}}));
  EXPECT_LT(d.try_read().status().message().size(), 1000U);
}

TEST(Read, RefusesALocationInNoFile) {
  Fixture d;
  d.add(host("h", {}, {}));
  auto& location = *d.message.mutable_stages(0)->mutable_node()->mutable_location();
  location.set_line(3);
  expect_refused(d, Reason::malformed_graph, {"node 0 'h'", "source file 0 of a description with 0"});
}

TEST(Read, NamesTheLimitThatAGraphIsOver) {
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  v1::Node node = host("s", {}, {});
  for (int i = 0; i < 4; ++i) node = skippable("deep", {cell}, {testing::stage(node)});
  d.add(node);
  const auto with = [&](Limits limits) { return d.try_read(PrivateKernelPlanes::refused, limits); };
  Limits limits;
  limits.depth = 4;
  limits.nodes = 5;
  limits.planes = 3;
  EXPECT_TRUE(with(limits).ok());
  limits.depth = 3;
  expect_refused(with(limits), Reason::graph_limit, {"deeper than 3", "graph_depth"});
  limits.depth = 4;
  limits.nodes = 4;
  expect_refused(with(limits), Reason::graph_limit, {"4", "graph_nodes"});
  limits.nodes = 5;
  limits.planes = 2;
  expect_refused(with(limits), Reason::graph_limit, {"3 planes", "graph_planes"});
}

TEST(Read, GroupsCountAsDepthToo) {
  Fixture d;
  const View cell = d.array({1}, plane::DType::i64);
  d.add_group({{skippable("a", {cell}, {testing::group({{host("b", {}, {})}, {host("c", {}, {})}})})},
               {host("d", {}, {})}});
  Limits limits;
  limits.depth = 3;
  EXPECT_TRUE(d.try_read(PrivateKernelPlanes::refused, limits).ok());
  limits.depth = 2;
  EXPECT_EQ(d.try_read(PrivateKernelPlanes::refused, limits).status().reason(), Reason::graph_limit);
}

TEST(ReadLaunch, StandsAloneForRuns) {
  Fixture d;
  const v1::Node node = launch("n", d.twice, {{"x", d.x}, {"y", d.y}});
  d.add(node);
  const Graph graph = d.graph();
  const StatusOr<KernelLaunch> bound =
      read_launch(node.kernel(), graph.kernels, graph.planes, "model 0", PrivateKernelPlanes::refused);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->samples, 8);
  const Status status = read_launch(launch("n", 4, {}).kernel(), graph.kernels, graph.planes, "model 0",
                                    PrivateKernelPlanes::refused)
                            .status();
  EXPECT_THAT(status.message(), ::testing::StartsWith("model 0: refers to kernel 4"));
}

}  // namespace
}  // namespace eagle::graph
