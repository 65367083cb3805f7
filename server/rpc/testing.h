// A daemon with its services, and a client of one session, for tests.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eagle/v1/service.grpc.pb.h"
#include "proto/rpc_error.h"
#include "server/secret.h"
#include "server/testing_client.h"

namespace eagle::server::testing {

// A server for TCP, and a client's end of a connection to it, without certificate and token.
class Remote {
public:
  explicit Remote(Daemon& daemon)
      : server_(RpcServer::start_remote(daemon, Surroundings{.listen = {"dns:test"}},
                                        {Identity::anonymous, nullptr}, {})) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    EXPECT_TRUE(server_.ok()) << server_.status().to_string();
    (*server_)->adopt(UniqueFd(ends[0]));
    channel_ = grpc::CreateInsecureChannelFromFd("test", ends[1]);
  }
  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

private:
  StatusOr<std::unique_ptr<RpcServer>> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

class Rpc : public ::testing::Test {
protected:
  void SetUp() override { serve({}); }

  void serve(Daemon::Options options) {
    side_.reset();
    session_.reset();
    served_ = std::make_unique<Served>(std::move(options));
    side_ = std::make_unique<SideClient>(served_->path());
    const std::string secret = side_->open().secret();
    secret_ = to_hex({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()});
    session_ = *served_->daemon().sessions().find(secret_);
    auto channel = grpc::CreateChannel("unix:" + served_->path(), grpc::InsecureChannelCredentials());
    planes_ = v1::Planes::NewStub(channel);
    graphs_ = v1::Graphs::NewStub(channel);
    runs_ = v1::Runs::NewStub(channel);
    admin_ = v1::Admin::NewStub(channel);
  }

  void prepare(grpc::ClientContext& context) const { context.AddMetadata(rpc::session_secret_key, secret_); }

  // One unary call with this session's secret, or another.
  template <typename Stub, typename Request, typename Reply>
  Status call(const std::unique_ptr<Stub>& stub,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply& reply) const {
    grpc::ClientContext context;
    prepare(context);
    return rpc::status_of((stub.get()->*method)(&context, request, &reply), context);
  }

  v1::PlaneInfo create(std::uint64_t bytes) const {
    v1::CreatePlanesRequest request;
    request.add_planes()->set_bytes(bytes);
    v1::CreatePlanesReply reply;
    const Status status = call(planes_, &v1::Planes::Stub::Create, request, reply);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return status.ok() ? reply.planes(0) : v1::PlaneInfo();
  }
  Status release(const v1::PlaneInfo& plane) const {
    v1::ReleasePlanesRequest request;
    *request.add_planes() = plane.ref();
    v1::ReleasePlanesReply reply;
    return call(planes_, &v1::Planes::Stub::Release, request, reply);
  }
  v1::BuildReply build(const GraphScene& scene) const {
    v1::BuildRequest request;
    *request.mutable_graph() = scene.message;
    v1::BuildReply reply;
    const Status status = call(graphs_, &v1::Graphs::Stub::Build, request, reply);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return reply;
  }
  Status launch(std::uint64_t graph, std::int64_t count, v1::LaunchReport& report) const {
    v1::LaunchRequest request;
    request.set_graph(graph);
    request.set_count(count);
    return call(graphs_, &v1::Graphs::Stub::Launch, request, report);
  }
  v1::InfoReply info() const {
    v1::InfoReply reply;
    const Status status = call(admin_, &v1::Admin::Stub::Info, v1::InfoRequest(), reply);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return reply;
  }
  std::uint64_t build_with_call() {
    GraphScene scene(*session_);
    const auto x = scene.plane<double>(4, 0.0);
    add_increment(scene, x);
    add_host_node(scene, 7, x);
    return build(scene).graph();
  }
  // What launches that were stopped left half written is fine.
  void accept_all() const {
    for (const auto& plane : session_->planes().list()) {
      const auto bytes = static_cast<std::int64_t>(plane->size());
      plane->torn().accept({0, 0, plane::DType::boolean, 1, {bytes}, {1}});
    }
  }

  std::unique_ptr<Served> served_;
  std::unique_ptr<SideClient> side_;
  std::string secret_;
  std::shared_ptr<Session> session_;
  std::unique_ptr<v1::Planes::Stub> planes_;
  std::unique_ptr<v1::Graphs::Stub> graphs_;
  std::unique_ptr<v1::Runs::Stub> runs_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// The stream of a launch with host calls, as a client holds it.
class Conversation {
public:
  Conversation(v1::Graphs::Stub& stub, const std::string& secret) {
    context_.AddMetadata(rpc::session_secret_key, secret);
    stream_ = stub.LaunchWithCalls(&context_);
  }
  void launch(std::uint64_t graph, std::int64_t count) {
    v1::LaunchClientMessage message;
    message.mutable_launch()->set_graph(graph);
    message.mutable_launch()->set_count(count);
    stream_->Write(message);
  }
  void reply(std::uint64_t sequence, bool ok = true, const std::string& error = {}) {
    v1::LaunchClientMessage message;
    message.mutable_reply()->set_sequence(sequence);
    message.mutable_reply()->set_ok(ok);
    message.mutable_reply()->set_error(error);
    stream_->Write(message);
  }
  void say_nothing_more() { stream_->WritesDone(); }
  void give_up() { context_.TryCancel(); }
  v1::LaunchServerMessage read() {
    v1::LaunchServerMessage message;
    stream_->Read(&message);
    return message;
  }
  Status finish() {
    v1::LaunchServerMessage rest;
    while (stream_->Read(&rest)) {
    }
    const grpc::Status status = stream_->Finish();
    return rpc::status_of(status, context_);
  }

private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LaunchClientMessage, v1::LaunchServerMessage>> stream_;
};

}  // namespace eagle::server::testing
