#include "client/side_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "eagle/v1/service.pb.h"

namespace eagle {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;

// Far enough away that only a failure reaches it.
Deadline far() { return steady_clock::now() + std::chrono::seconds(60); }
Deadline soon() { return steady_clock::now() + std::chrono::milliseconds(50); }

// One accepted connection, spoken by hand.
class Peer {
public:
  explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {}

  std::string read(std::size_t bytes) const {
    std::string text(bytes, '\0');
    return ::recv(fd_.get(), text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes) ? text : "";
  }
  v1::SideRequest request() const {
    std::uint32_t size = 0;
    std::memcpy(&size, read(4).data(), 4);
    v1::SideRequest message;
    EXPECT_TRUE(message.ParseFromString(read(size)));
    return message;
  }
  void write(const std::string& bytes) const {
    ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string frame(const v1::SideReply& reply) {
    const std::string body = reply.SerializeAsString();
    const auto size = static_cast<std::uint32_t>(body.size());
    return std::string(reinterpret_cast<const char*>(&size), 4) + body;
  }
  void write(const v1::SideReply& reply, const std::vector<int>& descriptors) const {
    const std::string bytes = frame(reply);
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    ASSERT_EQ(::sendmsg(fd_.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
  }
  void wait_for_hang_up() const {
    char byte = 0;
    EXPECT_EQ(::recv(fd_.get(), &byte, 1, 0), 0);
  }

private:
  UniqueFd fd_;
};

v1::SideReply hello_reply(std::uint32_t protocol = 1) {
  v1::SideReply reply;
  reply.mutable_hello()->set_protocol(protocol);
  reply.mutable_hello()->set_server_version("9.9");
  reply.mutable_hello()->set_session(7);
  reply.mutable_hello()->set_secret(std::string(32, 's'));
  return reply;
}

class SideChannelTest : public ::testing::Test {
protected:
  SideChannelTest() {
    char pattern[] = "/tmp/side_channel_test-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    endpoint_ = {folder_ + "/sock"};
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, endpoint_.path.c_str());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
  }
  ~SideChannelTest() override { std::filesystem::remove_all(folder_); }

  // Plays the daemon for one connection.
  std::jthread serve(std::function<void(Peer&)> talk) {
    return std::jthread([this, talk = std::move(talk)] {
      Peer peer(UniqueFd(::accept(listener_.get(), nullptr, nullptr)));
      talk(peer);
    });
  }
  StatusOr<std::unique_ptr<SideChannel>> open(Deadline deadline = far()) {
    return SideChannel::open(endpoint_, {"test", {}, {}, {}, {}, {}}, deadline);
  }

  std::string folder_;
  Endpoint endpoint_;
  UniqueFd listener_;
};

TEST_F(SideChannelTest, OpensASessionWithItsProtocolRangeAndName) {
  const auto server = serve([](Peer& peer) {
    EXPECT_EQ(peer.read(8), "EAGLESC1");
    const v1::HelloRequest hello = peer.request().hello();
    EXPECT_EQ(hello.protocol().min(), 1u);
    EXPECT_EQ(hello.protocol().max(), 1u);
    EXPECT_EQ(hello.client_name(), "test");
    peer.write(Peer::frame(hello_reply()));
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_EQ((*channel)->session().id, 7u);
  EXPECT_EQ((*channel)->session().secret, std::string(32, 's'));
  EXPECT_EQ((*channel)->session().server_version, "9.9");
}

TEST_F(SideChannelTest, ReadsAReplyThatComesByteByByte) {
  const auto server = serve([](Peer& peer) {
    for (const char byte : Peer::frame(hello_reply())) peer.write(std::string(1, byte));
    peer.read(8);
  });
  EXPECT_TRUE(open().ok());
}

TEST_F(SideChannelTest, PassesOnWhatTheDaemonHasToSay) {
  const auto server = serve([](Peer& peer) {
    v1::SideReply reply;
    reply.mutable_error()->set_reason("PROTOCOL_MISMATCH");
    reply.mutable_error()->set_message("client 1-1, daemon 2-3");
    peer.write(Peer::frame(reply));
    peer.read(8);
  });
  const Status status = open().status();
  EXPECT_EQ(status.reason(), Reason::protocol_mismatch);
  EXPECT_THAT(status.message(), HasSubstr("client 1-1, daemon 2-3"));
}

TEST_F(SideChannelTest, RefusesAProtocolItDoesNotSpeak) {
  const auto server = serve([](Peer& peer) {
    peer.write(Peer::frame(hello_reply(2)));
    peer.read(8);
  });
  const Status status = open().status();
  EXPECT_EQ(status.reason(), Reason::protocol_mismatch);
  EXPECT_THAT(status.message(), HasSubstr("9.9"));
  EXPECT_THAT(status.message(), HasSubstr("protocol 2"));
}

TEST_F(SideChannelTest, KnowsWhenItTalksToSomethingElse) {
  for (const std::string& answer : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(4, '\0'),
                                    std::string("\xff\xff\xff\xff"), std::string("\x03\0\0\0abc", 7)}) {
    const auto server = serve([&](Peer& peer) {
      peer.write(answer);
      peer.read(8);
    });
    const Status status = open().status();
    EXPECT_EQ(status.reason(), Reason::bad_message) << answer;
    EXPECT_THAT(status.message(), HasSubstr(endpoint_.text()));
  }
}

TEST_F(SideChannelTest, ADaemonThatHangsUpIsGone) {
  const auto server = serve([](Peer&) {});
  EXPECT_EQ(open().status().reason(), Reason::connection_lost);
}

TEST_F(SideChannelTest, ADaemonThatSaysNothingIsGivenUp) {
  const auto server = serve([](Peer& peer) { peer.read(10'000); });
  const Status status = open(soon()).status();
  EXPECT_EQ(status.reason(), Reason::deadline);
  EXPECT_THAT(status.message(), HasSubstr(endpoint_.text()));
}

TEST_F(SideChannelTest, AFullBacklogIsGivenUpToo) {
  std::vector<UniqueFd> waiting;  // the backlog is one; nobody accepts
  Status status;
  while (status.ok() && waiting.size() < 10) {
    auto connected = connect_to_daemon(endpoint_, soon());
    status = connected.status();
    if (connected.ok()) waiting.push_back(std::move(*connected));
  }
  EXPECT_EQ(status.reason(), Reason::deadline);
}

TEST_F(SideChannelTest, NobodyThereIsNoDaemonAndTheCureIsNamed) {
  listener_.reset();  // the socket file stays, as a killed daemon leaves it
  const Status stale = open().status();
  EXPECT_EQ(stale.reason(), Reason::no_daemon);
  EXPECT_THAT(stale.message(), HasSubstr("eagled --listen " + endpoint_.text()));
  std::filesystem::remove(endpoint_.path);
  EXPECT_EQ(open().status().reason(), Reason::no_daemon);
}

TEST_F(SideChannelTest, FetchesDescriptorsInTheOrderOfTheirTokens) {
  const UniqueFd a(::memfd_create("a", MFD_CLOEXEC));
  const UniqueFd b(::memfd_create("b", MFD_CLOEXEC));
  const auto server = serve([&](Peer& peer) {
    peer.write(Peer::frame(hello_reply()));
    peer.read(8);
    peer.request();
    const v1::FetchRequest fetch = peer.request().fetch();
    EXPECT_THAT(fetch.tokens(), ::testing::ElementsAre("ta", "tb"));
    v1::SideReply reply;
    reply.mutable_fetch()->set_descriptors(2);
    peer.write(reply, {a.get(), b.get()});
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  const auto descriptors = (*channel)->fetch({"ta", "tb"}, far());
  ASSERT_TRUE(descriptors.ok()) << descriptors.status().to_string();
  ASSERT_EQ(descriptors->size(), 2u);
  const auto inode = [](int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status.st_ino;
  };
  EXPECT_EQ(inode(descriptors->at(0).get()), inode(a.get()));
  EXPECT_EQ(inode(descriptors->at(1).get()), inode(b.get()));
  EXPECT_NE(::fcntl(descriptors->at(0).get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(SideChannelTest, ADaemonWithoutRingsIsNoLessOfADaemon) {
  const UniqueFd plane(::memfd_create("a", MFD_CLOEXEC));
  const auto server = serve([&](Peer& peer) {
    peer.write(Peer::frame(hello_reply()));
    peer.read(8);
    peer.request();
    EXPECT_TRUE(peer.request().has_ring());
    v1::SideReply unknown;
    unknown.mutable_error()->set_reason("BAD_MESSAGE");
    unknown.mutable_error()->set_message("does not know this side request");
    peer.write(Peer::frame(unknown));
    EXPECT_TRUE(peer.request().has_fetch());
    v1::SideReply fetched;
    fetched.mutable_fetch()->set_descriptors(1);
    peer.write(fetched, {plane.get()});
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_EQ((*channel)->ring(far()).status().reason(), Reason::bad_message);
  EXPECT_TRUE((*channel)->fetch({"token"}, far()).ok());
}

TEST_F(SideChannelTest, DescriptorsThatDoNotMatchTheTokensAreRefused) {
  const auto server = serve([&](Peer& peer) {
    peer.write(Peer::frame(hello_reply()));
    peer.read(8);
    peer.request();
    peer.request();
    v1::SideReply reply;
    reply.mutable_fetch()->set_descriptors(1);
    peer.write(Peer::frame(reply));
    peer.wait_for_hang_up();
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_EQ((*channel)->fetch({"t"}, far()).status().reason(), Reason::bad_message);
  EXPECT_FALSE((*channel)->alive());
}

TEST_F(SideChannelTest, AReplyThatStopsHalfWayEndsTheSession) {
  const auto server = serve([](Peer& peer) {
    peer.write(Peer::frame(hello_reply()));
    peer.read(8);
    peer.request();
    peer.request();
    peer.write(std::string("\x10\0", 2));
    peer.wait_for_hang_up();
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_TRUE((*channel)->alive());
  EXPECT_EQ((*channel)->fetch({"t"}, soon()).status().reason(), Reason::deadline);
  EXPECT_FALSE((*channel)->alive());
}

TEST_F(SideChannelTest, NoticesThatTheDaemonHungUp) {
  auto server = serve([](Peer& peer) {
    peer.write(Peer::frame(hello_reply()));
    peer.read(8);
    peer.request();
  });
  const auto channel = open();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  server.join();
  EXPECT_FALSE((*channel)->alive());
  EXPECT_EQ((*channel)->fetch({"t"}, far()).status().reason(), Reason::connection_lost);
}

// Needs two users: the listener belongs to nobody in particular, and we are neither root nor it.
TEST_F(SideChannelTest, ASocketOfAnotherUserGetsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users at once";
  constexpr uid_t squatter = 65'534;
  // SO_PEERCRED tells who called listen().
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder_ + "/squat").c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const int listening = [&] {
    int result = -1;
    std::thread([&] {  // credentials are a thread's own, when set by the bare system call
      if (::syscall(SYS_setresuid, -1, squatter, -1) == 0) result = ::listen(socket.get(), 5);
    })
        .join();
    return result;
  }();
  ASSERT_EQ(listening, 0);
  const Status status = connect_to_daemon({folder_ + "/squat"}, far()).status();
  EXPECT_EQ(status.reason(), Reason::permission_denied);
  EXPECT_THAT(status.message(), HasSubstr("uid 65534"));
}

}  // namespace
}  // namespace eagle
