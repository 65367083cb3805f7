// Graphs that are looked at: listed, drawn, explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/services.h"
#include "server/rpc/testing.h"

namespace eagle::server {
namespace {

using server::testing::add_host_node;
using server::testing::add_increment;
using server::testing::Conversation;
using server::testing::GraphScene;
using server::testing::Mapping;
using server::testing::Rpc;
using server::testing::Served;
using server::testing::SideClient;
using ::testing::HasSubstr;

TEST_F(Rpc, GraphsAreListedDrawnAndReleased) {
  GraphScene scene(*session_);
  scene.message.set_name("twice");
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  add_increment(scene, x);
  const std::uint64_t graph = build(scene).graph();

  v1::ListGraphsReply list;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::List, v1::ListGraphsRequest(), list).ok());
  ASSERT_EQ(list.graphs_size(), 1);
  EXPECT_EQ(list.graphs(0).name(), "twice");
  EXPECT_EQ(list.graphs(0).nodes(), 2u);

  v1::EdgesRequest edges;
  edges.set_graph(graph);
  v1::EdgesReply found;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Edges, edges, found).ok());
  ASSERT_GE(found.edges_size(), 1);
  EXPECT_EQ(found.edges(0).source(), 0u);
  EXPECT_EQ(found.edges(0).destination(), 1u);
  EXPECT_EQ(found.edges(0).kind(), v1::RAW);

  v1::PictureRequest picture;
  picture.set_graph(graph);
  picture.set_format(v1::PICTURE_TEXT);
  v1::PictureReply drawn;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).ok());
  EXPECT_THAT(drawn.picture().content(), HasSubstr("increment"));
  for (const auto format :
       {v1::PICTURE_TEXT, v1::PICTURE_MERMAID, v1::PICTURE_DOT, v1::PICTURE_SVG, v1::PICTURE_FIGURE}) {
    picture.set_format(format);
    ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).ok());
    EXPECT_EQ(drawn.picture().format(), format);
    EXPECT_THAT(drawn.picture().content(), HasSubstr("increment"));
  }
  picture.set_format(v1::PICTURE_FORMAT_UNSPECIFIED);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).reason(), Reason::bad_value);

  v1::ReleaseGraphRequest release;
  release.set_graph(graph);
  v1::ReleaseGraphReply released;
  EXPECT_TRUE(call(graphs_, &v1::Graphs::Stub::Release, release, released).ok());
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Release, release, released).reason(), Reason::unknown_graph);
}

TEST_F(Rpc, GraphsAreExplained) {
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  add_increment(scene, x);
  v1::ExplainRequest request;
  request.set_graph(build(scene).graph());
  v1::ExplainReply reply;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Explain, request, reply).reason(), Reason::bad_message);
  request.mutable_node()->set_index(1);
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Explain, request, reply).ok());
  EXPECT_EQ(reply.explanation().node().schedule(), "work_share");
  EXPECT_THAT(reply.explanation().text(), HasSubstr("waits for"));
  request.mutable_other()->set_index(0);
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Explain, request, reply).ok());
  EXPECT_EQ(reply.explanation().pair().relation(), v1::RELATION_ORDERED);
  EXPECT_EQ(reply.explanation().pair().meetings(0).shared().count(), 32);
  request.mutable_other()->set_label("nobody");
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Explain, request, reply).reason(), Reason::bad_value);
}

TEST_F(Rpc, AGraphIsInspectedAsItIsExecuted) {
  GraphScene scene(*session_);
  scene.message.set_name("twice");
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  add_increment(scene, x);
  v1::InspectRequest request;
  request.set_graph(build(scene).graph());
  v1::LaunchReport report;
  ASSERT_TRUE(launch(request.graph(), 3, report).ok());
  v1::InspectReply reply;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Inspect, request, reply).ok());
  EXPECT_EQ(reply.name(), "twice");
  EXPECT_EQ(reply.launches(), 3u);
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_EQ(reply.nodes(1).stage(), 1u);
  EXPECT_THAT(reply.nodes(1).kind(), HasSubstr("over 4 samples"));
  EXPECT_EQ(reply.edges(0).kind(), v1::RAW);
  EXPECT_EQ(reply.schedule_size(), 2);
  ASSERT_GE(reply.kernels_size(), 1);
  ASSERT_EQ(reply.kernels(0).arguments_size(), 3);  // a, b and x of x <- a * x + b
  EXPECT_FALSE(reply.kernels(0).arguments(0).written());
  EXPECT_TRUE(reply.kernels(0).arguments(2).written());
  // Each node is one of the functions, and a function says what was compiled for it.
  int nodes = 0;
  for (const auto& function : reply.functions()) {
    nodes += function.nodes_size();
    EXPECT_GT(function.code_bytes(), 0u);
    EXPECT_EQ(function.hash().size(), 64u);
  }
  EXPECT_EQ(nodes, 2);
  request.set_graph(request.graph() + 1);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Inspect, request, reply).reason(), Reason::unknown_graph);
}

