// How requests get in: who calls first, then the limits of the method in bytes, and only then the parser.
#include "server/rpc/request.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/testing.h"

namespace eagle::server {
namespace {

using google::protobuf::MethodDescriptor;
using server::testing::Remote;
using server::testing::Rpc;
using server::testing::Served;
using ::testing::HasSubstr;

// What no message of ours is.
const std::string garbage = "\x0f\xff\xff";

std::string nested(int field, const std::string& content) {
  std::string out(1, static_cast<char>(field << 3 | 2));
  std::size_t size = content.size();
  for (; size > 127; size >>= 7) out += static_cast<char>((size & 127) | 128);
  return (out += static_cast<char>(size)) + content;
}

// So many empty submessages of that field: two bytes each.
std::string bomb(int field, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += {static_cast<char>(field << 3 | 2), '\0'};
  return out;
}

// Every method of the services over a unix socket, and those over TCP alone.
std::vector<const MethodDescriptor*> methods() {
  const auto& file = *v1::InfoRequest::descriptor()->file();
  std::vector<const MethodDescriptor*> found;
  const auto add = [&found](const google::protobuf::FileDescriptor& described) {
    for (int i = 0; i < described.service_count(); ++i) {
      for (int j = 0; j < described.service(i)->method_count(); ++j)
        found.push_back(described.service(i)->method(j));
    }
  };
  add(file);
  add(*grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file());
  return found;
}

bool needs_session(const MethodDescriptor& method) {
  return method.service()->name() != "Sessions" && method.service()->name() != "ServerReflection";
}

class Requests : public Rpc {
protected:
  struct Said {
    grpc::Status status;
    Status told;
  };
  // One call with these bytes as its message; none: it says nothing at all. To gRPC clients all kinds of
  // calls are one.
  Said send(const std::string& path, const std::optional<std::string>& bytes,
            const std::function<void(grpc::ClientContext&)>& change = {}) const {
    return send(grpc::CreateChannel("unix:" + served_->path(), grpc::InsecureChannelCredentials()), path,
                bytes, change);
  }
  Said send(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
            const std::optional<std::string>& bytes,
            const std::function<void(grpc::ClientContext&)>& change = {}) const {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    prepare(context);
    if (change) change(context);
    grpc::CompletionQueue queue;
    const auto stream = stub.PrepareCall(&context, path, &queue);
    const auto ended = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      return ok;
    };
    stream->StartCall(nullptr);
    if (ended() && bytes) {
      const grpc::Slice slice(*bytes);
      stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      ended();
    }
    grpc::ByteBuffer answer;
    do stream->Read(&answer, nullptr);
    while (ended());
    Said said;
    stream->Finish(&said.status, nullptr);
    ended();
    said.told = rpc::status_of(said.status, context);
    queue.Shutdown();
    return said;
  }
  static std::string path_of(const MethodDescriptor& method) {
    return "/" + method.service()->full_name() + "/" + method.name();
  }
};

TEST_F(Requests, EveryMethodHasARowInTheTableOfLimits) {
  EXPECT_GT(methods().size(), 45u);
  for (const MethodDescriptor* method : methods())
    EXPECT_TRUE(taken_by(method->service()->name() + "." + method->name())) << method->full_name();
  EXPECT_FALSE(taken_by("Planes.NoSuchCall"));
}

TEST_F(Requests, WithoutASecretNoMethodLooksAtItsMessage) {
  const std::string right = secret_;
  for (const MethodDescriptor* method : methods()) {
    if (!needs_session(*method)) continue;
    for (const std::string& wrong : {std::string(), std::string(64, '0')}) {
      secret_ = wrong;
      const Status status = send(path_of(*method), garbage).told;
      EXPECT_EQ(status.reason(), Reason::unauthenticated) << method->full_name() << status.to_string();
    }
  }
  secret_ = right;
  EXPECT_EQ(info().sessions(), 1u);
}

TEST_F(Requests, WithoutASecretNoMethodWaitsForItsMessage) {
  secret_ = std::string(64, '0');
  for (const MethodDescriptor* method : methods()) {
    if (!needs_session(*method)) continue;
    EXPECT_EQ(send(path_of(*method), std::nullopt).told.reason(), Reason::unauthenticated)
        << method->full_name();
  }
}

TEST_F(Requests, WhatIsNoMessageIsRefusedByName) {
  for (const MethodDescriptor* method : methods()) {
    if (!needs_session(*method)) continue;
    const Status status = send(path_of(*method), garbage).told;
    EXPECT_EQ(status.reason(), Reason::bad_message) << method->full_name() << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(method->service()->name() + "." + method->name()));
  }
  EXPECT_EQ(send("/eagle.v1.Graphs/NoSuchCall", garbage).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(Requests, MessagesOverTheLimitOfTheirMethodAreRefusedByName) {
  Daemon::Options options;
  options.limits.request_bytes = 1 << 12;
  options.limits.list_bytes = 1 << 16;
  options.limits.message_bytes = 1 << 20;
  serve(std::move(options));
  for (const MethodDescriptor* method : methods()) {
    if (!needs_session(*method)) continue;
    const std::string name = method->service()->name() + "." + method->name();
    const Takes takes = *taken_by(name);
    if (takes == Takes::description || takes == Takes::data) continue;  // gRPC's own limit
    const bool small = takes == Takes::names;
    const std::size_t limit = small ? 1 << 12 : 1 << 16;
    const Status status = send(path_of(*method), std::string(limit + 1, 'x')).told;
    EXPECT_EQ(status.reason(), Reason::quota) << name << status.to_string();
    EXPECT_THAT(status.message(),
                HasSubstr(name + ": expected a message of at most " + std::to_string(limit) + " bytes"));
    EXPECT_THAT(status.message(), HasSubstr("found " + std::to_string(limit + 1)));
    EXPECT_THAT(status.message(), HasSubstr(small ? "(request_bytes)" : "(list_bytes)"));
  }
  EXPECT_EQ(send("/eagle.v1.Graphs/Build", std::string((1 << 20) + 1, 'x')).told.code(),
            Code::resource_exhausted);
  EXPECT_EQ(info().sessions(), 1u);
}

TEST_F(Requests, TooManySubmessagesAreRefusedWithTheirNumber) {
  Daemon::Options options;
  options.limits.message_bytes = 1 << 20;
  serve(std::move(options));
  const std::size_t count = 1 << 18;
  const std::string kernels = nested(1, bomb(2, count));
  for (const char* method : {"Build", "Rebind"}) {
    const std::string message = std::string(method) == "Build" ? kernels : nested(2, bomb(2, count));
    const Status status = send(std::string("/eagle.v1.Graphs/") + method, message).told;
    EXPECT_EQ(status.reason(), Reason::quota) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("at most 8388608 bytes once it is read"));
    EXPECT_THAT(status.message(), ::testing::ContainsRegex("found at least [0-9]+ submessages"));
    EXPECT_THAT(status.message(), HasSubstr("message_bytes"));
  }
  // In a stream too.
  const Status streamed = send("/eagle.v1.Runs/SimulateWithCalls", nested(1, bomb(7, count))).told;
  EXPECT_EQ(streamed.reason(), Reason::quota) << streamed.to_string();
  EXPECT_EQ(info().sessions(), 1u);
}

TEST_F(Requests, WhatALargeOneTakesIsChargedWhileItIsInHand) {
  Daemon::Options options;
  options.plane_budget_bytes = 1 << 20;
  serve(std::move(options));
  PlaneBudget& budget = served_->daemon().plane_budget();
  const std::uint64_t before = budget.other_bytes();
  const Status status = send("/eagle.v1.Graphs/Build", nested(1, bomb(2, 10'000))).told;
  EXPECT_EQ(status.reason(), Reason::plane_budget) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("a request that is being read"));
  EXPECT_EQ(budget.other_bytes(), before);
  // Who gives memory back is not refused for want of it.
  v1::ReleasePlanesRequest release;
  for (int i = 0; i < 50'000; ++i) release.add_planes()->set_id(1000);
  v1::ReleasePlanesReply reply;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Release, release, reply).reason(), Reason::unknown_plane);
  while (budget.other_bytes() > before) std::this_thread::yield();  // the call is over soon after its reply
}

TEST_F(Requests, CallsWhoseRequestDoesNotComeEnd) {
  Daemon::Options options;
  options.limits.first_word_timeout = std::chrono::milliseconds(1);
  serve(std::move(options));
  for (const MethodDescriptor* method : methods()) {
    if (!needs_session(*method) || method->name() == "Write") continue;  // `transfers` bounds those
    const Status status = send(path_of(*method), std::nullopt).told;
    EXPECT_EQ(status.reason(), Reason::deadline) << method->full_name() << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("first_word_timeout")) << method->full_name();
  }
}

TEST_F(Requests, CompressedOnesAreRefusedAndNotUnpacked) {
  const auto packed = [](grpc::ClientContext& context) {
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  };
  // Of more than any message may have, once it is unpacked.
  const Status status = send("/eagle.v1.Graphs/Build", nested(7, std::string(65 << 20, 'x')), packed).told;
  EXPECT_EQ(status.reason(), Reason::bad_message) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("compressed"));
  EXPECT_EQ(info().sessions(), 1u);
}

// Without certificate and token, as the only ones that need not have either.
TEST_F(Requests, WhoeverComesOverTcpIsHeldToTheSame) {
  const Remote remote(served_->daemon());
  const auto& channel = remote.channel();
  EXPECT_EQ(send(channel, "/eagle.v1.Sessions/Attach", garbage).told.reason(), Reason::bad_message);
  const std::string large(std::size_t{served_->daemon().limits().request_bytes} + 1, 'x');
  for (const char* path :
       {"/eagle.v1.Sessions/Attach", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const Status status = send(channel, path, large).told;
    EXPECT_EQ(status.reason(), Reason::quota) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("(request_bytes)"));
  }
}

}  // namespace
}  // namespace eagle::server
