// The dashboard's answers, without a socket: who gets which, and that names stay text.
#include "server/web/web.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "server/launch_job.h"
#include "server/testing.h"
#include "server/web/assets.h"

namespace eagle::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int some_socket = 7;

// A daemon with one session and a graph of it, and a dashboard that a given user looks at.
struct Scene {
  std::unique_ptr<Daemon> daemon = testing::make_daemon();
  std::shared_ptr<Session> session = testing::open_session(*daemon);
  std::optional<uid_t> who = 0;
  Web web{*daemon, {}, Web::Access{{"box.example"}, nullptr}, [this](int) { return who; }};

  HttpAnswer get(const std::string& target, const std::string& host = "127.0.0.1:7413") {
    return web.answer({target, host, "", "", some_socket});
  }
  std::uint64_t build(const std::string& name) {
    testing::GraphScene graph(*session);
    graph.message.set_name(name);
    const auto x = graph.plane<double>(16, 1.0);
    testing::add_increment(graph, x);
    const auto built = daemon->build(*session, graph.message);
    EXPECT_TRUE(built.ok()) << built.status().to_string();
    return built.ok() ? built->graph : 0;
  }
  std::string of_graph(const char* path, std::uint64_t id) {
    return std::string(path) + "?session=" + std::to_string(session->id()) + "&graph=" + std::to_string(id);
  }
};

std::string field(const HttpAnswer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.fields) {
    if (key == name) return value;
  }
  return {};
}

TEST(Web, ThePageTellsNothingAndIsForEverybody) {
  Scene scene;
  scene.who.reset();
  for (const Asset& asset : assets()) {
    const HttpAnswer answer = scene.get(std::string(asset.path));
    EXPECT_EQ(answer.status, 200u) << asset.path;
    EXPECT_EQ(answer.body, asset.text);
    EXPECT_GT(answer.body.size(), 100u);
  }
}

TEST(Web, AdminsOfThisMachineSeeTheState) {
  Scene scene;
  const HttpAnswer answer = scene.get("/api/state");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_THAT(answer.body, HasSubstr("\"client\":\"test\""));
  EXPECT_THAT(answer.body, HasSubstr("\"all_sessions\":1"));
}

TEST(Web, OthersSeeNothing) {
  Scene scene;
  scene.daemon->sessions().set_admins({"uid:0"});
  scene.who = 4711;
  const HttpAnswer refused = scene.get("/api/state");
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(refused.body, HasSubstr("'uid:4711' is not one of the daemon's admins"));
  EXPECT_THAT(refused.body, Not(HasSubstr("test")));
  scene.who.reset();
  EXPECT_EQ(scene.get("/api/state").status, 401u);
  EXPECT_EQ(scene.get("/api/graph?session=1&graph=1").status, 401u);
  EXPECT_EQ(scene.get("/api/timeline?session=0&graph=0").status, 401u);
}

TEST(Web, ATokenIsAsGoodAsItsSubjectIsAnAdmin) {
  const auto made = Tokens::make("ops");
  ASSERT_TRUE(made.ok());
  const std::string path = ::testing::TempDir() + "web_tokens_" + std::to_string(::getpid());
  std::ofstream(path) << made->line << '\n';
  const auto tokens = Tokens::load(path);
  std::remove(path.c_str());
  ASSERT_TRUE(tokens.ok()) << tokens.status().to_string();
  auto daemon = testing::make_daemon();
  Web web(*daemon, {}, {{}, *tokens}, [](int) { return std::optional<uid_t>(0); });
  const auto ask = [&](const std::string& authorization) {
    return web.answer({"/api/state", "localhost", authorization, "", some_socket}).status;
  };
  EXPECT_EQ(ask("Bearer " + made->token), 403u) << "'ops' is nobody's admin";
  daemon->sessions().set_admins({"token:ops"});
  EXPECT_EQ(ask("Bearer " + made->token), 200u);
  EXPECT_EQ(ask("Bearer " + made->token + "x"), 401u);
  EXPECT_EQ(ask("Basic " + made->token), 401u);
  EXPECT_EQ(ask(""), 403u) << "root is none, either, now";
}

TEST(Web, NamesOfOthersAreNotAnsweredTo) {
  Scene scene;
  for (const char* host :
       {"evil.example", "evil.example:7413", "", "127.0.0.1.evil.example", "localhost.", "x]"})
    EXPECT_EQ(scene.get("/", host).status, 421u) << host;
  for (const char* host :
       {"localhost", "localhost:7413", "127.0.0.1", "[::1]:7413", "192.0.2.7:80", "box.example:1"})
    EXPECT_EQ(scene.get("/", host).status, 200u) << host;
}

