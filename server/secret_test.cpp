#include "server/secret.h"

#include <gtest/gtest.h>

namespace eagle::server {
namespace {

TEST(Secret, HexRoundTrips) {
  Secret secret{};
  ASSERT_TRUE(fill_random(secret).ok());
  EXPECT_EQ(secret_from_hex(to_hex(secret)), secret);
}

TEST(Secret, RandomBytesDiffer) {
  Secret a{};
  Secret b{};
  ASSERT_TRUE(fill_random(a).ok());
  ASSERT_TRUE(fill_random(b).ok());
  EXPECT_NE(a, b);
}

TEST(Secret, AnythingButSixtyFourLowerCaseDigitsIsNone) {
  const std::string good(64, 'a');
  EXPECT_TRUE(secret_from_hex(good));
  EXPECT_FALSE(secret_from_hex(""));
  EXPECT_FALSE(secret_from_hex(good.substr(1)));
  EXPECT_FALSE(secret_from_hex(good + "a"));
  EXPECT_FALSE(secret_from_hex(std::string(63, 'a') + "A"));
  EXPECT_FALSE(secret_from_hex(std::string(63, 'a') + '\0'));
}

TEST(Secret, DigestIsSha256) {
  // FIPS 180-4, the "abc" example.
  const std::uint8_t abc[] = {'a', 'b', 'c'};
  EXPECT_EQ(to_hex(digest_of(abc)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace eagle::server
