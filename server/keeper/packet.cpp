#include "server/keeper/packet.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/descriptors.h"

namespace eagle::server {
namespace {

Status exchange_failed(const char* call) {
  return {Reason::system, std::string("between keeper and worker: ") + call + ": " + std::strerror(errno)};
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

StatusOr<std::pair<UniqueFd, UniqueFd>> packet_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return exchange_failed("socketpair");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

StatusOr<bool> send_packet(int socket, std::string_view bytes, std::span<const int> descriptors, Wait wait) {
  for (;;) {
    const int flags = wait == Wait::no ? MSG_DONTWAIT : 0;
    if (send_with_descriptors(socket, bytes, descriptors, flags) >= 0) return true;
    if (errno == EINTR) continue;
    if (would_wait()) return false;
    return exchange_failed("sendmsg");
  }
}

StatusOr<std::optional<Packet>> receive_packet(int socket, Wait wait) {
  Packet packet;
  packet.bytes.resize(packet_bytes);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(packet_descriptors * sizeof(int))> control{};
  for (;;) {
    iovec data{packet.bytes.data(), packet.bytes.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait == Wait::no ? MSG_DONTWAIT : 0));
    // A peer that died with packets of ours unread: told once, before what it had sent itself.
    if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (got < 0 && would_wait()) return std::optional<Packet>();
    if (got < 0) return exchange_failed("recvmsg");
    take_descriptors(message, packet.descriptors);
    if (got == 0) return Status(Reason::connection_lost, "between keeper and worker: the other one is gone");
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      return Status(Reason::system, "no room for descriptors that are handed over; raise RLIMIT_NOFILE");
    }
    if ((message.msg_flags & MSG_TRUNC) != 0) {
      return Status(Reason::bad_message, "a packet of more than " + std::to_string(packet_bytes) + " bytes");
    }
    packet.bytes.resize(static_cast<std::size_t>(got));
    return std::optional(std::move(packet));
  }
}

}  // namespace eagle::server