TEST_F(Rpc, KernelsAreListedInEveryForm) {
  Daemon::Options options;
  options.limits.listing_bytes = 200'000;
  serve(std::move(options));
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  add_increment(scene, x);
  v1::ListKernelRequest request;
  request.set_graph(build(scene).graph());
  request.set_form(v1::LISTING_FORM_IR);
  v1::ListKernelReply reply;
  const auto asked = [&] { return call(graphs_, &v1::Graphs::Stub::ListKernel, request, reply).reason(); };
  EXPECT_EQ(asked(), Reason::bad_message);  // neither kernel nor function
  request.set_kernel(0);
  ASSERT_EQ(asked(), Reason::none);
  EXPECT_THAT(reply.text(), HasSubstr("kernel @affine_in_place"));
  request.set_function(0);
  request.set_form(v1::LISTING_FORM_LLVM);
  ASSERT_EQ(asked(), Reason::none);
  EXPECT_THAT(reply.text(), HasSubstr("fadd"));
  request.set_form(v1::LISTING_FORM_ASSEMBLY);
  ASSERT_EQ(asked(), Reason::none);
  EXPECT_THAT(reply.text(), HasSubstr("ret"));
  EXPECT_FALSE(reply.cpu().empty());
  request.set_form(v1::LISTING_FORM_UNSPECIFIED);
  EXPECT_EQ(asked(), Reason::bad_value);
  request.set_form(v1::LISTING_FORM_IR);
  request.set_function(99);
  EXPECT_EQ(asked(), Reason::bad_value);
  request.set_kernel(99);
  EXPECT_EQ(asked(), Reason::bad_value);
}

TEST_F(Rpc, AListingOverItsBoundIsRefusedByName) {
  Daemon::Options options;
  options.limits.listing_bytes = 10;
  serve(std::move(options));
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  v1::ListKernelRequest request;
  request.set_graph(build(scene).graph());
  request.set_kernel(0);
  request.set_form(v1::LISTING_FORM_IR);
  v1::ListKernelReply reply;
  const Status refused = call(graphs_, &v1::Graphs::Stub::ListKernel, request, reply);
  EXPECT_EQ(refused.reason(), Reason::quota);
  EXPECT_THAT(refused.message(), HasSubstr("listing_bytes"));
}

// One user's sessions may look at, but not use, each other's graphs.
TEST_F(Rpc, GraphsOfTheSameUserCanBeSeenFromAnotherSession) {
  GraphScene scene(*session_);
  scene.message.set_name("theirs");
  add_increment(scene, scene.plane<double>(4, 0.0));
  const std::uint64_t graph = build(scene).graph();
  SideClient other(served_->path());
  const std::string secret = other.open().secret();
  secret_ = to_hex({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()});

  v1::ListGraphsRequest request;
  v1::ListGraphsReply list;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::List, request, list).ok());
  EXPECT_EQ(list.graphs_size(), 0);
  request.set_all_sessions(true);
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::List, request, list).ok());
  ASSERT_EQ(list.graphs_size(), 1);
  EXPECT_EQ(list.graphs(0).name(), "theirs");
  EXPECT_EQ(list.graphs(0).session(), session_->id());

  v1::PictureRequest picture;
  picture.set_graph(graph);
  picture.set_format(v1::PICTURE_SVG);
  v1::PictureReply drawn;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).reason(), Reason::unknown_graph);
  picture.set_session(session_->id());
  EXPECT_TRUE(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).ok());
  picture.set_session(session_->id() + 1);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).reason(), Reason::unknown_graph);
}

TEST_F(Rpc, GraphsOfAnotherSessionAreUnknown) {
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  const std::uint64_t graph = build(scene).graph();
  SideClient other(served_->path());
  const std::string secret = other.open().secret();
  secret_ = to_hex({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()});
  v1::LaunchReport report;
  EXPECT_EQ(launch(graph, 1, report).reason(), Reason::unknown_graph);
  v1::BuildRequest request;
  *request.mutable_graph() = scene.message;
  v1::BuildReply built;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Build, request, built).reason(), Reason::unknown_plane);
}

TEST_F(Rpc, EdgesThatWouldNotFitIntoMemoryAreRefused) {
  Daemon::Options options;
  options.limits.edge_touches = 3;
  serve(std::move(options));
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  add_increment(scene, x);
  v1::EdgesRequest request;
  request.set_graph(build(scene).graph());
  v1::EdgesReply reply;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Edges, request, reply).reason(), Reason::quota);
}

// Labels come back in messages, and a header block over 8 KiB would replace the error.

}  // namespace
}  // namespace eagle::server
