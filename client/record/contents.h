// What planes hold, told apart by digests of pieces, so that large arrays are written once and compared fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace eagle::record {

using Digest = std::array<unsigned char, 32>;

// Of the pieces (format.h: piece_bytes) of some memory, in order; the last one may be shorter.
constexpr std::size_t pieces_in(std::uint64_t bytes, std::uint64_t piece) {
  return static_cast<std::size_t>((bytes + piece - 1) / piece);
}
Digest digest_of(std::span<const std::byte> bytes);  // SHA-256
Digest digest_of_zeros(std::uint64_t bytes);         // at most a piece
// Of a whole plane, from its pieces'.
Digest digest_of(const std::vector<Digest>& pieces);

}  // namespace eagle::record
