#include "engine/plane/layout.h"

#include <gmock/gmock.h>

#include "engine/plane/testing.h"

namespace eagle::plane {
namespace {

using testing::array;
using ::testing::HasSubstr;
using testing::slice;
using testing::transposed;

constexpr std::string_view where = "node 2 'advance': argument 'x'";

kernel::Type scalar(kernel::Scalar of = kernel::Scalar::f64) { return {of, 0, {1, 1}}; }
kernel::Type vector(std::uint16_t width) { return {kernel::Scalar::f64, 1, {width, 1}}; }
kernel::Type matrix(std::uint16_t rows, std::uint16_t columns) {
  return {kernel::Scalar::f64, 2, {rows, columns}};
}

void expect_layout(const View& view, const kernel::Type& type, std::int64_t samples,
                   std::int64_t component_stride) {
  const StatusOr<Layout> layout = layout_of(view, type, where);
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_EQ(layout->samples, samples);
  EXPECT_EQ(layout->component_stride, component_stride);
}

void expect_refused(const View& view, const kernel::Type& type, Reason reason,
                    const std::vector<std::string>& parts) {
  const Status status = layout_of(view, type, where).status();
  EXPECT_EQ(status.reason(), reason) << status.to_string();
  EXPECT_THAT(status.message(), ::testing::StartsWith("node 2 'advance': argument 'x': "));
  for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
}

TEST(Layout, TakesComponentMajorArrays) {
  expect_layout(array({100}), scalar(), 100, 800);
  expect_layout(array({3, 100}), vector(3), 100, 800);
  expect_layout(array({6, 100}), matrix(2, 3), 100, 800);
  expect_layout(array({2, 3, 100}), matrix(2, 3), 100, 800);
  expect_layout(array({3, 3, 3}), matrix(3, 3), 3, 24);
  expect_layout(array({100}, DType::boolean), scalar(kernel::Scalar::boolean), 100, 100);
  expect_layout(array({0}), scalar(), 0, 0);
  expect_layout(array({1, 1}), vector(1), 1, 8);
}

TEST(Layout, TakesComponentsThatLieApartOrReversed) {
  expect_layout(slice(array({6, 100}), 0, 0, 3, 2), vector(3), 100, 1600);
  expect_layout(slice(array({3, 100}), 0, 2, 3, -1), vector(3), 100, -800);
  expect_layout(slice(array({3, 100}), 1, 10, 50), vector(3), 50, 800);
}

TEST(Layout, TakesSampleMajorArraysWhoseTransposeIsContiguous) {
  expect_layout(transposed(array({3, 100})), vector(3), 100, 800);
  expect_layout(array({1, 3}), vector(3), 1, 8);
}

TEST(Layout, NamesTheCastForAnotherElementType) {
  expect_refused(array({8}, DType::f32), scalar(), Reason::wrong_dtype,
                 {"expected float64 (N,), found float32 (8,); make one that is with session.asarray(array, "
                  "dtype=np.float64)"});
  expect_refused(array({8}), scalar(kernel::Scalar::boolean), Reason::wrong_dtype, {"np.bool_"});
  View records = array({8});
  records.dtype = DType::other;
  expect_refused(records, scalar(), Reason::wrong_dtype, {"found another element type (8,)"});
}

TEST(Layout, NamesTheShapeItExpects) {
  expect_refused(array({2, 8}), scalar(), Reason::wrong_shape, {"expected shape (N,), found (2, 8)"});
  expect_refused(array({}), scalar(), Reason::wrong_shape, {"found ()"});
  expect_refused(array({4, 8}), vector(3), Reason::wrong_shape, {"expected shape (3, N), found (4, 8)"});
  expect_refused(array({8}), vector(3), Reason::wrong_shape, {"expected shape (3, N), found (8,)"});
  expect_refused(array({3, 2, 8}), matrix(2, 3), Reason::wrong_shape,
                 {"expected shape (6, N) or (2, 3, N), found (3, 2, 8)"});
}

TEST(Layout, TakesNoOtherNumberOfDimensions) {
  for (const View& view : {array({1, 8}), array({8, 1}), array({1, 1, 8})}) {
    expect_refused(view, scalar(), Reason::wrong_shape, {"expected shape (N,)"});
  }
  expect_refused(array({3}), vector(3), Reason::wrong_shape, {"expected shape (3, N), found (3,)"});
  expect_refused(array({3, 2, 8}), vector(3), Reason::wrong_shape,
                 {"expected shape (3, N), found (3, 2, 8)"});
  expect_refused(array({3, 3, 8}), matrix(2, 3), Reason::wrong_shape, {"found (3, 3, 8)"});
  expect_refused(array({2, 2, 8}), matrix(2, 3), Reason::wrong_shape, {"found (2, 2, 8)"});
}

TEST(Layout, RefusesASquareArrayAsAmbiguous) {
  expect_refused(array({3, 3}), vector(3), Reason::wrong_shape,
                 {"(3, 3) is ambiguous", "give it as (3, 1, N)", "eagle.samples_first(x)"});
  expect_refused(array({4, 4}), matrix(2, 2), Reason::wrong_shape, {"ambiguous", "give it as (2, 2, N)"});
}

TEST(Layout, TakesAVectorAsOneColumnSoThatNoNumberOfSamplesIsAmbiguous) {
  const StatusOr<Layout> layout = layout_of(array({3, 1, 3}), vector(3), "k: argument 'x'");
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->samples, 3);
  EXPECT_EQ(layout->component_stride, 24);
}

TEST(Layout, SaysWhyAnArrayWouldHaveToBeCopied) {
  expect_refused(
      slice(array({8}), 0, 0, 4, 2), scalar(), Reason::copy_bound_plane,
      {"float64 (4,)", "a stride of 16 bytes between samples where 8 is needed", "np.ascontiguousarray"});
  expect_refused(slice(array({8}), 0, 7, 8, -1), scalar(), Reason::copy_bound_plane,
                 {"a stride of -8 bytes"});
  expect_refused(array({100, 3}), vector(3), Reason::copy_bound_plane,
                 {"sample-major", "(3, N)", "np.ascontiguousarray(array.T)"});
  expect_refused(View{0, 0, DType::f64, 8, {std::int64_t{1} << 62}, {0}}, scalar(), Reason::copy_bound_plane,
                 {"a stride of 0 bytes"});
  expect_refused(View{0, 0, DType::f64, 8, {3, 100}, {8, 8}}, vector(3), Reason::copy_bound_plane,
                 {"8 bytes apart that overlap"});
  expect_refused(View{0, 0, DType::f64, 8, {2, 3, 10}, {400, 80, 8}}, matrix(2, 3), Reason::copy_bound_plane,
                 {"strides of 400 and 80 bytes"});
  for (const std::int64_t rows : {241, 480}) {
    expect_refused(View{0, 0, DType::f64, 8, {2, 3, 10}, {rows, 80, 8}}, matrix(2, 3),
                   Reason::copy_bound_plane, {"that place its components unevenly"});
  }
  expect_refused(View{0, 0, DType::f64, 8, {100, 1}, {16, 8}}, vector(1), Reason::copy_bound_plane,
                 {"a stride of 16 bytes between samples"});
  expect_refused(View{0, 0, DType::f64, 8, {100, 3}, {48, 16}}, vector(3), Reason::copy_bound_plane,
                 {"a stride of 48 bytes between samples"});
  expect_refused(View{0, 0, DType::f64, 8, {100, 3}, {8, 8}}, vector(3), Reason::copy_bound_plane,
                 {"8 bytes apart that overlap"});
  expect_refused(array({8}, DType::f64, 4), scalar(), Reason::copy_bound_plane, {"not aligned to 8 bytes"});
  expect_refused(View{0, 0, DType::f64, 8, {3, 4}, {36, 8}}, vector(3), Reason::copy_bound_plane,
                 {"not aligned"});
}

TEST(Layout, OneSampleHasNoSampleStride) {
  expect_layout(View{0, 0, DType::f64, 8, {1}, {-400}}, scalar(), 1, 8);
  expect_layout(View{0, 0, DType::f64, 8, {3, 1}, {16, 400}}, vector(3), 1, 16);
}

TEST(Layout, StridesThatTakeNoStepDoNotMatter) {
  expect_layout(View{0, 0, DType::f64, 8, {1, 8}, {36, 8}}, vector(1), 8, 64);
  expect_layout(View{0, 0, DType::f64, 8, {3, 1, 10}, {160, 80, 8}}, vector(3), 10, 160);
  expect_layout(View{0, 0, DType::f64, 8, {1, 3, 10}, {7, 80, 8}}, matrix(1, 3), 10, 80);
  expect_layout(View{0, 0, DType::f64, 8, {3, 0}, {36, 8}}, vector(3), 0, 0);
  expect_layout(View{0, 0, DType::f64, 8, {2, 3, 0}, {400, 80, 8}}, matrix(2, 3), 0, 0);
}

// ---- tables, accumulators and reductions

kernel::Argument table(const kernel::Type& type, std::vector<kernel::Axis> axes,
                       kernel::Role role = kernel::Role::table) {
  kernel::Argument out;
  out.role = role;
  out.type = type;
  out.axes = std::move(axes);
  return out;
}

void expect_elements(const View& view, const kernel::Argument& argument, std::int64_t elements) {
  const StatusOr<Layout> layout = layout_of_table(view, argument, where);
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_EQ(layout->samples, elements);
}

void expect_table_refused(const View& view, const kernel::Argument& argument, Reason reason,
                          const std::string& part) {
  const Status status = layout_of_table(view, argument, where).status();
  EXPECT_EQ(status.reason(), reason) << status.to_string();
  EXPECT_THAT(status.message(), ::testing::StartsWith(std::string(where) + ": "));
  EXPECT_THAT(status.message(), HasSubstr(part));
}

TEST(LayoutOfTable, HasOneDimensionForEachAxisOrOneForAll) {
  const auto grid = table(scalar(), {{"row", 4}, {"column", 5}});
  expect_elements(array({20}), grid, 20);
  expect_elements(array({4, 5}), grid, 20);
  const auto vectors = table(vector(3), {{"row", 4}, {"column", 5}});
  expect_elements(array({3, 20}), vectors, 20);
  expect_elements(array({3, 4, 5}), vectors, 20);
  expect_elements(slice(array({6, 4, 5}), 0, 0, 3, 2), vectors, 20);
  // The stride of an axis that takes no step does not matter.
  expect_elements(View{0, 0, DType::f64, 8, {1, 5}, {72, 8}}, table(scalar(), {{"row", 1}, {"column", 5}}),
                  5);

  expect_table_refused(array({5, 4}), grid, Reason::wrong_shape, "found (5, 4)");
  expect_table_refused(array({4}), grid, Reason::wrong_shape, "found 4 in (4,)");
  expect_table_refused(array({4, 5, 2}), grid, Reason::wrong_shape, "found (4, 5, 2)");
  expect_table_refused(array({4, 4}), grid, Reason::wrong_shape, "found (4, 4)");
  expect_table_refused(array({19}), grid, Reason::wrong_shape,
                       "expected 20 elements, one for each of (row: 4, column: 5), found 19 in (19,)");
}

TEST(LayoutOfTable, AxesAreRowMajorAndContiguous) {
  const auto grid = table(scalar(), {{"row", 4}, {"column", 5}});
  expect_table_refused(slice(array({4, 10}), 1, 0, 5), grid, Reason::copy_bound_plane, "axes that are not");
  expect_table_refused(transposed(array({5, 4})), grid, Reason::copy_bound_plane, "axes that are not");
  expect_table_refused(slice(array({4, 10}), 1, 0, 5, 2), grid, Reason::copy_bound_plane,
                       "axes that are not");
  expect_table_refused(slice(array({10}), 0, 0, 5, 2), table(scalar(), {{"only", 5}}),
                       Reason::copy_bound_plane, "a stride of 16 bytes");
}

TEST(LayoutOfTable, WithoutAxesIsAsLongAsItsArrayAndNeverEmpty) {
  expect_elements(array({7}), table(scalar(), {}), 7);
  expect_elements(array({1}), table(scalar(), {}), 1);
  expect_table_refused(array({0}), table(scalar(), {}), Reason::bad_value,
                       "a table needs at least one element");
  expect_table_refused(array({0}), table(scalar(), {}, kernel::Role::accum), Reason::bad_value,
                       "an accumulator needs at least one element");
}

TEST(LayoutOfOne, IsAnArrayOfOneElementOfAnyShape) {
  for (const View& view : {array({}), array({1}), array({1, 1, 1}), slice(array({8}), 0, 3, 1, -2)}) {
    const StatusOr<Layout> layout = layout_of_one(view, scalar(), where);
    ASSERT_TRUE(layout.ok()) << layout.status().to_string();
    EXPECT_EQ(layout->samples, 1);
  }
  const auto refusal = [](const View& view) { return layout_of_one(view, scalar(), where).status(); };
  EXPECT_EQ(refusal(array({2})).reason(), Reason::wrong_shape);
  EXPECT_THAT(refusal(array({0})).message(), HasSubstr("expected one element"));
  EXPECT_THAT(refusal(array({1}, DType::i64)).message(),
              HasSubstr("session.asarray(array, dtype=np.float64)"));
  EXPECT_EQ(refusal(array({1}, DType::f64, 4)).reason(), Reason::copy_bound_plane);
}

}  // namespace
}  // namespace eagle::plane
