// Texts of clients that the daemon keeps: labels, names, and the random bytes by which a request is known
// that is sent again. They are written down, handed to each next worker and shown in lists, so none may be
// long.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "server/limits.h"

namespace eagle::server {

// `what`: with its article, "a plane label". BAD_VALUE over `label_bytes`.
inline Status check_client_text(std::string_view what, std::string_view text, const Limits& limits) {
  if (text.size() <= limits.label_bytes) return {};
  return {Reason::bad_value, "expected " + std::string(what) + " of at most " +
                                 std::to_string(limits.label_bytes) + " bytes (label_bytes), found " +
                                 std::to_string(text.size()) + "; give a shorter one"};
}

}  // namespace eagle::server
