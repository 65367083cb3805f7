#include "server/access.h"

#include <array>
#include <utility>

namespace eagle::server {
namespace {

constexpr std::array names = {
    std::pair{Identity::user, std::string_view("uid")},
    std::pair{Identity::certificate, std::string_view("certificate")},
    std::pair{Identity::token, std::string_view("token")},
    std::pair{Identity::anonymous, std::string_view("anonymous")},
};

}  // namespace

StatusOr<Principal> principal_of_token(const Access& access, std::string_view token) {
  if (token.empty()) {
    return Status(Reason::unauthenticated,
                  "this daemon asks for a token, and none came; pass connect(..., auth=TOKEN)");
  }
  const auto subject = access.tokens ? access.tokens->subject_of(token) : std::nullopt;
  if (!subject) {
    return Status(Reason::unauthenticated,
                  "the daemon does not know this token; ask its operator for one (eagled --new-token)");
  }
  return remote_principal(Identity::token, *subject);
}

std::string_view name_of(Identity identity) {
  for (const auto& [known, name] : names) {
    if (known == identity) return name;
  }
  return "";
}

std::optional<Identity> identity_named(std::string_view name) {
  for (const auto& [identity, known] : names) {
    if (known == name) return identity;
  }
  return {};
}

}  // namespace eagle::server