TEST(Web, OtherPagesGetNoAnswerInTheUsersName) {
  Scene scene;
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_EQ(scene.web.answer({"/api/state", "localhost", "", site, some_socket}).status, 403u) << site;
  for (const char* site : {"same-origin", "none", ""})
    EXPECT_EQ(scene.web.answer({"/api/state", "localhost", "", site, some_socket}).status, 200u) << site;
}

TEST(Web, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  Scene scene;
  for (const char* target : {"/", "/api/state", "/nothing"}) {
    const HttpAnswer answer = scene.get(target);
    const std::string policy = field(answer, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(field(answer, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(field(answer, "Cache-Control"), "no-store");
  }
}

TEST(Web, NamesStayText) {
  Scene scene;
  const std::uint64_t id = scene.build("</script><img src=x onerror=\"alert(1)\">\\");
  const HttpAnswer state = scene.get("/api/state");
  EXPECT_THAT(state.body, Not(HasSubstr("onerror=\"alert")));
  const HttpAnswer graph = scene.get(scene.of_graph("/api/graph", id));
  EXPECT_EQ(graph.status, 200u);
  EXPECT_THAT(graph.body, HasSubstr("onerror=\\\"alert(1)\\\">\\\\\""));
  EXPECT_EQ(graph.content_type, "application/json; charset=utf-8");
}

TEST(Web, AGraphHasItsPictureAndWhatItsNodesTake) {
  Scene scene;
  const std::uint64_t id = scene.build("sum");
  const auto before = scene.get(scene.of_graph("/api/graph", id));
  EXPECT_EQ(before.status, 200u);
  EXPECT_THAT(before.body, HasSubstr("\"svg\":\"<svg "));
  EXPECT_THAT(before.body, HasSubstr("\"measured\":0"));
  EXPECT_THAT(before.body, HasSubstr("a launch of kernel 'affine_in_place' over 16 samples"));
  const auto graph = scene.session->graph(id);
  ASSERT_TRUE(graph.ok());
  run::Replay replay((*graph)->built(), 1, nullptr);
  ASSERT_TRUE(replay.advance().ok());
  const auto after = scene.get(scene.of_graph("/api/graph", id));
  EXPECT_THAT(after.body, HasSubstr("\"measured\":1"));
  EXPECT_THAT(after.body, Not(HasSubstr("\"seconds\":0,")));
}

TEST(Web, WhatIsNotThereIsSaid) {
  Scene scene;
  EXPECT_EQ(scene.get("/api/graph?session=12&graph=1").status, 404u);
  EXPECT_EQ(scene.get(scene.of_graph("/api/graph", 77)).status, 404u);
  EXPECT_EQ(scene.get("/api/graph").status, 400u);
  EXPECT_EQ(scene.get("/api/graph?session=-1&graph=1").status, 400u);
  EXPECT_EQ(scene.get("/api/graph?session=99999999999999999999999&graph=1").status, 400u);
  EXPECT_EQ(scene.get("/api/../page.js").status, 404u);
  EXPECT_EQ(scene.get("/api/drain").status, 404u);
  EXPECT_EQ(scene.get("/" + std::string(1000, 'x')).status, 414u);
}

TEST(Web, ListsAreBounded) {
  Scene scene;
  std::vector<std::shared_ptr<Session>> many;
  for (std::size_t i = 0; i < Web::most_rows + 5; ++i) many.push_back(testing::open_session(*scene.daemon));
  const HttpAnswer answer = scene.get("/api/state");
  EXPECT_THAT(answer.body, HasSubstr("\"all_sessions\":" + std::to_string(Web::most_rows + 6)));
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = answer.body.find("\"traceparent\"", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, Web::most_rows);
}

// A connection to oneself.
TEST(LoopbackPeer, IsTheUserWhoConnected) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(near, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const int far = ::accept(listening, nullptr, nullptr);
  EXPECT_EQ(loopback_peer(far), std::optional<uid_t>(::getuid()));
  ::close(near);
  EXPECT_EQ(loopback_peer(far), std::nullopt) << "nobody is there any more";
  EXPECT_EQ(loopback_peer(listening), std::nullopt);
  ::close(far);
  ::close(listening);
}

}  // namespace
}  // namespace eagle::server
