// Reduce nodes, run by teams of any size.
#include "engine/run/cpu/bound_reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "engine/kernel/reduce_reference.h"

namespace eagle::run {
namespace {

using kernel::ReduceOp;

graph::Reduce node(std::int64_t rows, std::int64_t samples, bool compensated = false) {
  graph::Reduce reduce;
  reduce.x.view.plane = 0;
  reduce.x.view.item_bytes = 8;
  reduce.out.view.plane = 1;
  reduce.rows = rows;
  reduce.samples = samples;
  reduce.compensated = compensated;
  return reduce;
}

// Twice; or once, in pieces that end when the slice is over, and how many.
std::vector<double> run(const graph::Reduce& reduce, std::vector<double>& x, int team,
                        const Slice& slice = {}, int* pieces = nullptr) {
  std::vector<double> out(static_cast<std::size_t>(reduce.rows), -1.0);
  const PlaneMemory planes[] = {{reinterpret_cast<std::byte*>(x.data()), 8 * x.size()},
                                {reinterpret_cast<std::byte*>(out.data()), 8 * out.size()}};
  StatusOr<BoundReduce> bound = BoundReduce::bind(reduce, planes, team);
  EXPECT_TRUE(bound.ok()) << bound.status().to_string();
  std::vector<Place> places(static_cast<std::size_t>(team));
  std::vector<ReduceShare> shares(places.size());
  const Piece piece{team, places, {}, nullptr, slice};
  for (int again = 0; bound.ok() && again < (pieces == nullptr ? 2 : 1); ++again) {
    Progress progress;
    int count = 0;
    do {
      bound->run(piece, shares, progress);
      ++count;
    } while (progress.left);
    if (pieces != nullptr) *pieces = count;
  }
  return out;
}

std::vector<double> noise(std::size_t n) {
  std::mt19937_64 random(n);
  std::vector<double> x(n);
  for (double& value : x)
    value = std::ldexp(static_cast<double>(random()) - 9e18, static_cast<int>(random() % 50));
  return x;
}

TEST(BoundReduce, GivesTheSameBitsToEveryTeam) {
  struct Shape {
    std::int64_t rows, samples;
  };
  for (const Shape shape :
       {Shape{1, 100'003}, Shape{3, 40'000}, Shape{1000, 77}, Shape{2, 65'536}, Shape{5, 25'601}}) {
    for (const bool compensated : {false, true}) {
      std::vector<double> x = noise(static_cast<std::size_t>(shape.rows * shape.samples));
      const graph::Reduce reduce = node(shape.rows, shape.samples, compensated);
      const std::vector<double> alone = run(reduce, x, 1);
      for (const int team : {2, 3, 7, 16}) {
        SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.samples) + ", team " +
                     std::to_string(team));
        const std::vector<double> found = run(reduce, x, team);
        EXPECT_EQ(std::memcmp(found.data(), alone.data(), 8 * alone.size()), 0);
      }
    }
  }
}

TEST(BoundReduce, GivesTheSameBitsInPieces) {
  for (const auto& [rows, samples] : {std::pair{1, 100'003}, {5, 25'601}, {300, 77}}) {
    std::vector<double> x = noise(static_cast<std::size_t>(rows * samples));
    for (const bool compensated : {false, true}) {
      const graph::Reduce reduce = node(rows, samples, compensated);
      const std::vector<double> alone = run(reduce, x, 1);
      for (const int team : {1, 2, 3, 7}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(samples) + ", team " +
                     std::to_string(team));
        int pieces = 0;
        const std::vector<double> cut = run(reduce, x, team, Slice(0), &pieces);
        EXPECT_EQ(std::memcmp(cut.data(), alone.data(), 8 * alone.size()), 0);
        const int leaf =
            static_cast<int>(reducer_for({ReduceOp::sum, kernel::Scalar::f64, compensated}).leaf_samples());
        const int leaves = rows * ((samples + leaf - 1) / leaf);
        EXPECT_GE((pieces + 1) * team * 10, leaves)
            << "ten leaves a share, at most; the last piece is not counted";
      }
    }
  }
}

TEST(BoundReduce, StopsWithinAPieceWhenSomebodyWantsItTo) {
  std::vector<double> x = noise(100'000);
  std::vector<double> out(1, -1.0);
  const PlaneMemory planes[] = {{reinterpret_cast<std::byte*>(x.data()), 8 * x.size()},
                                {reinterpret_cast<std::byte*>(out.data()), 8}};
  StatusOr<BoundReduce> bound = BoundReduce::bind(node(1, 100'000), planes, 2);
  ASSERT_TRUE(bound.ok());
  std::vector<Place> places(2);
  std::vector<ReduceShare> shares(2);
  Control control;
  control.cancel = true;
  Piece piece{2, places, {}, nullptr, {}};
  piece.slice.heed(&control);
  Progress progress;
  bound->run(piece, shares, progress);
  EXPECT_TRUE(progress.left);
  EXPECT_EQ(out[0], -1.0);
}

TEST(BoundReduce, ReducesEachRow) {
  std::vector<double> x = noise(12 * 3000);
  const std::vector<double> found = run(node(12, 3000), x, 3);
  for (std::size_t row = 0; row < 12; ++row) {
    std::vector<std::uint64_t> bits(3000);
    std::memcpy(bits.data(), x.data() + 3000 * row, 8 * 3000);
    const std::uint64_t expected = kernel::reduce(ReduceOp::sum, kernel::Scalar::f64, bits);
    EXPECT_EQ(std::memcmp(&found[row], &expected, 8), 0) << "row " << row;
  }
}

TEST(BoundReduce, RefusesMemoryThatOnlyTheClientReaches) {
  const PlaneMemory planes[] = {{nullptr, 80}, {nullptr, 8}};
  const StatusOr<BoundReduce> bound = BoundReduce::bind(node(1, 10), planes, 1);
  EXPECT_EQ(bound.status().reason(), Reason::private_array);
}

}  // namespace
}  // namespace eagle::run
