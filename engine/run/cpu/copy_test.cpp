#include "engine/run/cpu/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/plane/testing.h"

namespace eagle::run {
namespace {

using plane::DType;
using plane::View;

// Bytes of element `index` (row-major) of a view.
std::int64_t offset_of(const View& view, std::int64_t index) {
  std::int64_t offset = view.offset;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    offset += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  return offset;
}

// A plane of its own for each side.
struct Planes {
  std::vector<std::byte> from;
  std::vector<std::byte> to;
  std::vector<PlaneMemory> memory() { return {{from.data(), from.size()}, {to.data(), to.size()}}; }
};

// How many pieces it took, which end when the slice is over.
void run(const graph::Copy& copy, Planes& planes, int team, const Slice& slice = {}, int* pieces = nullptr) {
  const auto memory = planes.memory();
  auto bound = BoundCopy::bind(copy, memory);
  ASSERT_TRUE(bound.ok()) << bound.status().to_string();
  std::vector<Place> places(static_cast<std::size_t>(team));
  const Piece piece{team, places, {}, nullptr, slice};
  Progress progress;
  int count = 0;
  do {
    bound->run(piece, progress);
    ++count;
  } while (progress.left);
  if (pieces != nullptr) *pieces = count;
}

// Axes in any order, some reversed, with room between elements.
View spread(std::mt19937_64& random, const std::vector<std::int64_t>& shape, DType dtype,
            std::uint32_t plane) {
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  View view{plane, 0, dtype, dtype == DType::other ? 3U : plane::bytes_of(dtype), shape, {}};
  view.strides.resize(shape.size());
  std::int64_t reach = view.item_bytes;
  for (const std::size_t axis : order) {
    view.strides[axis] = reach + static_cast<std::int64_t>(random() % 3) * (random() % 2 == 0 ? 8 : 1);
    reach += view.strides[axis] * (shape[axis] - 1);
    if (random() % 3 == 0) {
      view.offset += view.strides[axis] * (shape[axis] - 1);
      view.strides[axis] = -view.strides[axis];
    }
  }
  return view;
}

TEST(BoundCopy, MovesEachElementWhereItBelongs) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  constexpr DType types[] = {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean, DType::other};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> shape(random() % 4);
    for (std::int64_t& extent : shape) extent = 1 + static_cast<std::int64_t>(random() % 9);
    if (round % 10 == 0) shape.push_back(5000);
    const DType type = types[random() % 6];
    const graph::Copy copy{spread(random, shape, type, 0), spread(random, shape, type, 1)};
    Planes planes;
    planes.from.resize(static_cast<std::size_t>(plane::extent(copy.source).last));
    planes.to.resize(static_cast<std::size_t>(plane::extent(copy.destination).last));
    for (std::byte& byte : planes.from)
      byte = static_cast<std::byte>(random() % (type == DType::boolean ? 2 : 256));
    std::vector<std::byte> expected = planes.to;
    for (std::int64_t i = 0; i < plane::elements(copy.source); ++i) {
      std::memcpy(expected.data() + offset_of(copy.destination, i),
                  planes.from.data() + offset_of(copy.source, i), copy.source.item_bytes);
    }
    run(copy, planes, 1 + round % 3, round % 4 == 3 ? Slice(0) : Slice());
    ASSERT_EQ(planes.to, expected) << plane::to_string(copy.source) << " to "
                                   << plane::to_string(copy.destination);
  }
}

TEST(BoundCopy, AnIndexChoosesTheRowOfAStackAndTheNearestOneOutside) {
  const View row = plane::testing::array({3}, DType::f64, 0, 0);
  const View stack = plane::testing::array({4, 3}, DType::f64, 8, 1);
  const View cell = plane::testing::array({1}, DType::i64, 0, 1);
  for (const auto& [number, chosen] : {std::pair{std::int64_t{2}, 2}, {-5, 0}, {99, 3}}) {
    Planes planes{std::vector<std::byte>(24), std::vector<std::byte>(8 + 96)};
    const double values[] = {1.5, 2.5, 3.5};
    std::memcpy(planes.from.data(), values, sizeof values);
    std::memcpy(planes.to.data(), &number, sizeof number);
    std::vector<std::byte> expected = planes.to;
    std::memcpy(expected.data() + 8 + 24 * chosen, values, sizeof values);
    run({row, stack, graph::NamedView{"index", cell}}, planes, 1);
    EXPECT_EQ(planes.to, expected) << "into row " << number;

    std::fill(planes.from.begin(), planes.from.end(), std::byte{0});
    run({stack, row, graph::NamedView{"index", cell}}, planes, 1);
    EXPECT_EQ(std::memcmp(planes.from.data(), values, sizeof values), 0) << "from row " << number;
  }
}

TEST(BoundCopy, TheBytesDoNotDependOnTheTeam) {
  const View from = plane::testing::transposed(plane::testing::array({300, 77}));
  const View to = plane::testing::array({77, 300}, DType::f32, 0, 1);
  std::vector<std::byte> first;
  for (const int team : {1, 2, 3, 7}) {
    Planes planes{std::vector<std::byte>(300 * 77 * 8), std::vector<std::byte>(300 * 77 * 4)};
    for (std::size_t i = 0; i < 300 * 77; ++i) {
      const double value = static_cast<double>(i) / 3.0;
      std::memcpy(planes.from.data() + 8 * i, &value, 8);
    }
    run({from, to}, planes, team);
    if (first.empty()) first = planes.to;
    EXPECT_EQ(planes.to, first);
    std::fill(planes.to.begin(), planes.to.end(), std::byte{0});
    int pieces = 0;
    run({from, to}, planes, team, Slice(0), &pieces);
    EXPECT_EQ(planes.to, first);
    EXPECT_EQ(pieces, (77 + team - 1) / team) << "a row of 300 elements a share and piece";
  }
}

TEST(BoundCopy, StopsWithinAPieceWhenSomebodyWantsItTo) {
  Planes planes{std::vector<std::byte>(8 * 100'000, std::byte{1}), std::vector<std::byte>(8 * 100'000)};
  const auto memory = planes.memory();
  auto bound = BoundCopy::bind(
      {plane::testing::array({100'000}), plane::testing::array({100'000}, DType::f64, 0, 1)}, memory);
  ASSERT_TRUE(bound.ok());
  std::vector<Place> places(2);
  Control control;
  control.cancel = true;
  Piece piece{2, places, {}, nullptr, {}};
  piece.slice.heed(&control);
  Progress progress;
  bound->run(piece, progress);
  EXPECT_TRUE(progress.left);
  EXPECT_EQ(planes.to.back(), std::byte{0});
}

TEST(BoundCopy, NothingIsNotTouched) {
  Planes planes;
  run({plane::testing::array({0, 4}), plane::testing::array({0, 4}, DType::f64, 0, 1)}, planes, 2);
}

TEST(BoundCopy, MemoryOfTheClientIsOutOfReach) {
  const std::vector<PlaneMemory> memory = {{nullptr, 64}, {nullptr, 64}};
  const auto bound =
      BoundCopy::bind({plane::testing::array({8}), plane::testing::array({8}, DType::f64, 0, 1)}, memory);
  EXPECT_EQ(bound.status().reason(), Reason::private_array);
}

}  // namespace
}  // namespace eagle::run
