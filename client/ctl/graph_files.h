// `eaglectl graph load FILE`: a saved graph, built in the daemon over arrays of its own.
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/command.h"

namespace eagle::ctl {

struct LoadAsked {
  std::string file;
  std::int64_t launches = 0;
};

// Says what the file holds, and whether the daemon builds it and runs it so many times; then it is gone. A
// file that needs callables is told of and not built.
StatusOr<Exit> load_graph_file(const Options& options, const LoadAsked& asked);

}  // namespace eagle::ctl
