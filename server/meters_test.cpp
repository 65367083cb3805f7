#include "server/meters.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace eagle::server {
namespace {

TEST(Durations, AreCountedByTheirBounds) {
  Durations durations;
  for (const double seconds : {0.0, 1e-6, 1.5e-6, 0.5, 2000.0}) durations.observe(seconds);
  const auto counts = durations.counts();
  EXPECT_EQ(counts[0], 2u);  // up to 1 us, and 1 us itself
  EXPECT_EQ(counts[1], 1u);
  EXPECT_EQ(counts.back(), 1u);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 5u);
  EXPECT_NEAR(durations.sum_s(), 2000.5, 1e-3);
}

TEST(TenantMeters, OneOfANameIsTheSameForEver) {
  TenantMeters meters;
  count(meters.of("uid:1000")->launches[0]);
  EXPECT_EQ(meters.of("uid:1000")->launches[0].load(), 1u);
  EXPECT_EQ(meters.of("uid:1001")->launches[0].load(), 0u);
}

TEST(TenantMeters, LabelsAreBoundedWhoeverComes) {
  TenantMeters meters;
  for (int i = 0; i < 1000; ++i) count(meters.of("token:" + std::to_string(i))->launches[0]);
  for (int i = 0; i < 1000; ++i) count(meters.of("anonymous:" + std::to_string(i))->launches[0]);
  const auto all = meters.all();
  EXPECT_LE(all.size(), TenantMeters::most + 2);
  EXPECT_EQ(all.at("anonymous")->launches[0].load(), 1000u);
  EXPECT_EQ(all.at("other")->launches[0].load(), 1000u - TenantMeters::most);
  EXPECT_EQ(meters.label_of("token:3"), "token:3");
  EXPECT_EQ(meters.label_of("token:999"), "other");
}

}  // namespace
}  // namespace eagle::server
