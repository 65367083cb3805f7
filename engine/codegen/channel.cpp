#include "engine/codegen/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace eagle::codegen {
namespace {

Status lost() { return Status(Reason::connection_lost, "the other end of the compile channel is gone"); }

Status system_error(const char* call) {
  return Status(Reason::system, std::string(call) + " on the compile channel: " + std::strerror(errno));
}

Status wait_for(int socket, short events, Deadline deadline) {
  while (true) {
    int timeout = -1;
    if (deadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Status(Reason::deadline, "no answer on the compile channel in time");
      timeout = static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000));
    }
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_error("poll");
  }
}

// One control buffer, aligned for its header, with room for one descriptor.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

Status send_some(int socket, std::string_view& bytes, int& descriptor) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  Control control;
  if (descriptor >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return errno == EPIPE || errno == ECONNRESET ? lost() : system_error("sendmsg");
  }
  bytes.remove_prefix(static_cast<std::size_t>(sent));
  descriptor = -1;  // it went with the first byte
  return {};
}

Status receive_some(int socket, char* to, std::size_t& have, std::size_t want, UniqueFd& descriptor) {
  iovec data{to + have, want - have};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  Control control;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got == 0) return lost();
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return errno == ECONNRESET ? lost() : system_error("recvmsg");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof(int));
    descriptor.reset(received);
  }
  have += static_cast<std::size_t>(got);
  return {};
}

Status receive_all(int socket, char* to, std::size_t want, UniqueFd& descriptor, Deadline deadline) {
  std::size_t have = 0;
  while (have < want) {
    EAGLE_RETURN_IF_ERROR(wait_for(socket, POLLIN, deadline));
    EAGLE_RETURN_IF_ERROR(receive_some(socket, to, have, want, descriptor));
  }
  return {};
}

}  // namespace

Status send_frame(int socket, std::string_view bytes, int descriptor, Deadline deadline) {
  if (bytes.size() > max_frame_bytes) {
    return Status(Reason::bad_message, "a frame of " + std::to_string(bytes.size()) +
                                           " bytes; the limit is " + std::to_string(max_frame_bytes));
  }
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>((size >> shift) & 0xff));
  frame.append(bytes);
  std::string_view left = frame;
  while (!left.empty()) {
    EAGLE_RETURN_IF_ERROR(wait_for(socket, POLLOUT, deadline));
    EAGLE_RETURN_IF_ERROR(send_some(socket, left, descriptor));
  }
  return {};
}

StatusOr<Frame> receive_frame(int socket, Deadline deadline) {
  Frame frame;
  std::array<char, 4> head{};
  EAGLE_RETURN_IF_ERROR(receive_all(socket, head.data(), head.size(), frame.descriptor, deadline));
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < head.size(); ++i)
    size |= static_cast<std::uint32_t>(static_cast<unsigned char>(head[i])) << (8 * i);
  if (size > max_frame_bytes)
    return Status(Reason::bad_message, "a frame of " + std::to_string(size) + " bytes announced");
  frame.bytes.resize(size);
  EAGLE_RETURN_IF_ERROR(receive_all(socket, frame.bytes.data(), size, frame.descriptor, deadline));
  return frame;
}

}  // namespace eagle::codegen
