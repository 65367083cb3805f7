#include "engine/kernel/algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/kernel/interpret.h"

namespace eagle::kernel::algebra {
namespace {

using testing::HasSubstr;

constexpr Type real{Scalar::f64};
constexpr Type vector_type(int n) { return Type{Scalar::f64, 1, {static_cast<std::uint16_t>(n), 1}}; }
constexpr Type matrix_type(int rows, int columns) {
  return Type{Scalar::f64, 2, {static_cast<std::uint16_t>(rows), static_cast<std::uint16_t>(columns)}};
}

struct Operand {
  Type type;
  std::vector<double> components;
};

// What `build` makes of the operands, by the interpreter.
std::vector<double> value_of(const std::vector<Operand>& operands,
                             const std::function<Value(KernelBuilder&, const std::vector<Value>&)>& build) {
  KernelBuilder b("k");
  std::vector<Value> values;
  std::vector<Bits> entry;
  for (const Operand& operand : operands) {
    values.push_back(b.state("a" + std::to_string(values.size()), operand.type));
    Bits& bits = entry.emplace_back();
    for (const double component : operand.components) bits.push_back(std::bit_cast<std::uint64_t>(component));
  }
  b.output("y", build(b, values));
  const StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  if (!kernel.ok()) return {};
  const std::vector<Bits> committed = interpret(*kernel, entry);
  std::vector<double> result;
  for (const std::uint64_t bits : committed.back()) result.push_back(std::bit_cast<double>(bits));
  return result;
}

using Components = std::vector<double>;

TEST(Algebra, SplatsAndScales) {
  EXPECT_EQ(value_of({{real, {2.5}}}, [](auto& b, auto& a) { return splat(b, a[0], matrix_type(2, 2)); }),
            (Components{2.5, 2.5, 2.5, 2.5}));
  EXPECT_EQ(value_of({{real, {2}}, {matrix_type(1, 3), {1, -2, 3}}},
                     [](auto& b, auto& a) { return scale(b, a[0], a[1]); }),
            (Components{2, -4, 6}));
}

TEST(Algebra, SumsAndDotProductsAddInIndexOrder) {
  // (1e16 + 1) - 1e16 is 0 in doubles, 1e16 - 1e16 + 1 is 1.
  const auto summed = [](auto& b, auto& a) { return sum(b, a[0]); };
  EXPECT_EQ(value_of({{vector_type(3), {1e16, 1, -1e16}}}, summed), Components{0});
  EXPECT_EQ(value_of({{vector_type(3), {1e16, -1e16, 1}}}, summed), Components{1});
  const auto dotted = [](auto& b, auto& a) { return dot(b, a[0], a[1]); };
  EXPECT_EQ(value_of({{vector_type(3), {1e8, 1, -1e8}}, {vector_type(3), {1e8, 1, 1e8}}}, dotted),
            Components{0});
  EXPECT_EQ(value_of({{vector_type(3), {1, 2, 3}}, {vector_type(3), {4, 5, 6}}}, dotted), Components{32});
}

TEST(Algebra, SumsStartFromTheFirstTermAndNotFromZero) {
  const auto negative_zero =
      value_of({{vector_type(1), {-0.0}}}, [](auto& b, auto& a) { return sum(b, a[0]); });
  EXPECT_TRUE(std::signbit(negative_zero[0]));
  const auto product = value_of({{vector_type(1), {-0.0}}, {vector_type(1), {1}}},
                                [](auto& b, auto& a) { return dot(b, a[0], a[1]); });
  EXPECT_TRUE(std::signbit(product[0]));
}

TEST(Algebra, NormAndCross) {
  EXPECT_EQ(value_of({{vector_type(3), {2, 3, 6}}}, [](auto& b, auto& a) { return norm(b, a[0]); }),
            Components{7});
  const auto crossed = [](auto& b, auto& a) { return cross(b, a[0], a[1]); };
  EXPECT_EQ(value_of({{vector_type(3), {1, 0, 0}}, {vector_type(3), {0, 1, 0}}}, crossed),
            (Components{0, 0, 1}));
  EXPECT_EQ(value_of({{vector_type(3), {1, 2, 3}}, {vector_type(3), {4, 5, 6}}}, crossed),
            (Components{-3, 6, -3}));
}

TEST(Algebra, MultipliesMatricesAndVectors) {
  const Operand m{matrix_type(2, 3), {1, 2, 3, 4, 5, 6}};
  const auto product = [](auto& b, auto& a) { return matmul(b, a[0], a[1]); };
  EXPECT_EQ(value_of({m, {matrix_type(3, 2), {7, 8, 9, 10, 11, 12}}}, product),
            (Components{58, 64, 139, 154}));
  EXPECT_EQ(value_of({m, {vector_type(3), {1, 0, -1}}}, product), (Components{-2, -2}));
  EXPECT_EQ(value_of({{vector_type(2), {1, -1}}, m}, product), (Components{-3, -3, -3}));
  EXPECT_EQ(value_of({{vector_type(2), {3, 4}}, {vector_type(2), {3, 4}}}, product), Components{25});
}

TEST(Algebra, ProductsHaveTheTypesOfTheirOperandsExtents) {
  KernelBuilder b("k");
  const auto m = b.matrix("m", 2, 3), column = b.matrix("c", 3, 1), v = b.vector("v", 3),
             w = b.vector("w", 2);
  EXPECT_EQ(matmul(b, m, column).type, matrix_type(2, 1));
  EXPECT_EQ(matmul(b, m, v).type, vector_type(2));
  EXPECT_EQ(matmul(b, w, m).type, vector_type(3));
  EXPECT_EQ(matmul(b, v, v).type, real);
  EXPECT_EQ(matmul(b, v, column).type, vector_type(1));
  EXPECT_EQ(transpose(b, m).type, matrix_type(3, 2));
  EXPECT_EQ(outer(b, v, w).type, matrix_type(3, 2));
  EXPECT_TRUE(b.finish().ok());
}

TEST(Algebra, TransposesAndMakesOuterProducts) {
  EXPECT_EQ(value_of({{matrix_type(2, 3), {1, 2, 3, 4, 5, 6}}},
                     [](auto& b, auto& a) { return transpose(b, a[0]); }),
            (Components{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(value_of({{vector_type(2), {1, 2}}, {vector_type(3), {3, 4, 5}}},
                     [](auto& b, auto& a) { return outer(b, a[0], a[1]); }),
            (Components{3, 4, 5, 6, 8, 10}));
}

TEST(Quaternions, MultiplyAsHamiltonDid) {
  const auto product = [](auto& b, auto& a) { return quaternion_multiply(b, a[0], a[1]); };
  const Operand i{vector_type(4), {0, 1, 0, 0}}, j{vector_type(4), {0, 0, 1, 0}},
      k{vector_type(4), {0, 0, 0, 1}};
  EXPECT_EQ(value_of({i, j}, product), (Components{0, 0, 0, 1}));
  EXPECT_EQ(value_of({j, k}, product), (Components{0, 1, 0, 0}));
  EXPECT_EQ(value_of({k, i}, product), (Components{0, 0, 1, 0}));
  EXPECT_EQ(value_of({j, i}, product), (Components{0, 0, 0, -1}));
  EXPECT_EQ(value_of({i, i}, product), (Components{-1, 0, 0, 0}));
  // (1 + 2i + 3j + 4k)(5 + 6i + 7j + 8k) = -60 + 12i + 30j + 24k
  EXPECT_EQ(value_of({{vector_type(4), {1, 2, 3, 4}}, {vector_type(4), {5, 6, 7, 8}}}, product),
            (Components{-60, 12, 30, 24}));
}

TEST(Quaternions, ConjugateNormAndNormalise) {
  const Operand q{vector_type(4), {2, 4, -5, 6}};
  EXPECT_EQ(value_of({q}, [](auto& b, auto& a) { return quaternion_conjugate(b, a[0]); }),
            (Components{2, -4, 5, -6}));
  EXPECT_EQ(value_of({q}, [](auto& b, auto& a) { return quaternion_norm(b, a[0]); }), Components{9});
  EXPECT_EQ(value_of({q}, [](auto& b, auto& a) { return quaternion_normalise(b, a[0]); }),
            (Components{2.0 / 9, 4.0 / 9, -5.0 / 9, 6.0 / 9}));
}

TEST(Quaternions, RotateVectors) {
  const auto rotated = [](auto& b, auto& a) { return quaternion_rotate(b, a[0], a[1]); };
  // By 120 degrees about (1, 1, 1): x goes to y, y to z, z to x.
  const Operand third{vector_type(4), {.5, .5, .5, .5}};
  EXPECT_EQ(value_of({third, {vector_type(3), {1, 2, 3}}}, rotated), (Components{3, 1, 2}));
  // By 180 degrees about z.
  EXPECT_EQ(value_of({{vector_type(4), {0, 0, 0, 1}}, {vector_type(3), {1, 2, 3}}}, rotated),
            (Components{-1, -2, 3}));
}

// With small integers every product is exact, so leaving out the products with 0 changes nothing.
TEST(Quaternions, RotationIsTheProductWithTheConjugate) {
  const Operand q{vector_type(4), {1, -2, 3, 4}}, v{vector_type(3), {5, 6, -7}};
  const auto direct = value_of({q, v}, [](auto& b, auto& a) { return quaternion_rotate(b, a[0], a[1]); });
  const auto by_products = value_of({q, v}, [](auto& b, auto& a) {
    const Value padded =
        b.compose({b.real(0), b.extract(a[1], 0), b.extract(a[1], 1), b.extract(a[1], 2)}, vector_type(4));
    return quaternion_multiply(b, quaternion_multiply(b, a[0], padded), quaternion_conjugate(b, a[0]));
  });
  EXPECT_EQ(by_products[0], 0);
  EXPECT_EQ(direct, Components(by_products.begin() + 1, by_products.end()));
}

TEST(Algebra, WorksOnIntegersWhereThereIsNoRoot) {
  KernelBuilder b("k");
  const auto v = b.state("v", Type{Scalar::i64, 1, {3, 1}});
  b.output("y", dot(b, v, v));
  b.output("z", cross(b, v, v));
  const StatusOr<Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(interpret(*kernel, std::vector<Bits>{{1, 2, 3}})[1], Bits{14});
}

struct Case {
  const char* name;
  std::function<void(KernelBuilder&)> build;
  const char* expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BadAlgebra : public testing::TestWithParam<Case> {};

TEST_P(BadAlgebra, NamesWhatWasExpectedAndFound) {
  KernelBuilder b("k");
  GetParam().build(b);
  const Status status = b.finish().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(GetParam().expected));
}

const Case cases[] = {
    {"splat", [](auto& b) { splat(b, b.vector("v", 2), vector_type(2)); },
     "splat: expected a scalar (no extents), found f64[2]"},
    {"splat_too_wide", [](auto& b) { splat(b, b.scalar("x"), matrix_type(65'535, 65'535)); },
     "splat: expected at most 64 components"},
    {"splat_to_a_scalar", [](auto& b) { splat(b, b.scalar("x"), real); },
     "compose: expected the type of a vector or matrix, found f64"},
    {"scale", [](auto& b) { scale(b, b.scalar("s"), b.scalar("x")); },
     "scale: expected a vector or matrix of numbers, found f64"},
    {"scale_by", [](auto& b) { scale(b, b.index("i"), b.vector("v", 2)); },
     "scale: expected f64 (to scale a f64[2]), found i64"},
    {"sum", [](auto& b) { sum(b, b.scalar("x")); }, "sum: expected a vector or matrix of numbers, found f64"},
    {"dot_lengths", [](auto& b) { dot(b, b.vector("u", 2), b.vector("v", 3)); },
     "dot: expected two equal vectors of numbers, found f64[2] and f64[3]"},
    {"dot_of_matrices", [](auto& b) { dot(b, b.matrix("u", 2, 2), b.matrix("v", 2, 2)); },
     "dot: expected two equal vectors of numbers, found f64[2,2] and f64[2,2]"},
    {"norm_of_integers", [](auto& b) { norm(b, b.state("v", Type{Scalar::i64, 1, {3, 1}})); },
     "norm: expected a vector of reals, found i64[3]"},
    {"cross", [](auto& b) { cross(b, b.vector("u", 2), b.vector("v", 2)); },
     "cross: expected two equal vectors of three numbers, found f64[2] and f64[2]"},
    {"matmul", [](auto& b) { matmul(b, b.matrix("m", 2, 3), b.matrix("n", 2, 3)); },
     "matmul: expected vectors or matrices of the same numbers, of which the left one's last extent is the "
     "right "
     "one's first, found f64[2,3] and f64[2,3]"},
    {"transpose", [](auto& b) { transpose(b, b.vector("v", 3)); },
     "transpose: expected a matrix, found f64[3]"},
    {"outer", [](auto& b) { outer(b, b.vector("v", 3), b.scalar("x")); },
     "outer: expected two vectors of the same numbers, found f64[3] and f64"},
    {"outer_too_wide", [](auto& b) { outer(b, b.vector("v", 64), b.vector("w", 64)); },
     "compose: expected at most 64 components"},
    {"multiply", [](auto& b) { quaternion_multiply(b, b.vector("p", 4), b.vector("q", 3)); },
     "quaternion_multiply: expected two quaternions (equal vectors of four reals), found f64[4] and f64[3]"},
    {"conjugate", [](auto& b) { quaternion_conjugate(b, b.scalar("x")); },
     "quaternion_conjugate: expected a quaternion (a vector of four reals), found f64"},
    {"quaternion_norm", [](auto& b) { quaternion_norm(b, b.vector("v", 3)); },
     "quaternion_norm: expected a quaternion (a vector of four reals), found f64[3]"},
    {"normalise", [](auto& b) { quaternion_normalise(b, b.vector("v", 3)); },
     "quaternion_normalise: expected a quaternion (a vector of four reals), found f64[3]"},
    {"rotate", [](auto& b) { quaternion_rotate(b, b.vector("q", 4), b.vector("v", 4)); },
     "quaternion_rotate: expected a quaternion (a vector of four reals) and a vector of three such reals, "
     "found "
     "f64[4] and f64[4]"},
};
INSTANTIATE_TEST_SUITE_P(Algebra, BadAlgebra, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

TEST(Algebra, IsQuietAfterAnError) {
  KernelBuilder b("k");
  const Value none;
  b.refuse("the first error");
  for (const Value& value :
       {splat(b, none, vector_type(3)), scale(b, none, none), sum(b, none), dot(b, none, none), norm(b, none),
        cross(b, none, none), matmul(b, none, none), transpose(b, none), outer(b, none, none),
        quaternion_multiply(b, none, none), quaternion_conjugate(b, none), quaternion_norm(b, none),
        quaternion_normalise(b, none), quaternion_rotate(b, none, none)}) {
    EXPECT_FALSE(value.valid());
  }
  EXPECT_EQ(b.finish().status().message(), "kernel 'k': the first error");
}

}  // namespace
}  // namespace eagle::kernel::algebra
