#include "engine/run/cpu/notes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace eagle::run {
namespace {

// Notes of a few ops for some samples, and what a loop over the samples makes of them.
struct Scene {
  std::vector<std::vector<std::int64_t>> elements;
  std::vector<std::vector<double>> values;
  std::vector<NoteColumn> columns;
  std::int64_t samples = 0;
  std::int64_t cells = 0;
  int components = 1;
  std::vector<double> expected;

  explicit Scene(std::mt19937_64& random) {
    samples = 1 + static_cast<std::int64_t>(random() % 3000);
    cells = 1 + static_cast<std::int64_t>(random() % 500);
    components = 1 + static_cast<int>(random() % 3);
    const std::size_t ops = 1 + random() % 3;
    const auto n = static_cast<std::size_t>(samples);
    for (std::size_t op = 0; op < ops; ++op) {
      auto& e = elements.emplace_back(n);
      auto& v = values.emplace_back(n * static_cast<std::size_t>(components));
      // Elements stay the same for about so many samples; -1: none.
      const std::uint64_t run = std::uint64_t{1} << (random() % 10);
      std::int64_t element = -1;
      for (std::size_t i = 0; i < n; ++i) {
        if (i == 0 || random() % run == 0)
          element = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(cells + 1)) - 1;
        e[i] = element;
      }
      for (auto& value : v) value = static_cast<double>(random() % 1000) / 7;
    }
    for (std::size_t op = 0; op < ops; ++op)
      columns.push_back(
          {elements[op].data(), reinterpret_cast<const std::byte*>(values[op].data()), 8 * samples});
    expected = start();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t op = 0; op < ops; ++op) {
        if (elements[op][i] < 0) continue;
        for (int c = 0; c < components; ++c)
          expected[static_cast<std::size_t>(c * cells + elements[op][i])] +=
              values[op][static_cast<std::size_t>(c) * n + i];
      }
    }
  }

  [[nodiscard]] std::vector<double> start() const {
    return std::vector<double>(static_cast<std::size_t>(cells * components), 0.5);
  }
  [[nodiscard]] Cells cells_in(std::vector<double>& memory) const {
    return {reinterpret_cast<std::byte*>(memory.data()), 8 * cells, components, kernel::Scalar::f64};
  }
};

class Notes : public ::testing::Test {
protected:
  std::uint64_t seed = std::random_device()();
  std::mt19937_64 random{seed};
};

TEST_F(Notes, InColumnsAreAddedSampleAfterSample) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int round = 0; round < 100; ++round) {
    const Scene scene(random);
    std::vector<double> found = scene.start();
    add_columns(scene.cells_in(found), scene.columns, scene.samples);
    ASSERT_EQ(std::memcmp(found.data(), scene.expected.data(), 8 * found.size()), 0);
  }
}

TEST_F(Notes, SortedByStripeKeepTheOrderOfEveryElement) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int round = 0; round < 100; ++round) {
    const Scene scene(random);
    const std::size_t stripes = std::size_t{1} << (random() % 5);
    const auto room = static_cast<std::size_t>(scene.samples) * scene.columns.size();
    std::vector<std::int64_t> elements(room), begins(stripes + 1);
    std::vector<double> values(room * static_cast<std::size_t>(scene.components));
    const SortedNotes sorted{elements.data(), reinterpret_cast<std::byte*>(values.data()),
                             static_cast<std::int64_t>(8 * room), begins};
    std::vector<double> found = scene.start();
    const Cells cells = scene.cells_in(found);
    sort_columns(cells, scene.columns, scene.samples, sorted);
    for (std::size_t stripe = stripes; stripe-- > 0;) add_stripe(cells, sorted, stripe);
    ASSERT_EQ(std::memcmp(found.data(), scene.expected.data(), 8 * found.size()), 0) << stripes << " stripes";
  }
}

TEST_F(Notes, OneAfterTheOtherGoToTheAccumulatorOfTheirOp) {
  std::vector<double> reals(4, 1.0);
  std::vector<std::int64_t> integers(4, INT64_MAX);
  const Cells cells[] = {{reinterpret_cast<std::byte*>(reals.data()), 16, 2, kernel::Scalar::f64},
                         {reinterpret_cast<std::byte*>(integers.data()), 32, 1, kernel::Scalar::i64}};
  const std::uint64_t half = 0x3fe0000000000000u;
  const std::uint64_t words[] = {0, 1, half, half, 1, 3, 1, 0, 1, half, half};
  add_words(cells, words);
  EXPECT_EQ(reals, (std::vector<double>{1.0, 2.0, 1.0, 2.0}));
  EXPECT_EQ(integers, (std::vector<std::int64_t>{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MIN}));
}

}  // namespace
}  // namespace eagle::run
