// Tokens: bearer tokens that clients may show, kept as digests.
//
// The file has one line a token: `sha256:` and 64 lower-case hexadecimal digits, then a space and the
// subject, which is what the daemon calls whoever shows it. Empty lines and lines that begin with # are
// skipped.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "server/secret.h"

namespace eagle::server {

// Thread-safe.
class Tokens {
public:
  // A token that is shorter is nobody's: it could be guessed.
  static constexpr std::size_t fewest_bytes = 16;

  // BAD_VALUE names file and line; PERMISSION_DENIED for a file that others could write to; SYSTEM.
  static StatusOr<std::shared_ptr<Tokens>> load(const std::string& path);

  // Holds what `other` holds from now on.
  void replace_by(const Tokens& other);
  // Whose token this is. The time that it takes says nothing about the tokens there are.
  [[nodiscard]] std::optional<std::string> subject_of(std::string_view token) const;
  [[nodiscard]] std::size_t size() const;

  // A new random token, and the line for it.
  struct Made {
    std::string token;
    std::string line;
  };
  static StatusOr<Made> make(std::string_view subject);

private:
  struct Entry {
    Digest digest{};
    std::string subject;
  };
  Tokens() = default;
  Status read(const std::string& path);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace eagle::server
