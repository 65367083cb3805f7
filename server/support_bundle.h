// What a maintainer needs to see of a daemon, as one archive.
#pragma once

#include <string>

#include "server/daemon.h"
#include "server/surroundings.h"

namespace eagle::server {

// A tar file: configuration without secrets, versions, recent log lines, metrics, the timeline, sessions, and
// pictures of graphs, of which there are at most `most_pictures`. Takes as long as the pictures do.
constexpr std::size_t most_pictures = 100;
std::string support_bundle(Daemon& daemon, const Surroundings& surroundings);

}  // namespace eagle::server
