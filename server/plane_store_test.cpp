#include "server/plane_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "eagle/v1/state.pb.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t page = 4096;

std::string_view text(const PlaneStore::Token& token) {
  return {reinterpret_cast<const char*>(token.data()), token.size()};
}

class PlaneStoreTest : public testing::Test {
protected:
  std::vector<PlaneStore::Created> create(std::vector<PlaneStore::Spec> specs) {
    auto made = store_.create(specs);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *std::move(made) : std::vector<PlaneStore::Created>();
  }
  PlaneStore::Created create_one(std::uint64_t bytes = page) { return create({{bytes, "p"}}).front(); }
  Status release(graph::PlaneId id) { return store_.release({&id, 1}); }
  StatusOr<PlaneStore::Planes> redeem(std::string_view token) { return store_.redeemable({&token, 1}); }

  Limits limits_;
  PlaneBudget budget_{64 * page, 8};
  PlaneStore store_{budget_, limits_};
};

TEST_F(PlaneStoreTest, PlanesAreZeroedAndFoundByTheirId) {
  const auto made = create({{100, "a"}, {5000, "b"}});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].plane->size(), 100u);
  EXPECT_EQ(made[1].plane->label(), "b");
  EXPECT_EQ(made[1].plane->data()[4999], std::byte{0});
  EXPECT_EQ(*store_.find(made[1].plane->id()), made[1].plane);
  EXPECT_EQ(store_.list().size(), 2u);
}

TEST_F(PlaneStoreTest, TheBudgetCountsWholePages) {
  const auto made = create({{1, "a"}, {page + 1, "b"}});
  EXPECT_EQ(budget_.used_bytes(), 3 * page);
  EXPECT_EQ(budget_.used_planes(), 2u);
}

// Or planes of a byte would cost a tenant a byte, and the machine a page.
TEST(ATenantsPlanes, CountWholePagesAndThemselves) {
  const Limits limits;
  PlaneBudget budget(64 * page, 8);
  const auto tenant = std::make_shared<Tenant>("t", TenantPolicy());
  PlaneStore store(budget, limits, tenant);
  const auto held = [&](Held kind) { return tenant->report().held[static_cast<std::size_t>(kind)]; };
  const std::vector<PlaneStore::Spec> specs = {{1, "a"}, {page + 1, "b"}};
  const auto made = store.create(specs);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(held(Held::plane_bytes), 3 * page);
  EXPECT_EQ(held(Held::planes), 2u);
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::planes)] = 2;
  tenant->set_policy(policy);
  const PlaneStore::Spec one{1, "c"};
  const Status refused = store.create({&one, 1}).status();
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_THAT(refused.message(), testing::HasSubstr("tenant_planes"));
  EXPECT_EQ(held(Held::plane_bytes), 3 * page) << "what was refused is not held";
  static_cast<void>(store.close());
}

TEST_F(PlaneStoreTest, OverTheBudgetSaysAskedUsedAndBudget) {
  const auto held = create_one(10 * page);
  const PlaneStore::Spec spec{60 * page, "large"};
  const Status status = store_.create({&spec, 1}).status();
  EXPECT_EQ(status.reason(), Reason::plane_budget);
  EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(60 * page)));
  EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(10 * page)));
  EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(64 * page)));
}

