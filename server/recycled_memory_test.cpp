#include "server/recycled_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "server/plane_store.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t mib = 1u << 20;

class Recycling : public ::testing::Test {
protected:
  using Spec = PlaneStore::Spec;

  static PlaneStore::Created create(PlaneStore& store, std::uint64_t bytes, bool may_be_uncleared = true) {
    const Spec spec{bytes, "p", may_be_uncleared};
    auto made = store.create({&spec, 1});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made->front();
  }
  // Makes a plane, fills it, releases it.
  static graph::PlaneId use(PlaneStore& store, std::uint64_t bytes, char value) {
    const auto made = create(store, bytes, false);
    std::memset(made.plane->data(), value, bytes);
    const graph::PlaneId id = made.plane->id();
    EXPECT_TRUE(store.release({&id, 1}).ok());
    return id;
  }
  static bool holds(const PlaneStore::Created& made, char value) {
    for (std::uint64_t i = 0; i < made.plane->size(); ++i) {
      if (made.plane->data()[i] != std::byte(value)) return false;
    }
    return true;
  }

  Limits limits_;
  PlaneBudget budget_{16 * mib, 100, 4 * mib};
  std::unique_ptr<PlaneStore> store_ = std::make_unique<PlaneStore>(budget_, limits_);
};

TEST_F(Recycling, TheNextPlaneOfThatSizeHasTheMemoryAsItWas) {
  const graph::PlaneId used = use(*store_, mib, 7);
  EXPECT_EQ(budget_.recycled().bytes(), mib);
  const auto again = create(*store_, mib);
  EXPECT_EQ(again.recycled, used);
  EXPECT_TRUE(holds(again, 7));
  EXPECT_EQ(budget_.recycled().bytes(), 0u);
}

TEST_F(Recycling, WhoWantsZerosGetsZeros) {
  use(*store_, mib, 7);
  const auto again = create(*store_, mib, false);
  EXPECT_EQ(again.recycled.id, 0u);
  EXPECT_TRUE(holds(again, 0));
}

TEST_F(Recycling, AnotherSessionNeverSeesIt) {
  use(*store_, mib, 7);
  PlaneStore other(budget_, limits_);
  const auto fresh = create(other, mib);
  EXPECT_EQ(fresh.recycled.id, 0u);
  EXPECT_TRUE(holds(fresh, 0));
}

TEST_F(Recycling, WhatAnotherSessionHasIsNotUsedAgain) {
  PlaneStore other(budget_, limits_);
  auto made = create(*store_, mib);
  ASSERT_TRUE(other.adopt("theirs", made.plane->bytes(), true).ok());
  const graph::PlaneId id = made.plane->id();
  ASSERT_TRUE(store_->release({&id, 1}).ok());
  made = {};
  other.close();
  EXPECT_EQ(budget_.recycled().pieces(), 0u);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(Recycling, WhatIsInUseIsNotUsedAgain) {
  const auto made = create(*store_, mib);
  const graph::PlaneId id = made.plane->id();
  ASSERT_TRUE(store_->release({&id, 1}).ok());
  EXPECT_EQ(budget_.recycled().pieces(), 0u) << "somebody holds it still";
  EXPECT_NE(create(*store_, mib).plane->data(), made.plane->data());
}

TEST_F(Recycling, AShortBudgetComesFirst) {
  use(*store_, 2 * mib, 1);
  use(*store_, mib, 1);
  EXPECT_EQ(budget_.used_bytes(), 0u) << "what is kept for later is not in use";
  PlaneStore other(budget_, limits_);
  const auto large = create(other, 14 * mib);
  EXPECT_EQ(budget_.recycled().bytes(), mib) << "the oldest went, and no more than had to";
  create(other, 2 * mib);
  EXPECT_EQ(budget_.recycled().bytes(), 0u);
  const Spec more{mib, "p"};
  EXPECT_EQ(other.create({&more, 1}).status().reason(), Reason::plane_budget);
}

TEST_F(Recycling, APlaneThatCanNeverFitCostsNobodyWhatIsKept) {
  use(*store_, mib, 1);
  const Spec spec{17 * mib, "p"};
  EXPECT_EQ(store_->create({&spec, 1}).status().reason(), Reason::plane_budget);
  EXPECT_EQ(budget_.recycled().bytes(), mib);
}

TEST_F(Recycling, ASessionKeepsSoMuchAndNoMore) {
  for (char value = 1; value <= 3; ++value) use(*store_, 2 * mib - value, value);
  EXPECT_EQ(budget_.recycled().pieces(), 2u);
  EXPECT_EQ(create(*store_, 2 * mib - 1).recycled.id, 0u) << "the oldest went";
  EXPECT_NE(create(*store_, 2 * mib - 3).recycled.id, 0u);
  use(*store_, 5 * mib, 1);
  EXPECT_EQ(budget_.recycled().pieces(), 1u) << "one that is too large for all of it is not kept";
}

TEST_F(Recycling, SmallPlanesAreNotKept) {
  use(*store_, 4096, 1);
  EXPECT_EQ(budget_.recycled().pieces(), 0u);
}

TEST_F(Recycling, TheEndOfASessionFreesWhatItKept) {
  use(*store_, mib, 1);
  auto late = create(*store_, 2 * mib);
  const auto planes = store_->close();
  EXPECT_EQ(budget_.recycled().pieces(), 0u);
  late = {};
  EXPECT_EQ(budget_.used_bytes(), 2 * mib);
}

TEST_F(Recycling, WhatNobodyWantedForAWhileGoes) {
  use(*store_, mib, 1);
  const auto now = RecycledMemory::Clock::now();
  EXPECT_TRUE(budget_.recycled().take_older_than(now - std::chrono::seconds(10)).empty());
  EXPECT_EQ(budget_.recycled().take_older_than(now + std::chrono::seconds(1)).size(), 1u);
  EXPECT_EQ(budget_.recycled().bytes(), 0u);
}

TEST_F(Recycling, WhatIsFreedIsFreedForWhoStillMapsIt) {
  auto made = create(*store_, mib);
  std::memset(made.plane->data(), 7, mib);
  auto descriptor = made.plane->bytes()->descriptor(false);
  ASSERT_TRUE(descriptor.ok());
  const auto mapped = plane::Memory::map(std::move(*descriptor), mib, plane::Memory::Pages::populated);
  ASSERT_TRUE(mapped.ok());
  const graph::PlaneId id = made.plane->id();
  ASSERT_TRUE(store_->release({&id, 1}).ok());
  made = {};
  EXPECT_EQ(mapped->data()[mib - 1], std::byte(7));
  EXPECT_TRUE(budget_.recycled().give_back_oldest());
  EXPECT_EQ(mapped->data()[mib - 1], std::byte(0));
  EXPECT_FALSE(budget_.recycled().give_back_oldest());
}

}  // namespace
}  // namespace eagle::server
