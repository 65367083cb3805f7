// GivenUp: whether nobody wants any more what is being made. Work that may take long asks between its steps.
#pragma once

#include <functional>

#include "engine/base/status.h"

namespace eagle {

// Asked by the thread that works, often. Empty: it is wanted.
using GivenUp = std::function<bool()>;

// CANCELLED once it is given up.
inline Status still_wanted(const GivenUp& given_up) {
  if (!given_up || !given_up()) return {};
  return {Reason::cancelled, "given up by who asked for it, before it was made"};
}

}  // namespace eagle
