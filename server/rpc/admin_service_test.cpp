// What operators ask and tell, and who may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "eagle/v1/admin.pb.h"
#include "server/rpc/testing.h"

namespace eagle::server {
namespace {

using server::testing::add_increment;
using server::testing::Conversation;
using server::testing::GraphScene;
using server::testing::Rpc;
using ::testing::HasSubstr;

class Admin : public Rpc {
protected:
  // Until it holds; fails with what it is about after a minute.
  template <typename Condition>
  void wait_until(Condition condition, const char* what) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain for " << what;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  std::string metrics() const {
    v1::MetricsReply reply;
    EXPECT_TRUE(call(admin_, &v1::Admin::Stub::Metrics, v1::MetricsRequest(), reply).ok());
    return reply.text();
  }
  std::uint64_t build_increment() {
    GraphScene scene(*session_);
    add_increment(scene, scene.plane<double>(4, 0.0));
    return build(scene).graph();
  }
};

TEST_F(Admin, ObeysAdminsAlone) {
  served_->daemon().sessions().set_admins({"token:ops"});
  v1::MetricsReply metrics;
  v1::TimelineReply timeline;
  v1::SetLogLevelReply level;
  v1::RecentLogReply log;
  v1::DrainReply drain;
  const std::vector<Status> refused = {
      call(admin_, &v1::Admin::Stub::Metrics, v1::MetricsRequest(), metrics),
      call(admin_, &v1::Admin::Stub::Timeline, v1::TimelineRequest(), timeline),
      call(admin_, &v1::Admin::Stub::SetLogLevel, v1::SetLogLevelRequest(), level),
      call(admin_, &v1::Admin::Stub::RecentLog, v1::RecentLogRequest(), log),
      call(admin_, &v1::Admin::Stub::Drain, v1::DrainRequest(), drain),
  };
  for (const Status& status : refused) {
    EXPECT_EQ(status.reason(), Reason::permission_denied) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("admins"));
  }
  grpc::ClientContext context;
  prepare(context);
  const auto stream = admin_->SupportBundle(&context, v1::SupportBundleRequest());
  v1::SupportBundleChunk chunk;
  EXPECT_FALSE(stream->Read(&chunk));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(Admin, ListsWhatTheCallerMaySee) {
  const v1::PlaneInfo plane = create(4096);
  const auto other = served_->daemon().sessions().open(Principal{4711, 4711, 3}, "another");
  ASSERT_TRUE(other.ok());
  v1::ListSessionsReply all;
  ASSERT_TRUE(call(admin_, &v1::Admin::Stub::ListSessions, v1::ListSessionsRequest(), all).ok());
  ASSERT_EQ(all.sessions_size(), 2);
  const v1::SessionSummary& mine = all.sessions(all.sessions(0).session() == session_->id() ? 0 : 1);
  EXPECT_EQ(mine.session(), session_->id());
  EXPECT_EQ(mine.planes(), 1u);
  EXPECT_EQ(mine.plane_bytes(), 4096u);
  EXPECT_EQ(mine.transport(), "unix");
  EXPECT_TRUE(mine.attached());
  v1::ListAllPlanesReply planes;
  ASSERT_TRUE(call(admin_, &v1::Admin::Stub::ListPlanes, v1::ListAllPlanesRequest(), planes).ok());
  ASSERT_EQ(planes.planes_size(), 1);
  EXPECT_EQ(planes.planes(0).plane().id(), plane.ref().id());
  EXPECT_EQ(planes.planes(0).session(), session_->id());

  served_->daemon().sessions().set_admins({});
  v1::ListSessionsReply own;
  ASSERT_TRUE(call(admin_, &v1::Admin::Stub::ListSessions, v1::ListSessionsRequest(), own).ok());
  ASSERT_EQ(own.sessions_size(), 1);
  EXPECT_EQ(own.sessions(0).session(), session_->id());
}

TEST_F(Admin, CountsLaunchesByHowTheyEnded) {
  const std::uint64_t graph = build_increment();
  v1::LaunchReport report;
  ASSERT_TRUE(launch(graph, 1, report).ok());
  ASSERT_TRUE(launch(graph, 3, report).ok());
  EXPECT_FALSE(launch(graph, -1, report).ok());
  EXPECT_FALSE(launch(graph + 1, 1, report).ok());
  const std::string tenant = session_->tenant()->name();
  wait_until(
      [&] { return metrics().find("status=\"OK\",tenant=\"" + tenant + "\"} 2\n") != std::string::npos; },
      "two launches");
  const std::string text = metrics();
  EXPECT_THAT(text,
              HasSubstr("eagled_launches_total{status=\"INVALID_ARGUMENT\",tenant=\"" + tenant + "\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("eagled_launches_total{status=\"NOT_FOUND\",tenant=\"" + tenant + "\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("eagled_launch_duration_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("eagled_build_duration_seconds_count 1\n"));
}

TEST_F(Admin, TellsTimelinesOfAGraphAndOfTheDaemon) {
  const std::uint64_t graph = build_increment();
  v1::LaunchReport report;
  ASSERT_TRUE(launch(graph, 1, report).ok());
  v1::GraphTimelineRequest request;
  request.set_graph(graph);
  v1::TimelineReply reply;
  wait_until(
      [&] { return call(graphs_, &v1::Graphs::Stub::Timeline, request, reply).ok() && reply.events() == 2; },
      "a build and a launch");
  EXPECT_THAT(reply.trace_json(), HasSubstr("\"status\":\"OK\""));
  v1::TimelineReply all;
  ASSERT_TRUE(call(admin_, &v1::Admin::Stub::Timeline, v1::TimelineRequest(), all).ok());
  EXPECT_EQ(all.events(), 2u);
  request.set_graph(graph + 1);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Timeline, request, reply).reason(), Reason::unknown_graph);
}

TEST_F(Admin, SetsTheLogLevel) {
  const auto before = spdlog::get_level();
  v1::SetLogLevelRequest request;
  v1::SetLogLevelReply reply;
  request.set_level("warn");
  ASSERT_TRUE(call(admin_, &v1::Admin::Stub::SetLogLevel, request, reply).ok());
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  request.set_level("louder");
  EXPECT_EQ(call(admin_, &v1::Admin::Stub::SetLogLevel, request, reply).reason(), Reason::bad_value);
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  spdlog::set_level(before);
}

TEST_F(Admin, ABundleComesInChunks) {
  build_increment();
  grpc::ClientContext context;
  prepare(context);
  const auto stream = admin_->SupportBundle(&context, v1::SupportBundleRequest());
  std::string archive;
  v1::SupportBundleChunk chunk;
  while (stream->Read(&chunk)) archive += chunk.data();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(archive.size() % 512, 0u);
  EXPECT_EQ(archive.substr(257, 5), "ustar");
  EXPECT_THAT(archive, HasSubstr("eagled_build_info"));
}

TEST_F(Admin, AProcessThatCannotEndItselfSaysSo) {
  v1::DrainReply reply;
  EXPECT_EQ(call(admin_, &v1::Admin::Stub::Drain, v1::DrainRequest(), reply).reason(), Reason::graph_state);
  v1::DrainRequest forever;
  forever.set_timeout_s(100'000);
  EXPECT_EQ(call(admin_, &v1::Admin::Stub::Drain, forever, reply).reason(), Reason::bad_value);
}

}  // namespace
}  // namespace eagle::server
