// The text by which a session is resumed: its id and its secret.
#pragma once

#include <string_view>

#include "client/side_channel.h"
#include "engine/base/status.h"

namespace eagle {

// BAD_VALUE; the message does not repeat the token, which is a secret.
StatusOr<Resumption> resumption_of(std::string_view token);

}  // namespace eagle
