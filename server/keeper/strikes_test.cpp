#include "server/keeper/strikes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "eagle/v1/state.pb.h"
#include "server/quarantine.h"

namespace eagle::server {
namespace {

GraphHash hash_of(std::uint32_t number) {
  GraphHash hash{};
  for (std::size_t i = 0; i < 4; ++i) hash[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return hash;
}

v1::StrikeRecord record_of(const Estate& estate, const GraphHash& hash) {
  v1::StrikeRecord record;
  EXPECT_TRUE(record.ParseFromString(*estate.journal().value(strike_key(hash))));
  return record;
}

TEST(Strikes, AreCountedByGraph) {
  Estate estate = *Estate::create();
  EXPECT_EQ(*strike(estate, hash_of(1), 100), 1u);
  EXPECT_EQ(*strike(estate, hash_of(2), 200), 1u);
  EXPECT_EQ(*strike(estate, hash_of(1), 300), 2u);
  EXPECT_EQ(record_of(estate, hash_of(1)).last_ns(), 300);
  EXPECT_EQ(record_of(estate, hash_of(2)).deaths(), 1u);
}

TEST(Strikes, KeepWhoseTheyAreAtTheNextDeath) {
  Estate estate = *Estate::create();
  ASSERT_TRUE(strike(estate, hash_of(1), 100).ok());
  v1::StrikeRecord named = record_of(estate, hash_of(1));
  named.set_tenant("uid:7");
  StateChange change;
  change.key = strike_key(hash_of(1));
  change.value = named.SerializeAsString();
  ASSERT_TRUE(estate.put(change).ok());
  EXPECT_EQ(*strike(estate, hash_of(1), 200), 2u);
  EXPECT_EQ(record_of(estate, hash_of(1)).tenant(), "uid:7");
}

TEST(Strikes, APardonedGraphBeginsAnew) {
  Estate estate = *Estate::create();
  ASSERT_TRUE(strike(estate, hash_of(1), 100).ok());
  v1::StateChange gone;
  gone.set_kind(static_cast<std::uint32_t>(StateKind::strike));
  gone.set_id(strike_key(hash_of(1)).id);
  gone.set_gone(true);
  ASSERT_TRUE(estate.take(gone, {}).ok());
  EXPECT_EQ(*strike(estate, hash_of(1), 200), 1u);
}

// A tenant may make up graphs without end.
TEST(Strikes, AreBoundedAndTheOldestGoes) {
  Estate estate = *Estate::create();
  const auto count = [&] { return estate.journal().keys_of({0, StateKind::strike, 0}).size(); };
  for (std::uint32_t i = 1; i <= most_strikes; ++i) ASSERT_TRUE(strike(estate, hash_of(i), 1000 + i).ok());
  EXPECT_EQ(count(), most_strikes);
  ASSERT_EQ(*strike(estate, hash_of(1), 5000), 2u) << "it is there, and nothing makes way";
  EXPECT_EQ(count(), most_strikes);
  ASSERT_TRUE(strike(estate, hash_of(9999), 6000).ok());
  EXPECT_EQ(count(), most_strikes);
  EXPECT_TRUE(estate.journal().has(strike_key(hash_of(1))));
  EXPECT_FALSE(estate.journal().has(strike_key(hash_of(2))));
  EXPECT_TRUE(estate.journal().has(strike_key(hash_of(3))));
}

}  // namespace
}  // namespace eagle::server
