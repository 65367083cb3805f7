#include "server/sockets/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/ring/layout.h"
#include "server/secret.h"
#include "server/sockets/side_protocol.h"
#include "server/testing_client.h"

namespace eagle::server {
namespace {

using server::testing::connect_to;
using server::testing::frame_of;
using server::testing::hello;
using server::testing::Served;
using server::testing::SideClient;
using ::testing::HasSubstr;

// Hears of one connection, whose handlers the test runs one by one.
class Heard final : public Connection::Owner {
public:
  void hand_to_grpc(UniqueFd) override { ADD_FAILURE() << "it is no gRPC"; }
  void greeted(const Connection&) override {
    EXPECT_EQ(closed_, 0) << "it has been closed";
    ++greeted_;
  }
  void closed(const Connection&) override { ++closed_; }
  [[nodiscard]] int times_greeted() const { return greeted_; }
  [[nodiscard]] int times_closed() const { return closed_; }

private:
  int greeted_ = 0;
  int closed_ = 0;
};

class SideConnection : public ::testing::Test {
protected:
  // A daemon with small limits, so that a test reaches them at once.
  static Daemon::Options small() {
    Daemon::Options options;
    options.limits.waiting_connections = 4;
    options.limits.greeting_timeout = std::chrono::milliseconds(300);
    return options;
  }

  std::shared_ptr<Session> session_of(const v1::HelloReply& opened) {
    const std::string& secret = opened.secret();
    auto session = served_->daemon().sessions().find(
        to_hex({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()}));
    EXPECT_TRUE(session.ok()) << session.status().to_string();
    return session.ok() ? *session : nullptr;
  }
  std::vector<std::string> make_planes(Session& session, std::size_t count) {
    const std::vector<PlaneStore::Spec> specs(count, {4096, "p"});
    const auto made = session.planes().create(specs);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    std::vector<std::string> tokens;
    for (const auto& created : *made) tokens.emplace_back(created.token.begin(), created.token.end());
    return tokens;
  }
  // Sessions end on the daemon's threads, some time after what ends them.
  void wait_until_sessions_are(std::size_t count) {
    while (served_->daemon().sessions().size() != count) std::this_thread::yield();
  }
  // Whatever happened before, a new client is served.
  void expect_still_serves() {
    SideClient client(served_->path());
    EXPECT_EQ(client.open().secret().size(), 32u);
  }
  void serve(Daemon::Options options) { served_ = std::make_unique<Served>(std::move(options)); }

