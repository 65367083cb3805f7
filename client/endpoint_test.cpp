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

TEST(Endpoint, TcpIsAHostAndAPort) {
  const auto endpoint = parse_endpoint("dns:host.example:7411");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
  EXPECT_TRUE(endpoint->tcp());
  EXPECT_EQ(endpoint->host, "host.example");
  EXPECT_EQ(endpoint->port, 7411);
  EXPECT_EQ(endpoint->text(), "dns:host.example:7411");
  EXPECT_EQ(parse_endpoint("dns:///host:1")->text(), "dns:host:1");
  EXPECT_EQ(parse_endpoint("dns:[fe80::1]:7411")->host, "fe80::1");
  EXPECT_EQ(parse_endpoint("dns:[::1]:7411")->text(), "dns:[::1]:7411");
  EXPECT_TRUE(parse_endpoint("dns:[::1]:7411")->loopback());
  EXPECT_TRUE(parse_endpoint("dns:127.0.0.1:7411")->loopback());
  EXPECT_FALSE(parse_endpoint("dns:host:7411")->loopback());
}

TEST(Endpoint, TcpEndpointsThatCannotBeAreRefusedWithWhatToWrite) {
  for (const char* text :
       {"dns:", "dns:host", "dns::7411", "dns:host:", "dns:host:0", "dns:host:65536", "dns:host:-1",
        "dns:host:74a", "dns:::1:7411", "dns:ho st:1", "dns:a/b:1", "tcp:host:1", "ipv4:1.2.3.4:5"}) {
    EXPECT_THAT(refusal(text), HasSubstr("dns:")) << text;
  }
}

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
