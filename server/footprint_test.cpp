#include "server/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace eagle::server {
namespace {

using graph::NamedView;
using graph::Touches;
using plane::DType;
using plane::View;

// Names of planes that nobody follows.
const PlaneBytes* plane(std::uintptr_t number) { return reinterpret_cast<const PlaneBytes*>(number * 64); }

View doubles(std::uint32_t index, std::int64_t first, std::int64_t count, std::int64_t stride = 1) {
  return {index, 8 * first, DType::f64, 8, {count}, {8 * stride}};
}

std::shared_ptr<const Footprint> footprint(const std::vector<View>& reads, const std::vector<View>& writes,
                                           std::vector<const PlaneBytes*> planes = {plane(1), plane(2)}) {
  Touches touches;
  for (const View& view : reads) touches.reads.push_back({"r", view});
  for (const View& view : writes) touches.writes.push_back({"w", view});
  return Footprint::of({&touches, 1}, planes);
}

void expect(bool conflict, const std::shared_ptr<const Footprint>& a,
            const std::shared_ptr<const Footprint>& b) {
  EXPECT_EQ(a->conflicts_with(*b), conflict);
  EXPECT_EQ(b->conflicts_with(*a), conflict);
}

TEST(Footprint, ReadersDoNotMeet) {
  const auto reader = footprint({doubles(0, 0, 10)}, {});
  expect(false, reader, reader);
}

TEST(Footprint, AWriterMeetsReadersAndWritersOfItsBytes) {
  const auto writer = footprint({}, {doubles(0, 0, 10)});
  expect(true, writer, footprint({doubles(0, 9, 1)}, {}));
  expect(true, writer, footprint({}, {doubles(0, 9, 5)}));
  expect(false, writer, footprint({doubles(0, 10, 5)}, {doubles(0, 20, 5)}));
}

TEST(Footprint, PlanesAreToldApartByWhatTheyAreAndNotByTheirIndex) {
  const auto writer = footprint({}, {doubles(0, 0, 10)}, {plane(1), plane(2)});
  expect(true, writer, footprint({doubles(1, 0, 10)}, {}, {plane(2), plane(1)}));
  expect(false, writer, footprint({doubles(0, 0, 10)}, {}, {plane(2), plane(1)}));
}

TEST(Footprint, ColumnsOfOneMatrixLieApart) {
  const auto even = footprint({}, {doubles(0, 0, 100, 2)});
  const auto odd = footprint({}, {doubles(0, 1, 100, 2)});
  expect(false, even, odd);
  expect(true, even, even);
}

TEST(Footprint, PrivateMemoryAndNothingMeetNobody) {
  const auto writer = footprint({}, {doubles(0, 0, 10)}, {nullptr, plane(2)});
  expect(false, writer, writer);
  const auto empty = footprint({}, {doubles(0, 0, 0)});
  expect(false, empty, footprint({}, {doubles(0, 0, 10)}));
}

// Of too many views the bounds stand for all: then two may wait for each other needlessly, and no more.
TEST(Footprint, OfManyViewsTheBoundsDecide) {
  std::vector<View> many;
  for (std::int64_t i = 0; i < 1000; ++i) many.push_back(doubles(0, 2 * i, 1));
  expect(true, footprint({}, many), footprint({}, {doubles(0, 1, 1)}));
  expect(false, footprint({}, many), footprint({}, {doubles(0, 5000, 1)}));
}

// One that is asked about many in a row has a bound for all of them.
TEST(Footprint, WhereNoStepsAreLeftWhoeverSharesAPlaneMeets) {
  const auto even = footprint({}, {doubles(0, 0, 100, 2)});
  const auto odd = footprint({}, {doubles(0, 1, 100, 2)});
  std::int64_t steps = 10;
  int told_apart = 0;
  while (!even->conflicts_with(*odd, steps)) ++told_apart;
  EXPECT_GT(told_apart, 0);
  EXPECT_LE(told_apart, 10) << "each took a step at least";
  EXPECT_LE(steps, 0);
  EXPECT_FALSE(even->conflicts_with(*footprint({}, {doubles(0, 0, 10)}, {plane(3), plane(4)}), steps))
      << "strangers wait for nobody";
}

TEST(Footprint, OnePairTakesSoManyStepsAndNoMore) {
  // Of 64 views each, any two of which could meet.
  std::vector<View> some, others;
  for (std::int64_t i = 0; i < 64; ++i) {
    some.push_back({0, 8 * i, DType::f64, 8, {50, 50}, {8 * 1001, 8 * 4003}});
    others.push_back({0, 8 * i + 4, DType::boolean, 1, {50, 50}, {8 * 2003, 8 * 6007}});
  }
  const auto a = footprint({}, some), b = footprint({}, others);
  std::int64_t steps = Footprint::most_steps_in_a_row;
  static_cast<void>(a->conflicts_with(*b, steps));
  EXPECT_LT(steps, Footprint::most_steps_in_a_row);
  // The last search of a pair may go over by its own length.
  EXPECT_GE(steps, Footprint::most_steps_in_a_row - 2 * Footprint::most_steps - 1);
}

TEST(Footprint, AgreesWithTheBytesThemselves) {
  const unsigned seed = 20'260'801;
  std::mt19937 random(seed);
  const auto pick = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 2000; ++round) {
    struct Made {
      std::array<std::set<std::int64_t>, 2> bytes;  // read, written
      std::shared_ptr<const Footprint> footprint;
    };
    const auto make = [&] {
      Made made;
      std::array<std::vector<View>, 2> views;
      for (int n = 0; n < 3; ++n) {
        const auto side = static_cast<std::size_t>(pick(2));
        const View view = doubles(0, pick(30), 1 + pick(4), 1 + pick(6));
        for (std::int64_t i = 0; i < view.shape[0]; ++i) {
          for (std::int64_t b = 0; b < 8; ++b) made.bytes[side].insert(view.offset + i * view.strides[0] + b);
        }
        views[side].push_back(view);
      }
      made.footprint = footprint(views[0], views[1]);
      return made;
    };
    const Made a = make();
    const Made b = make();
    const auto meet = [](const std::set<std::int64_t>& one, const std::set<std::int64_t>& other) {
      return std::any_of(one.begin(), one.end(), [&](std::int64_t byte) { return other.contains(byte); });
    };
    const bool conflict =
        meet(a.bytes[1], b.bytes[1]) || meet(a.bytes[1], b.bytes[0]) || meet(a.bytes[0], b.bytes[1]);
    ASSERT_EQ(a.footprint->conflicts_with(*b.footprint), conflict) << "seed " << seed << " round " << round;
  }
}

