#include "client/plane_registry.h"

#include <gtest/gtest.h>

#include "client/testing.h"

namespace eagle {
namespace {

using eagle::testing::FakeHost;

TEST(PlaneRegistry, FindsAnArrayFromAnyAddressInIt) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(64, "x", Contents::zeros);
  const auto found = host.find(buffer->data() + 8, 56);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->plane, (graph::PlaneId{1, 1}));
  EXPECT_EQ(found->plane_bytes, 64u);
  EXPECT_EQ(found->offset, 8u);
  EXPECT_EQ(found->label, "x");
  EXPECT_EQ(found->keep_alive, buffer);
}

TEST(PlaneRegistry, ARangePastTheEndIsNotInTheArray) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(64, "x", Contents::zeros);
  EXPECT_FALSE(host.find(buffer->data() + 8, 57));
  EXPECT_FALSE(host.find(buffer->data(), ~std::uint64_t{0}));
}

TEST(PlaneRegistry, AnEmptyRangeMayLieAtTheVeryEnd) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(64, "x", Contents::zeros);
  ASSERT_TRUE(host.find(buffer->data() + 64, 0));
  EXPECT_EQ(host.find(buffer->data() + 64, 0)->offset, 64u);
}

TEST(PlaneRegistry, AnArrayOfOneSessionIsNotFoundInAnother) {
  FakeHost a("session a");
  const FakeHost b("session b");
  const auto buffer = *a.allocate(64, "x", Contents::zeros);
  EXPECT_FALSE(b.find(buffer->data(), 8));
}

TEST(PlaneRegistry, SaysWhoseMemoryARangeTouches) {
  FakeHost host("session a");
  const auto buffer = *host.allocate(64, "x", Contents::zeros);
  const auto first = reinterpret_cast<std::uintptr_t>(buffer->data());
  const PlaneRegistry& registry = PlaneRegistry::of_process();
  EXPECT_EQ(registry.session_at(first - 100, first + 1), "session a");
  EXPECT_EQ(registry.session_at(first + 63, first + 1000), "session a");
  EXPECT_EQ(registry.session_at(first + 64, first + 65), std::nullopt);
}

TEST(PlaneRegistry, ForgetsAnArrayWithItsLastOwner) {
  FakeHost host("session a");
  auto buffer = *host.allocate(64, "x", Contents::zeros);
  const std::byte* data = buffer->data();
  buffer.reset();
  EXPECT_FALSE(host.find(data, 1));
}

}  // namespace
}  // namespace eagle
