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
  std::map<std::uint64_t, UniqueFd> bytes;   // memory, by the `bytes_id` of the records over it
  std::map<StateKey, UniqueFd> descriptors;  // of one record each: processes, and memory without an id
};

}  // namespace eagle::server