  std::unique_ptr<Served> served_ = std::make_unique<Served>();
};

TEST_F(SideConnection, HelloOpensASession) {
  SideClient client(served_->path());
  const v1::HelloReply opened = client.open();
  EXPECT_EQ(opened.protocol(), 1u);
  EXPECT_EQ(opened.server_version(), EAGLE_VERSION);
  EXPECT_EQ(opened.secret().size(), 32u);
  EXPECT_EQ(opened.host().pid(), ::getpid());
  const auto session = session_of(opened);
  EXPECT_EQ(session->id(), opened.session());
  EXPECT_EQ(session->principal().uid, ::getuid());
  EXPECT_EQ(session->principal().pid, ::getpid());
}

TEST_F(SideConnection, ProtocolsApartAreNamedWithTheCure) {
  SideClient newer(served_->path());
  newer.send("EAGLESC1");
  const v1::SideError daemon_old = newer.ask(hello(2, 3)).error();
  EXPECT_EQ(daemon_old.reason(), "PROTOCOL_MISMATCH");
  EXPECT_EQ(daemon_old.code(), 9u);  // FAILED_PRECONDITION
  EXPECT_THAT(daemon_old.message(), HasSubstr("2 to 3"));
  EXPECT_THAT(daemon_old.message(), HasSubstr("1 to 1; upgrade the daemon"));

  SideClient older(served_->path());
  older.send("EAGLESC1");
  EXPECT_THAT(older.ask(hello(0, 0)).error().message(), HasSubstr("upgrade the client"));
  EXPECT_EQ(older.ask(hello(3, 1)).error().reason(), "PROTOCOL_MISMATCH");  // an empty range
  EXPECT_EQ(older.ask(hello(0, 9)).hello().protocol(), 1u);  // the same connection may try again
}

TEST_F(SideConnection, FetchBeforeHelloIsRefused) {
  SideClient client(served_->path());
  client.send("EAGLESC1");
  EXPECT_EQ(client.fetch({"token"}).error().reason(), "UNAUTHENTICATED");
}

TEST_F(SideConnection, OneSessionAConnection) {
  SideClient client(served_->path());
  client.open();
  EXPECT_EQ(client.ask(hello()).error().reason(), "BAD_MESSAGE");
  EXPECT_EQ(served_->daemon().sessions().size(), 1u);
}

TEST_F(SideConnection, TheDescriptorIsThePlanesOwnMemory) {
  SideClient client(served_->path());
  const auto session = session_of(client.open());
  const std::string token = make_planes(*session, 1).front();
  EXPECT_EQ(client.fetch({token}).fetch().descriptors(), 1u);
  const auto descriptors = client.take_descriptors();
  ASSERT_EQ(descriptors.size(), 1u);
  const server::testing::Mapping mapping(descriptors[0], 4096);
  mapping.doubles()[7] = 1.5;
  const auto plane = session->planes().list().front();
  EXPECT_EQ(reinterpret_cast<const double*>(plane->data())[7], 1.5);
}

// What is on its way counts for the daemon's user, whoever does not receive it.
TEST_F(SideConnection, ARequestWaitsUntilTheLastAnswerWasReceived) {
  SideClient client(served_->path());
  const auto session = session_of(client.open());
  const std::vector<std::string> tokens = make_planes(*session, 2);
  for (const std::string& token : tokens) {
    v1::SideRequest request;
    request.mutable_fetch()->add_tokens(token);
    client.send(request);
  }
  const auto waiting = [&client] {
    int bytes = 0;
    ::ioctl(client.fd(), FIONREAD, &bytes);
    return bytes;
  };
  while (waiting() == 0) std::this_thread::yield();
  const int first = waiting();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(waiting(), first) << "of two answers";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.receive().fetch().descriptors(), 1u);
    EXPECT_EQ(client.take_descriptors().size(), 1u);
  }
}

TEST_F(SideConnection, AsManyDescriptorsAsTheKernelTakesInOneMessage) {
  SideClient client(served_->path());
  const auto session = session_of(client.open());
  std::vector<std::string> tokens = make_planes(*session, 254);
  EXPECT_EQ(client.fetch(tokens).error().reason(), "BAD_VALUE");
  tokens.pop_back();
  EXPECT_EQ(client.fetch(tokens).fetch().descriptors(), 253u);
  EXPECT_EQ(client.take_descriptors().size(), 253u);
}

