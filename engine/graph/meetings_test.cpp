#include "engine/graph/meetings.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"

namespace eagle::graph {
namespace {

using plane::testing::at;
using plane::testing::slice;
using testing::Description;
using testing::host;
using testing::View;

// A graph and its places, which point into it.
struct Scene {
  explicit Scene(const Description& description)
      : graph(description.graph()), all(leaves(graph)), places(places_of(all)) {}

  // How often each pair of places is visited, by their views.
  [[nodiscard]] std::map<std::pair<const View*, const View*>, int> visits() const {
    std::map<std::pair<const View*, const View*>, int> out;
    Work work;
    EXPECT_TRUE(for_each_meeting(
        places, work, [&](const Place& a, const Place& b) { ++out[std::minmax(a.view, b.view)]; }));
    return out;
  }

  Graph graph;
  std::vector<Leaf> all;
  std::vector<Place> places;
};

// Pieces of rows of one matrix, whose pairs meet in columns or not at all.
Description pieces_of_rows(std::mt19937_64& random) {
  Description d;
  const View m = d.array({4, 12});
  for (int i = 0; i < 12; ++i) {
    const auto start = static_cast<std::int64_t>(random() % 10);
    const View piece = slice(m, 1, start, 1 + static_cast<std::int64_t>(random() % 2));
    const View row = at(m, 0, static_cast<std::int64_t>(random() % 4));
    const View& view = random() % 4 == 0 ? row : piece;
    if (random() % 2 == 0) {
      d.add(host("", {{"m", view}}, {}));
    } else {
      d.add(host("", {}, {{"m", view}}));
    }
  }
  return d;
}

void expect_each_pair_once(const Scene& scene) {
  const auto visits = scene.visits();
  for (std::size_t i = 0; i < scene.places.size(); ++i) {
    for (std::size_t j = i; j < scene.places.size(); ++j) {
      const Place& a = scene.places[i];
      const Place& b = scene.places[j];
      const bool written = !a.writes.empty() || !b.writes.empty();
      const auto found = visits.find(std::minmax(a.view, b.view));
      ASSERT_EQ(found == visits.end() ? 0 : found->second,
                written && testing::share_bytes(*a.view, *b.view) ? 1 : 0)
          << plane::to_string(*a.view) << " and " << plane::to_string(*b.view);
    }
  }
}

TEST(Meetings, EveryPairOfPlacesThatMeetsAndIsWrittenIsVisitedOnce) {
  constexpr std::uint64_t seed = 29;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    expect_each_pair_once(Scene(testing::random_description(random)));
    expect_each_pair_once(Scene(pieces_of_rows(random)));
  }
}

TEST(Meetings, EqualViewsAreOnePlaceAndEmptyOnesNone) {
  Description d;
  const View x = d.array({8});
  d.add(host("", {{"a", x}}, {{"b", slice(x, 0, 0, 4)}}));
  d.add(host("", {{"c", x}, {"none", slice(x, 0, 2, 0)}}, {{"d", x}, {"none", slice(x, 0, 2, 0)}}));
  const Scene scene(d);
  ASSERT_EQ(scene.places.size(), 2U);
  EXPECT_EQ(*scene.places[0].view, x);
  EXPECT_EQ(scene.places[0].reads.size(), 2U);
  EXPECT_EQ(scene.places[0].writes.size(), 1U);
  EXPECT_EQ(scene.places[1].writes.size(), 1U);
}

TEST(Meetings, EndWithTheWork) {
  // Columns have an index of their own; elsewhere, what is written and what is only read are looked at apart.
  Description columns;
  const View m = columns.array({4, 4});
  for (int i = 0; i < 3; ++i) columns.add(host("", {}, {{"m", slice(m, 1, i, 2)}}));
  Description written_first;
  const View x = written_first.array({8});
  Description read_first = written_first;
  written_first.add(host("", {}, {{"x", x}}));
  for (int i = 0; i < 3; ++i) {
    written_first.add(host("", {{"x", slice(x, 0, i + 1, 4)}}, {}));
    read_first.add(host("", {{"x", slice(x, 0, i, 6)}}, {}));
  }
  read_first.add(host("", {}, {{"x", slice(x, 0, 4, 4)}}));
  for (const Description* d : {&columns, &written_first, &read_first}) {
    const Scene scene(*d);
    int visits = 0;
    const auto count = [&](const Place& a, const Place& b) { visits += a.view != b.view ? 1 : 0; };
    Work work{1};
    EXPECT_FALSE(for_each_meeting(scene.places, work, count));
    EXPECT_EQ(visits, 1);
    Work enough{1000};
    EXPECT_TRUE(for_each_meeting(scene.places, enough, count));
    EXPECT_LT(enough.left, 1000);
  }
}

TEST(Meetings, HaveASideForEachHazardThatTouchesOnBothMake) {
  const View view;
  const std::vector<Touch> touched = {{0, 0}};
  const Place reads{&view, touched, {}};
  const Place writes{&view, {}, touched};
  const Place both{&view, touched, touched};
  const auto sides = [](const Place& a, const Place& b) {
    std::vector<std::pair<Hazard, const void*>> out;
    for (const Side& side : sides_of(a, b)) {
      EXPECT_FALSE(side.sources->empty());
      EXPECT_FALSE(side.destinations->empty());
      out.emplace_back(side.kind, side.sources);
    }
    return out;
  };
  using Sides = std::vector<std::pair<Hazard, const void*>>;
  EXPECT_EQ(sides(reads, reads), Sides());
  EXPECT_EQ(sides(writes, writes), (Sides{{Hazard::waw, &writes.writes}}));
  EXPECT_EQ(sides(writes, reads), (Sides{{Hazard::raw, &writes.writes}, {Hazard::war, &reads.reads}}));
  EXPECT_EQ(sides(both, both),
            (Sides{{Hazard::raw, &both.writes}, {Hazard::waw, &both.writes}, {Hazard::war, &both.reads}}));
}

}  // namespace
}  // namespace eagle::graph
