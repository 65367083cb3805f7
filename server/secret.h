// Random bytes, and the secrets and tokens made of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/hex.h"  // to_hex, the other way of secret_from_hex
#include "engine/base/status.h"

namespace eagle::server {

using Secret = std::array<std::uint8_t, 32>;
using Digest = std::array<std::uint8_t, 32>;

// From the kernel's generator. SYSTEM.
Status fill_random(std::span<std::uint8_t> bytes);

// Says nothing about how many there were before it; never 0. SYSTEM.
StatusOr<std::uint64_t> random_id();

// SHA-256. Secrets are looked up by digest, so that the time of a lookup says nothing about a secret.
Digest digest_of(std::span<const std::uint8_t> bytes);

std::optional<Secret> secret_from_hex(std::string_view text);  // exactly 64 lower-case digits

}  // namespace eagle::server
