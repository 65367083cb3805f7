// TcpSocket: a listening TCP socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

// "dns:HOST:PORT", the host a name or an address, IPv6 ones in brackets.
struct TcpAddress {
  std::string host;
  std::uint16_t port = 0;  // 0: the system chooses
};
// BAD_ENDPOINT says what is wrong and what to write instead.
StatusOr<TcpAddress> tcp_address(std::string_view endpoint);

class TcpSocket {
public:
  // One socket for each address that the host has. BAD_ENDPOINT where it has none, or the address is taken;
  // SYSTEM.
  static StatusOr<std::vector<TcpSocket>> open(const TcpAddress& address);
  // One that another process opened. SYSTEM.
  static StatusOr<TcpSocket> adopt(UniqueFd fd);
  // For another process.
  UniqueFd take() && { return std::move(fd_); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Whether only this machine can reach it.
  [[nodiscard]] bool loopback() const { return loopback_; }
  // As a client would name it, with the port that the system chose: "dns:127.0.0.1:7411".
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

private:
  UniqueFd fd_;
  bool loopback_ = false;
  std::string endpoint_;
};

}  // namespace eagle::server
