// The gRPC services of proto/eagle/v1/service.proto over a Daemon.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/daemon.h"
#include "server/surroundings.h"

namespace grpc {
class Service;
}

namespace eagle::server {

// Sessions that come over TCP.
std::unique_ptr<grpc::Service> make_sessions_service(Daemon& daemon, Access access);
std::unique_ptr<grpc::Service> make_planes_service(Daemon& daemon);
std::unique_ptr<grpc::Service> make_graphs_service(Daemon& daemon);
std::unique_ptr<grpc::Service> make_runs_service(Daemon& daemon);
std::unique_ptr<grpc::Service> make_admin_service(Daemon& daemon, Surroundings surroundings);
// Descriptions of the services with these names, for whoever asks.
std::unique_ptr<grpc::Service> make_reflection_service(Daemon& daemon, std::vector<std::string> names);

}  // namespace eagle::server
