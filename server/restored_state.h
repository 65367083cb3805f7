// RestoredState: what a worker is left by the one before it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/base/unique_fd.h"
#include "server/state_log.h"

namespace eagle::server {

struct RestoredState {
  std::uint32_t epoch = 0;                   // how many workers there were before
  std::map<StateKey, std::string> records;   // of eagle/v1/state.proto
  std::map<StateKey, UniqueFd> descriptors;  // of some of them
};

}  // namespace eagle::server
