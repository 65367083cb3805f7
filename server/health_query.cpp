#include "server/health_query.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "grpc/health/v1/health.grpc.pb.h"

namespace eagle::server {
namespace {

constexpr std::chrono::seconds patience{5};

}  // namespace

StatusOr<std::string> health_of(const ProgramOptions& options, const std::string& service) {
  std::string endpoint = options.unix_endpoint();
  if (endpoint.empty()) {
    endpoint = options.listen.front().endpoint;
    if (options.tls.used()) {
      return Status(Reason::bad_value,
                    "--health: '" + endpoint +
                        "' speaks TLS, and this process has no certificate to show; let the daemon "
                        "listen at a unix socket as well");
    }
  }
  auto stub =
      grpc::health::v1::Health::NewStub(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status asked = stub->Check(&context, request, &response);
  if (asked.error_code() == grpc::StatusCode::NOT_FOUND) {
    return Status(Reason::unknown_name, "--health: there is no service '" + service +
                                            "'; expected \"\", eagled.ready, eagled.device.cpu, or "
                                            "eagled.device.cuda:0 once that GPU is used");
  }
  if (!asked.ok()) {
    return Status(Reason::connection_lost,
                  "--health: nobody answers at '" + endpoint + "': " + asked.error_message());
  }
  return grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status());
}

}  // namespace eagle::server
