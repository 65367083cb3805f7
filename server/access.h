// Access: who may open sessions where somebody listens, and as whom.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "server/principal.h"
#include "server/tokens.h"

namespace eagle::server {

struct Access {
  Identity identity = Identity::user;
  std::shared_ptr<const Tokens> tokens;  // where a token decides
};

// The principal behind a token. UNAUTHENTICATED, in the same words for every token that is not one.
StatusOr<Principal> principal_of_token(const Access& access, std::string_view token);

// "uid", "certificate", "token", "anonymous", as the configuration has it.
std::string_view name_of(Identity identity);
std::optional<Identity> identity_named(std::string_view name);

}  // namespace eagle::server
