// What the daemon counts, as Prometheus reads it (text format 0.0.4). docs/manual/operations.md lists the
// names.
#pragma once

#include <string>

namespace eagle::server {

class Daemon;

// Base units; labels are bounded, and no client makes their values.
std::string metrics_text(Daemon& daemon);

}  // namespace eagle::server
