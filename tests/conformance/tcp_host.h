// Hosts whose arrays are copies here: "daemon_tcp", an eagled behind TCP, and "local_gpu" and "daemon_gpu",
// whose arrays lie on a GPU. The cases read and write arrays where they are, so these sessions send the
// arrays of a graph or run before it, and fetch them after.
#pragma once

#include <string>

#include "eagle/client/session.h"

namespace eagle::conformance {

// `session` is one over TCP, or makes its arrays on `device`.
Session mirrored(const Session& session, const std::string& device = {});

}  // namespace eagle::conformance
