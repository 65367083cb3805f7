#include "server/secret.h"

#include <openssl/sha.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace eagle::server {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

Status fill_random(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {Reason::system, std::string("getrandom: ") + std::strerror(errno)};
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

StatusOr<std::uint64_t> random_id() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  EAGLE_RETURN_IF_ERROR(fill_random(bytes));
  std::uint64_t id = 0;
  std::memcpy(&id, bytes.data(), sizeof id);
  return id | 1;
}

Digest digest_of(std::span<const std::uint8_t> bytes) {
  static_assert(std::tuple_size_v<Digest> == SHA256_DIGEST_LENGTH);
  Digest digest;
  ::SHA256(bytes.data(), bytes.size(), digest.data());
  return digest;
}

std::optional<Secret> secret_from_hex(std::string_view text) {
  Secret secret;
  if (text.size() != secret.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const std::size_t high = digits.find(text[2 * i]);
    const std::size_t low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    secret[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return secret;
}

}  // namespace eagle::server
