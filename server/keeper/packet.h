// Packets between keeper and worker: a socket that keeps messages apart (SOCK_SEQPACKET), each a serialised
// message with the descriptors that go along. What was sent is the kernel's, and is received even if the
// sender died the next moment.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

constexpr std::size_t packet_bytes = 64u << 10;  // at most
constexpr std::size_t packet_descriptors = 253;  // the kernel's SCM_MAX_FD

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
};

// Both ends, closed on exec. SYSTEM.
StatusOr<std::pair<UniqueFd, UniqueFd>> packet_sockets();

enum class Wait { yes, no };
// False where it would have to wait. SYSTEM: the other end is gone.
StatusOr<bool> send_packet(int socket, std::string_view bytes, std::span<const int> descriptors, Wait wait);
// Nothing where it would have to wait. CONNECTION_LOST: the other end is gone, and nothing of it is left.
// SYSTEM: the process may have no more descriptors.
StatusOr<std::optional<Packet>> receive_packet(int socket, Wait wait);

}  // namespace eagle::server