TEST(Footprint, OfManyPlanesThoseThatBothNameDecide) {
  const unsigned seed = 20'261'130;
  std::mt19937 random(seed);
  constexpr std::size_t planes_there_are = 300;
  for (int round = 0; round < 500; ++round) {
    struct Made {
      std::set<std::uintptr_t> planes;
      bool writes = false;
      std::shared_ptr<const Footprint> footprint;
    };
    const auto make = [&] {
      Made made;
      made.writes = random() % 2 == 0;
      const std::size_t count = std::size_t{1} << (random() % 8);  // a few beside many
      while (made.planes.size() < count) made.planes.insert(1 + random() % planes_there_are);
      std::vector<const PlaneBytes*> names;
      std::vector<View> views;
      for (const std::uintptr_t number : made.planes) {
        views.push_back(doubles(static_cast<std::uint32_t>(names.size()), 0, 1));
        names.push_back(plane(number));
      }
      made.footprint = made.writes ? footprint({}, views, names) : footprint(views, {}, names);
      return made;
    };
    const Made a = make();
    const Made b = make();
    const bool shared = std::any_of(a.planes.begin(), a.planes.end(),
                                    [&](std::uintptr_t number) { return b.planes.contains(number); });
    ASSERT_EQ(a.footprint->conflicts_with(*b.footprint), shared && (a.writes || b.writes))
        << "seed " << seed << " round " << round;
  }
}

}  // namespace
}  // namespace eagle::server
