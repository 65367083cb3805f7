#include "client/record/contents.h"

#include <openssl/sha.h>

#include "client/record/format.h"

namespace eagle::record {

Digest digest_of(std::span<const std::byte> bytes) {
  Digest digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

Digest digest_of_zeros(std::uint64_t bytes) {
  static const std::vector<std::byte> zeros(piece_bytes);
  static const Digest whole = digest_of(zeros);
  return bytes == piece_bytes ? whole : digest_of(std::span(zeros).first(static_cast<std::size_t>(bytes)));
}

Digest digest_of(const std::vector<Digest>& pieces) { return digest_of(std::as_bytes(std::span(pieces))); }

}  // namespace eagle::record