TEST_F(PlaneStoreTest, SizesThatWrapAroundAreOverTheBudget) {
  for (const std::uint64_t bytes :
       {~std::uint64_t{0}, ~std::uint64_t{0} - page + 2, std::uint64_t{1} << 63}) {
    const PlaneStore::Spec spec{bytes, "huge"};
    EXPECT_EQ(store_.create({&spec, 1}).status().reason(), Reason::plane_budget) << bytes;
  }
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(PlaneStoreTest, WhatWasGivenUpIsNotMadeNorCharged) {
  const std::vector<PlaneStore::Spec> specs = {{page, "a"}, {page, "b"}};
  const Status status = store_.create(specs, [asked = 0]() mutable { return ++asked == 2; }).status();
  EXPECT_EQ(status.reason(), Reason::cancelled);
  EXPECT_EQ(budget_.used_bytes(), 0u);
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(PlaneStoreTest, CountsTheBytesOfThosePlanesThatExist) {
  const auto a = create_one(100);
  const auto b = create_one(2 * page);
  const std::vector<graph::PlaneId> ids = {a.plane->id(), {77, 1}, b.plane->id()};
  EXPECT_EQ(store_.bytes_of(ids), 100 + 2 * page);
}

TEST_F(PlaneStoreTest, ARequestMakesAllOrNone) {
  const std::vector<PlaneStore::Spec> specs = {{page, "a"}, {64 * page, "b"}};
  EXPECT_EQ(store_.create(specs).status().reason(), Reason::plane_budget);
  EXPECT_EQ(budget_.used_bytes(), 0u);
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(PlaneStoreTest, TheNumberOfPlanesIsBounded) {
  const auto held = create(std::vector<PlaneStore::Spec>(8, {page, "p"}));
  const PlaneStore::Spec one_more{page, "p"};
  EXPECT_EQ(store_.create({&one_more, 1}).status().reason(), Reason::quota);
}

TEST_F(PlaneStoreTest, EmptyPlanesAndLongLabelsAreRefused) {
  const PlaneStore::Spec empty{0, "p"};
  EXPECT_EQ(store_.create({&empty, 1}).status().reason(), Reason::bad_value);
  const PlaneStore::Spec long_label{page, std::string(limits_.label_bytes + 1, 'l')};
  EXPECT_EQ(store_.create({&long_label, 1}).status().reason(), Reason::bad_value);
}

TEST_F(PlaneStoreTest, AReusedIdHasANewGeneration) {
  const graph::PlaneId first = create_one().plane->id();
  ASSERT_TRUE(release(first).ok());
  const graph::PlaneId second = create_one().plane->id();
  EXPECT_EQ(second.id, first.id);
  EXPECT_NE(second.generation, first.generation);
  EXPECT_EQ(store_.find(first).status().reason(), Reason::unknown_plane);
  EXPECT_EQ(release(first).reason(), Reason::unknown_plane);
  EXPECT_TRUE(store_.find(second).ok());
}

TEST_F(PlaneStoreTest, IdsThatWereNeverGivenAreUnknown) {
  for (const graph::PlaneId id : {graph::PlaneId{0, 0}, {1, 0}, {~std::uint64_t{0}, 1}}) {
    EXPECT_EQ(store_.find(id).status().reason(), Reason::unknown_plane);
    EXPECT_EQ(release(id).reason(), Reason::unknown_plane);
  }
}

TEST_F(PlaneStoreTest, ReleaseTakesAllOrNone) {
  const graph::PlaneId id = create_one().plane->id();
  const std::vector<graph::PlaneId> with_unknown = {id, {99, 1}};
  EXPECT_EQ(store_.release(with_unknown).reason(), Reason::unknown_plane);
  const std::vector<graph::PlaneId> twice = {id, id};
  EXPECT_EQ(store_.release(twice).reason(), Reason::unknown_plane);
  EXPECT_TRUE(store_.find(id).ok());
}

TEST_F(PlaneStoreTest, MemoryGoesWithTheLastHolderNotWithTheRelease) {
  auto created = create_one();
  ASSERT_TRUE(release(created.plane->id()).ok());
  EXPECT_TRUE(created.plane->released());
  EXPECT_EQ(budget_.used_bytes(), page);
  created.plane->data()[0] = std::byte{1};  // still mapped
  created.plane.reset();
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(PlaneStoreTest, ATokenIsGoodOnce) {
  const auto created = create_one();
  const std::string_view token = text(created.token);
  const auto planes = redeem(token);
  ASSERT_TRUE(planes.ok());
  EXPECT_EQ(planes->front(), created.plane);
  store_.spend({&token, 1});
  EXPECT_EQ(redeem(token).status().reason(), Reason::unknown_plane);
}

TEST_F(PlaneStoreTest, ATokenOfAnotherSessionIsWorthNothing) {
  PlaneStore other(budget_, limits_);
  const PlaneStore::Spec spec{page, "theirs"};
  const auto theirs = other.create({&spec, 1});
  ASSERT_TRUE(theirs.ok());
  EXPECT_EQ(redeem(text(theirs->front().token)).status().reason(), Reason::unknown_plane);
  EXPECT_EQ(redeem("").status().reason(), Reason::unknown_plane);
}

TEST_F(PlaneStoreTest, TokensOfOneRequestAreAllGoodOrNoneIsSpent) {
  const auto created = create_one();
  const std::string_view token = text(created.token);
  const std::vector<std::string_view> twice = {token, token};
  EXPECT_EQ(store_.redeemable(twice).status().reason(), Reason::unknown_plane);
  EXPECT_TRUE(redeem(token).ok());
}

TEST_F(PlaneStoreTest, ReleaseTakesTheTokenAlong) {
  const auto created = create_one();
  ASSERT_TRUE(release(created.plane->id()).ok());
  EXPECT_EQ(redeem(text(created.token)).status().reason(), Reason::unknown_plane);
}

TEST_F(PlaneStoreTest, WhoKeepsADescriptorKeepsNoMemoryOfTheDaemon) {
  auto created = create_one();
  ASSERT_TRUE(redeem(text(created.token)).ok());
  const UniqueFd kept = *created.plane->bytes()->descriptor(false);
  void* const mapped = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, kept.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memset(mapped, 1, page);
  ASSERT_TRUE(release(created.plane->id()).ok());
  created.plane.reset();
  EXPECT_EQ(*static_cast<char*>(mapped), 0) << "the pages were not freed";
  ::munmap(mapped, page);
}

TEST_F(PlaneStoreTest, AClosedStoreGivesUpItsPlanesAndMakesNoMore) {
  const graph::PlaneId id = create_one().plane->id();
  EXPECT_EQ(store_.close().size(), 1u);
  EXPECT_EQ(budget_.used_bytes(), 0u);
  EXPECT_EQ(store_.find(id).status().reason(), Reason::unknown_plane);
  const PlaneStore::Spec spec{page, "late"};
  EXPECT_EQ(store_.create({&spec, 1}).status().reason(), Reason::session_closed);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

// What another worker left, and ids of this one.
TEST(RestoredPlanes, KeepTheirIdsAndNoIdMeansAnotherPlaneLater) {
  const Limits limits;
  PlaneBudget budget{1 << 20, 100};
  constexpr std::uint64_t first_generation = std::uint64_t{1} << 32;
  PlaneStore before{budget, limits};
  const std::vector<PlaneStore::Spec> specs{{4096, "a"}, {4096, "b"}};
  const auto made = before.create(specs).value();
  const graph::PlaneId kept = made[1].plane->id();
  const graph::PlaneId released = made[0].plane->id();

  PlaneStore after{budget, limits, nullptr, {nullptr, 0, first_generation}};
  v1::PlaneRecord record;
  record.set_generation(kept.generation);
  record.set_label("b");
  const auto& bytes = made[1].plane->bytes();
  ASSERT_TRUE(after.restore(kept.id, record, bytes).ok());
  const auto found = after.find(kept);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ((*found)->label(), "b");
  EXPECT_EQ(after.restore(kept.id, record, bytes).reason(), Reason::bad_message) << "twice";

  const auto fresh = after.create({specs.data(), 1}).value();
  EXPECT_GT(fresh[0].plane->id().generation, first_generation);
  EXPECT_EQ(after.find(released).status().reason(), Reason::unknown_plane);
  ASSERT_TRUE(after.release({&kept, 1}).ok());
  const auto reused = after.create({specs.data(), 1}).value();
  EXPECT_EQ(reused[0].plane->id().id, kept.id);
  EXPECT_EQ(after.find(kept).status().reason(), Reason::unknown_plane);
}

}  // namespace
}  // namespace eagle::server
