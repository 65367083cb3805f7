// `eaglectl graph save GRAPH FILE` and `graph load FILE`: graphs of a daemon as files.
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/command.h"

namespace eagle::ctl {

struct SaveAsked {
  std::string graph;  // its name or id
  std::string file;
};

// Writes a graph of the daemon, with the numbers of Params that it has now, into a file that is not there
// yet.
StatusOr<Exit> save_graph_file(const Options& options, const SaveAsked& asked);

struct LoadAsked {
  std::string file;
  std::int64_t launches = 0;
};

// Says what the file holds, and whether the daemon builds it and runs it so many times; then it is gone. A
// file that needs callables is told of and not built.
StatusOr<Exit> load_graph_file(const Options& options, const LoadAsked& asked);

}  // namespace eagle::ctl