TEST_F(SideConnection, ASessionGetsItsRingOnce) {
  v1::SideRequest ring;
  ring.mutable_ring();
  SideClient client(served_->path());
  client.send("EAGLESC1");
  EXPECT_EQ(client.ask(ring).error().reason(), "UNAUTHENTICATED");
  ASSERT_TRUE(client.ask(hello()).has_hello());
  EXPECT_EQ(client.ask(ring).ring().bytes(), sizeof(ring::Memory));
  const auto descriptors = client.take_descriptors();
  ASSERT_EQ(descriptors.size(), 2u);
  const server::testing::Mapping mapping(descriptors[0], sizeof(ring::Memory));
  EXPECT_EQ(reinterpret_cast<const ring::Memory*>(mapping.doubles().data())->header.magic_number.get(),
            ring::magic);
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(descriptors[1].get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_EQ(client.ask(ring).error().reason(), "BAD_MESSAGE");
  EXPECT_TRUE(client.take_descriptors().empty());
  EXPECT_TRUE(client.fetch({}).has_fetch());
}

// The kernel bounds the descriptors that a user has on their way.
TEST_F(SideConnection, ARingThatNeverLeftMayBeAskedForAgain) {
  SideProtocol protocol(served_->daemon(), {}, Principal());
  ASSERT_NE(protocol.handle(hello().SerializeAsString()).frame, "");
  v1::SideRequest ring;
  ring.mutable_ring();
  const SideAnswer lost = protocol.handle(ring.SerializeAsString());
  ASSERT_EQ(lost.descriptors.size(), 2u);
  EXPECT_TRUE(protocol.handle(ring.SerializeAsString()).descriptors.empty()) << "there is one a session";
  protocol.not_sent(lost);
  const SideAnswer again = protocol.handle(ring.SerializeAsString());
  EXPECT_EQ(again.descriptors.size(), 2u);
  protocol.not_sent(lost);  // told late
  EXPECT_TRUE(protocol.handle(ring.SerializeAsString()).descriptors.empty()) << "it has the other one";
  protocol.detach();
}

// As where epoll takes no more descriptors of this user.
TEST_F(SideConnection, WhatCannotBeWatchedIsClosedAndHarmsNobody) {
  boost::asio::io_context io;
  Heard owner;
  EXPECT_EQ(Connection::make(io, UniqueFd(), served_->daemon(), {}, owner), nullptr);
}

TEST_F(SideConnection, ATokenIsGoodOnceAndInItsSessionOnly) {
  SideClient client(served_->path());
  SideClient other(served_->path());
  const auto tokens = make_planes(*session_of(client.open()), 2);
  other.open();
  EXPECT_EQ(other.fetch({tokens[0]}).error().reason(), "UNKNOWN_PLANE");
  EXPECT_TRUE(other.take_descriptors().empty());
  EXPECT_TRUE(client.fetch({tokens[0]}).has_fetch());
  EXPECT_EQ(client.fetch({tokens[0]}).error().reason(), "UNKNOWN_PLANE");
  EXPECT_EQ(client.fetch({tokens[1], "forged"}).error().reason(), "UNKNOWN_PLANE");
  EXPECT_TRUE(client.fetch({tokens[1]}).has_fetch()) << "spent by a request that was refused";
}

TEST_F(SideConnection, BytesMayComeOneByOne) {
  SideClient client(served_->path());
  for (const char byte : "EAGLESC1" + frame_of(hello().SerializeAsString())) client.send({&byte, 1});
  EXPECT_TRUE(client.receive().has_hello());
}

TEST_F(SideConnection, RequestsMayComeTogether) {
  SideClient client(served_->path());
  const std::string empty_fetch = frame_of(std::string("\x12\x00", 2));
  client.send("EAGLESC1" + frame_of(hello().SerializeAsString()) + empty_fetch + empty_fetch);
  EXPECT_TRUE(client.receive().has_hello());
  EXPECT_TRUE(client.receive().has_fetch());
  EXPECT_TRUE(client.receive().has_fetch());
}

TEST_F(SideConnection, ARequestThatIsNotKnownIsRefusedAndTheSessionGoesOn) {
  SideClient client(served_->path());
  client.open();
  for (const std::string& payload :
       {std::string(), std::string("\x7a\x01x", 3), std::string("\xff\xff\xff")}) {
    client.send(frame_of(payload));
    EXPECT_EQ(client.receive().error().reason(), "BAD_MESSAGE");
  }
  EXPECT_TRUE(client.fetch({}).has_fetch());
}

TEST_F(SideConnection, AnOversizedFrameEndsTheConnection) {
  SideClient client(served_->path());
  client.open();
  client.send(std::string("\xff\xff\xff\xff", 4));
  const v1::SideError error = client.receive().error();
  EXPECT_EQ(error.reason(), "BAD_MESSAGE");
  EXPECT_THAT(error.message(), HasSubstr("65536"));
  EXPECT_TRUE(client.at_end());
  wait_until_sessions_are(0);
  expect_still_serves();
}

TEST_F(SideConnection, GarbageIsClosed) {
  for (const std::string& garbage : {std::string("EAGLESC2........"), std::string("E\0\0\0\0\0\0\0", 8),
                                     std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\0')}) {
    SideClient client(served_->path());
    client.send(garbage);
    std::string rest(1 << 16, '\0');
    while (::recv(client.fd(), rest.data(), rest.size(), 0) > 0) {
    }
  }
  expect_still_serves();
}

TEST_F(SideConnection, FramesCutShortLeaveNothingBehind) {
  const std::string whole = "EAGLESC1" + frame_of(hello().SerializeAsString());
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    SideClient client(served_->path());
    client.send(whole.substr(0, cut));
  }
  expect_still_serves();
  wait_until_sessions_are(0);
}

TEST_F(SideConnection, WhoSaysNothingIsClosed) {
  serve(small());
  SideClient silent(served_->path());
  EXPECT_TRUE(silent.at_end());
  SideClient half(served_->path());
  static_cast<void>(::send(half.fd(), "EAGLESC1\x08", 9, MSG_NOSIGNAL));  // it may be closed already
  EXPECT_TRUE(half.at_end());
}

TEST_F(SideConnection, WhoSaysNothingMakesRoomForWhoComesAfter) {
  Daemon::Options options = small();
  options.limits.greeting_timeout = std::chrono::hours(1);
  serve(std::move(options));
  std::vector<std::unique_ptr<SideClient>> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(std::make_unique<SideClient>(served_->path()));
  EXPECT_TRUE(silent[0]->at_end());
  expect_still_serves();
}

// Whether it had opened its session by the time that so many of its handlers had run and it was closed, as it
// is by its timer or to make room. Everything that it says has come before; all that it says is one greeting.
bool opened_when_closed_after(Daemon& daemon, int handlers) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd client(ends[1]);
  const std::string greeting = "EAGLESC1" + frame_of(hello().SerializeAsString());
  EXPECT_EQ(::send(client.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(greeting.size()));
  boost::asio::io_context io;
  Heard owner;
  const auto connection = Connection::make(io, UniqueFd(ends[0]), daemon, {}, owner);
  connection->start();
  for (int ran = 0; ran < handlers; ++ran) static_cast<void>(io.poll_one());
  const bool opened = owner.times_greeted() == 1;
  connection->close();
  io.run();  // what had been done before tells so now
  EXPECT_EQ(owner.times_greeted(), opened ? 1 : 0) << "closed after " << handlers;
  EXPECT_EQ(owner.times_closed(), 1) << "closed after " << handlers;
  EXPECT_EQ(daemon.sessions().size(), 0u) << "closed after " << handlers;
  return opened;
}

TEST_F(SideConnection, WhatIsClosedOpensNoSessionThoughItsGreetingHasCome) {
  int handlers = 0;
  while (!opened_when_closed_after(served_->daemon(), handlers)) ++handlers;
  EXPECT_GT(handlers, 2) << "none was closed between two of its handlers";
}

// Whether gRPC serves a connection: it sends its settings first.
bool served_by_grpc(const UniqueFd& connection) {
  using namespace std::string_view_literals;
  constexpr std::string_view preface =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;  // and no settings
  if (::send(connection.get(), preface.data(), preface.size(), MSG_NOSIGNAL) < 0) return false;
  char byte = 0;
  return ::recv(connection.get(), &byte, 1, 0) == 1;
}

TEST_F(SideConnection, AProcessHasSoManyGrpcConnectionsAndNoMore) {
  Daemon::Options options;
  options.limits.grpc_connections_per_process = 2;
  serve(std::move(options));
  std::vector<UniqueFd> open;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(served_by_grpc(open.emplace_back(connect_to(served_->path()))));
  EXPECT_FALSE(served_by_grpc(connect_to(served_->path())));
  expect_still_serves();
  EXPECT_FALSE(served_by_grpc(connect_to(served_->path())));
  // One that is closed makes room, some time later.
  open.pop_back();
  while (!served_by_grpc(connect_to(served_->path()))) std::this_thread::yield();
}

TEST_F(SideConnection, GrpcConnectionsAreBoundedInAll) {
  Daemon::Options options;
  options.limits.grpc_connections = 1;
  serve(std::move(options));
  UniqueFd one = connect_to(served_->path());
  EXPECT_TRUE(served_by_grpc(one));
  EXPECT_FALSE(served_by_grpc(connect_to(served_->path())));
  // Also where it is gRPC that closes.
  EXPECT_GT(::send(one.get(), "garbage in place of a frame", 27, MSG_NOSIGNAL), 0);
  while (!served_by_grpc(connect_to(served_->path()))) std::this_thread::yield();
}

TEST_F(SideConnection, AConnectionWhoseSessionGoesOnOverAnotherIsClosed) {
  SideClient first(served_->path());
  const v1::HelloReply opened = first.open();
  SideClient second(served_->path());
  second.send("EAGLESC1");
  v1::SideRequest again = hello();
  again.mutable_hello()->mutable_resume()->set_session(opened.session());
  again.mutable_hello()->mutable_resume()->set_secret(opened.secret());
  ASSERT_EQ(second.ask(again).hello().session(), opened.session());
  EXPECT_TRUE(first.at_end());
  EXPECT_EQ(served_->daemon().sessions().size(), 1u);
  EXPECT_TRUE(session_of(opened));
}

TEST_F(SideConnection, AConnectionWhoseSessionHasEndedIsClosed) {
  SideClient client(served_->path());
  const auto session = session_of(client.open());
  served_->daemon().sessions().end(session);
  EXPECT_TRUE(client.at_end());
}

TEST_F(SideConnection, TheEndOfTheConnectionEndsTheSession) {
  SideClient client(served_->path());
  client.open();
  client.close();
  wait_until_sessions_are(0);
}

TEST_F(SideConnection, PlanesThatNobodyMappedAreFreedWithTheSession) {
  SideClient client(served_->path());
  make_planes(*session_of(client.open()), 3);
  client.close();
  while (served_->daemon().info().planes != 0) std::this_thread::yield();
}

// This process, which is the client's, lives on and may have the plane mapped.
TEST_F(SideConnection, PlanesOfALivingClientKeepTheirBytesAfterTheSession) {
  SideClient client(served_->path());
  const auto tokens = make_planes(*session_of(client.open()), 2);
  ASSERT_TRUE(client.fetch({tokens[0]}).has_fetch());
  const auto descriptors = client.take_descriptors();
  const server::testing::Mapping mapping(descriptors.at(0), 4096);
  mapping.doubles()[0] = 2.5;
  client.close();
  while (served_->daemon().info().planes != 1) std::this_thread::yield();
  EXPECT_EQ(mapping.doubles()[0], 2.5);
}

// A child of the client has its connection too, so the connection does not end with the client.
TEST_F(SideConnection, TheEndOfTheClientEndsTheSessionThoughAForkedChildLives) {
  const std::string path = served_->path();
  const std::string greeting = "EAGLESC1" + frame_of(hello().SerializeAsString());
  int until_end[2];
  ASSERT_EQ(::pipe2(until_end, O_CLOEXEC), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // Only system calls from here to the ends of the children: the threads of this process are not in them.
  const pid_t client = ::fork();
  if (client == 0) {
    ::close(until_end[1]);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
    if (::write(fd, greeting.data(), greeting.size()) != static_cast<ssize_t>(greeting.size())) ::_exit(2);
    char reply = 0;
    if (::read(fd, &reply, 1) != 1) ::_exit(3);
    if (::fork() == 0) {
      // The child keeps the connection until the test is over.
      ::_exit(::read(until_end[0], &reply, 1) < 0 ? 1 : 0);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(client, &status, 0), client);
  EXPECT_EQ(status, 0);
  wait_until_sessions_are(0);
  ::close(until_end[0]);
  ::close(until_end[1]);
}

TEST_F(SideConnection, ADrainingDaemonOpensNoSession) {
  served_->daemon().begin_drain();
  served_->daemon().sessions().set_admins({});
  SideClient client(served_->path());
  client.send("EAGLESC1");
  EXPECT_EQ(client.ask(hello()).error().reason(), "SHUTTING_DOWN");
}

TEST_F(SideConnection, ADrainingDaemonLetsItsAdminsLook) {
  served_->daemon().begin_drain();
  SideClient client(served_->path());
  client.open();
  EXPECT_TRUE(client.fetch({}).has_fetch());
}

TEST_F(SideConnection, ADaemonThatAcceptsNoMoreKeepsItsSessions) {
  SideClient client(served_->path());
  client.open();
  served_->listener().stop_accepting();
  EXPECT_TRUE(client.fetch({}).has_fetch());
}

}  // namespace
}  // namespace eagle::server
