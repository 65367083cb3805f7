#include "client/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace eagle {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  EXPECT_EQ(endpoint.status().reason(), Reason::bad_endpoint) << text;
  return endpoint.status().message();
}

TEST(Endpoint, IsAUnixPath) {
  EXPECT_EQ(*parse_endpoint("unix:/run/a.sock"), Endpoint{"/run/a.sock"});
  EXPECT_EQ(*parse_endpoint("unix:///run/a.sock"), Endpoint{"/run/a.sock"});
  EXPECT_EQ(*parse_endpoint("unix:a.sock"), Endpoint{"a.sock"});
  EXPECT_EQ(parse_endpoint("unix:/run/a.sock")->text(), "unix:/run/a.sock");
}

TEST(Endpoint, APathOf107BytesFitsAndOneMoreDoesNot) {
  EXPECT_TRUE(parse_endpoint("unix:" + std::string(107, 'x')).ok());
  const std::string message = refusal("unix:" + std::string(108, 'x'));
  EXPECT_THAT(message, HasSubstr("108 bytes"));
  EXPECT_THAT(message, HasSubstr("107"));
  EXPECT_THAT(message, HasSubstr("shorter path"));
}

TEST(Endpoint, NamesAnUnknownSchemeAndTheCure) {
  EXPECT_THAT(refusal("http://localhost:80"), HasSubstr("unknown scheme 'http'"));
  EXPECT_THAT(refusal("http://localhost:80"), HasSubstr("unix:PATH"));
  EXPECT_THAT(refusal("/run/a.sock"), HasSubstr("names no scheme"));
}

TEST(Endpoint, RefusesTcpByName) { EXPECT_THAT(refusal("dns:host:7411"), HasSubstr("TCP")); }

TEST(Endpoint, RefusesPathsThatCannotBe) {
  EXPECT_THAT(refusal("unix:"), HasSubstr("names no path"));
  EXPECT_THAT(refusal("unix://host/a"), HasSubstr("host"));
  EXPECT_THAT(refusal(std::string_view("unix:\0abstract", 14)), HasSubstr("NUL"));
}

TEST(Endpoint, LooksAtTheSystemsSocketThenAtTheUsers) {
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
  EXPECT_THAT(default_endpoints(),
              testing::ElementsAre(Endpoint{"/run/eagled/eagled.sock"}, Endpoint{"/run/user/7/eagled.sock"}));
  ASSERT_EQ(::unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_THAT(default_endpoints(), testing::ElementsAre(Endpoint{"/run/eagled/eagled.sock"}));
}

}  // namespace
}  // namespace eagle
