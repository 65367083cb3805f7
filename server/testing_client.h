// A daemon that serves on a socket of its own, and a client that speaks the side protocol byte by byte.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eagle/v1/service.pb.h"
#include "engine/base/unique_fd.h"
#include "server/rpc/rpc_server.h"
#include "server/sockets/listener.h"
#include "server/sockets/listening_socket.h"
#include "server/testing.h"

namespace eagle::server::testing {

class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string pattern = "/tmp/eagled-test-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
  std::string path_;
};

inline UniqueFd connect_to(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << std::strerror(errno);
  return fd;
}

// Everything that eagled is, in this process.
class Served {
public:
  explicit Served(Daemon::Options options = {}) : daemon_(make_daemon(std::move(options))) {
    auto socket = ListeningSocket::open(path());
    EXPECT_TRUE(socket.ok()) << socket.status().to_string();
    socket_ = std::make_unique<ListeningSocket>(*std::move(socket));
    auto rpc = RpcServer::start(*daemon_, {{"unix:" + path()}});
    EXPECT_TRUE(rpc.ok()) << rpc.status().to_string();
    rpc_ = *std::move(rpc);
    listener_ = std::make_unique<Listener>(*daemon_, UniqueFd(::dup(socket_->fd())),
                                           [this](UniqueFd fd) { rpc_->adopt(std::move(fd)); });
  }
  ~Served() {
    const std::atomic<bool> hurry = true;
    daemon_->stop(hurry);
    listener_.reset();
    rpc_.reset();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  [[nodiscard]] std::string path() const { return directory_ / "eagled.sock"; }
  Daemon& daemon() { return *daemon_; }
  Listener& listener() { return *listener_; }

private:
  TemporaryDirectory directory_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<ListeningSocket> socket_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<Listener> listener_;
};

inline std::string frame_of(std::string_view payload) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(payload.size() >> shift & 0xff);
  return frame.append(payload);
}

inline v1::SideRequest hello(std::uint32_t min = 1, std::uint32_t max = 1) {
  v1::SideRequest request;
  request.mutable_hello()->mutable_protocol()->set_min(min);
  request.mutable_hello()->mutable_protocol()->set_max(max);
  request.mutable_hello()->set_client_name("test");
  return request;
}

class SideClient {
public:
  explicit SideClient(const std::string& path) : fd_(connect_to(path)) {}
  [[nodiscard]] int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  void send(std::string_view bytes) const {
    ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()))
        << std::strerror(errno);
  }
  void send(const v1::SideRequest& request) const { send(frame_of(request.SerializeAsString())); }

  // The next reply; descriptors that come with it are kept. A reply without a kind: the end of the
  // connection.
  v1::SideReply receive() {
    std::string size(4, '\0');
    v1::SideReply reply;
    if (!fill(size)) return reply;
    std::uint32_t bytes = 0;
    for (std::size_t i = 0; i < 4; ++i) bytes |= std::uint32_t{static_cast<std::uint8_t>(size[i])} << (8 * i);
    std::string payload(bytes, '\0');
    EXPECT_TRUE(fill(payload));
    EXPECT_TRUE(reply.ParseFromString(payload));
    return reply;
  }
  v1::SideReply ask(const v1::SideRequest& request) {
    send(request);
    return receive();
  }
  // True when nothing comes any more.
  bool at_end() { return receive().kind_case() == v1::SideReply::KIND_NOT_SET; }

  // Opens the session.
  v1::HelloReply open() {
    send("EAGLESC1");
    const v1::SideReply reply = ask(hello());
    EXPECT_TRUE(reply.has_hello()) << reply.DebugString();
    return reply.hello();
  }
  v1::SideReply fetch(const std::vector<std::string>& tokens) {
    v1::SideRequest request;
    request.mutable_fetch();
    for (const std::string& token : tokens) request.mutable_fetch()->add_tokens(token);
    return ask(request);
  }
  std::vector<UniqueFd> take_descriptors() { return std::exchange(descriptors_, {}); }

private:
  bool fill(std::string& bytes) {
    std::size_t got = 0;
    while (got < bytes.size()) {
      iovec data{bytes.data() + got, bytes.size() - got};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> control{};
      msghdr message{};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t received = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
      if (received <= 0) return false;
      got += static_cast<std::size_t>(received);
      for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
           header = CMSG_NXTHDR(&message, header)) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
          descriptors_.emplace_back(fd);
        }
      }
    }
    return true;
  }

  UniqueFd fd_;
  std::vector<UniqueFd> descriptors_;
};

// A descriptor's memory, as a client maps it.
class Mapping {
public:
  Mapping(const UniqueFd& fd, std::size_t bytes)
      : data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0)), bytes_(bytes) {
    EXPECT_NE(data_, MAP_FAILED) << std::strerror(errno);
  }
  ~Mapping() { ::munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] std::span<double> doubles() const {
    return {static_cast<double*>(data_), bytes_ / sizeof(double)};
  }

private:
  void* data_;
  std::size_t bytes_;
};

}  // namespace eagle::server::testing
